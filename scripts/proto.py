"""Generates src/fila/wire/_pb from proto/, or says that it is stale (`--check`)."""

import sys
import tempfile
from pathlib import Path

from google.protobuf import __file__ as protobuf_file
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/fila/wire/_pb"
SOURCES = ("messages", "service", "admin")


def generate() -> dict[str, str]:
    """The generated modules by file name, importing each other from where they live."""
    well_known = Path(protobuf_file).parent.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "protoc",
            f"-I{ROOT / 'proto'}",
            f"-I{well_known}",
            f"-I{Path(protoc.__file__).parent / '_proto'}",
            f"--python_out={folder}",
            f"--pyi_out={folder}",
            *(f"fila/v1/{name}.proto" for name in SOURCES),
        ]
        if protoc.main(arguments) != 0:
            sys.exit(1)
        return {
            path.name: path.read_text().replace("from fila.v1 import", "from fila.wire._pb import")
            for path in sorted((Path(folder) / "fila/v1").iterdir())
        }


def stale(generated: dict[str, str]) -> list[str]:
    """The names of files that are not what the proto says."""
    return [
        name
        for name, text in generated.items()
        if not (TARGET / name).exists() or (TARGET / name).read_text() != text
    ]


def main() -> None:
    """Write the modules; with `--check` only compare."""
    generated = generate()
    names = stale(generated)
    if "--check" in sys.argv:
        if names:
            sys.exit(f"stale generated code: {', '.join(names)}; run `make proto` and commit")
        print("generated code is up to date")
        return
    for name in names:
        (TARGET / name).write_text(generated[name])
    print(f"wrote {', '.join(names)}" if names else "nothing changed")


if __name__ == "__main__":
    main()
