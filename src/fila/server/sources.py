"""Where settings come from: command line, environment, file; and what is wrong with them.

Every refusal is one line that names the source, the key and what is allowed.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from fila.errors import ConfigError
from fila.server.config import LIMIT_BOUNDS, Config
from fila.wire.names import has_control

SEARCH_PATH = (Path("fila.toml"), Path("/etc/fila/fila.toml"))
_PREFIX = "FILA_"
_DATA_DIR_SHORT = "FILA_DATA_DIR"
_SECTIONS: dict[str, type] = {item.name: item.default_factory for item in fields(Config)}  # type: ignore[misc]
_MEANINGLESS = ("scheduler", "lease_expiry_check_interval_ms")

# As in the environment: what int() takes besides is a slip of the hand, or endless.
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,30}")

# Section and key, raw value, and where it was found.
Finding: TypeAlias = tuple[str, str, object, str]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, where each setting that was given came from, and what to warn about."""

    config: Config
    origins: dict[tuple[str, str], str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def load(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[tuple[str, str], str] | None = None,
    *,
    search: Sequence[Path] = SEARCH_PATH,
) -> Loaded:
    """The effective configuration: flags over environment over file over defaults."""
    values: dict[str, dict[str, object]] = {name: {} for name in _SECTIONS}
    origins: dict[tuple[str, str], str] = {}
    found = path or next((each for each in search if each.is_file()), None)
    for section, key, raw, origin in _findings(found, environ, flags or {}):
        values[section][key] = _checked(section, key, raw, origin)
        origins[section, key] = origin
    sections = {name: _SECTIONS[name](**given) for name, given in values.items()}
    return Loaded(Config(**sections), origins, tuple(_warnings(origins)))


def _warnings(origins: Mapping[tuple[str, str], str]) -> Iterator[str]:
    if _MEANINGLESS in origins:
        yield (
            f"{origins[_MEANINGLESS]}: {'.'.join(_MEANINGLESS)} has no meaning here: "
            "leases are checked on every pass"
        )


def _findings(
    path: Path | None, environ: Mapping[str, str], flags: Mapping[tuple[str, str], str]
) -> Iterator[Finding]:
    if path is not None:
        yield from _from_file(path)
    yield from _from_environment(environ)
    for (section, key), value in flags.items():
        _check_known("command line", "section", section, _SECTIONS)
        _check_known("command line", f"key in [{section}]", key, _keys(section))
        yield section, key, value, "command line"


def _from_file(path: Path) -> Iterator[Finding]:
    origin = str(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{origin}: cannot be read: {error.strerror}") from error
    # Besides its own error tomllib lets out what huge numbers and deep brackets end in.
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin}: is not valid TOML: {error}") from error
    for section, table in document.items():
        _check_known(origin, "section", section, _SECTIONS)
        if not isinstance(table, dict):
            raise ConfigError(f"{origin}: {section} must be a section: [{section}]")
        for key, value in table.items():
            _check_known(origin, f"key in [{section}]", key, _keys(section))
            yield section, key, value, origin


def _from_environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    for variable in sorted(environ):
        if variable == _DATA_DIR_SHORT:
            yield "server", "data_dir", environ[variable], variable
        # Without the two underscores it is another program's: FILA_ADDR is the command line's.
        elif variable.startswith(_PREFIX) and "__" in variable:
            section, _, key = variable.removeprefix(_PREFIX).lower().partition("__")
            _check_known(variable, "section", section, _SECTIONS)
            _check_known(variable, f"key in [{section}]", key, _keys(section))
            yield section, key, environ[variable], variable


def _keys(section: str) -> dict[str, Any]:
    return {item.name: item for item in fields(_SECTIONS[section])}


def _check_known(origin: str, what: str, name: str, known: Mapping[str, object]) -> None:
    if name in known:
        return
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    allowed = ", ".join(known) or "none"
    raise ConfigError(f"{origin}: unknown {what}: {name}; {hint}allowed: {allowed}")


def _checked(section: str, key: str, raw: object, origin: str) -> object:
    item = _keys(section)[key]
    where = f"{origin}: {section}.{key}"
    if isinstance(item.default, int):
        low, high = LIMIT_BOUNDS[key] if section == "limits" else _bounds(item.metadata)
        return _whole_number(raw, low, high, where)
    if not isinstance(raw, str):
        raise ConfigError(f"{where} is {raw!r}; it must be text")
    if has_control(raw):
        raise ConfigError(f"{where} is {raw!r}; it must not have control characters")
    choices = item.metadata.get("choices")
    if choices and raw not in choices:
        raise ConfigError(f"{where} is {raw!r}; allowed: {', '.join(choices)}")
    if item.metadata.get("form") == "host:port":
        split_address(raw, where)
    if item.metadata.get("form") == "path":
        _check_path(raw, where)
    return raw


def _check_path(raw: str, where: str) -> None:
    if not raw:
        raise ConfigError(f"{where} is empty; it must be a path")
    try:
        Path(raw).expanduser()
    except RuntimeError as error:
        user = Path(raw).parts[0]
        raise ConfigError(f"{where} is {raw!r}; {user} is nobody's home directory") from error


def _bounds(metadata: Mapping[str, int]) -> tuple[int, int]:
    return metadata["low"], metadata["high"]


def _whole_number(raw: object, low: int, high: int, where: str) -> int:
    value = raw
    if isinstance(raw, str):
        value = int(raw) if _WHOLE_NUMBER.fullmatch(raw) else None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{where} is {raw!r}; it must be a whole number from {low} to {high}")
    return value


def split_address(address: str, where: str) -> tuple[str, int]:
    """Host and port of a listen address; IPv6 hosts are in brackets."""
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not bare or (":" in bare) != (host != bare) or not _is_port(port):
        raise ConfigError(
            f"{where} is {address!r}; it must be host:port, such as 127.0.0.1:5555 or [::1]:5555"
        )
    return bare, int(port)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= 65535


def effective_toml(loaded: Loaded) -> str:
    """All settings as TOML; a comment says where one that is not the default came from."""
    lines: list[str] = []
    for section in fields(Config):
        values = getattr(loaded.config, section.name)
        lines.append(f"[{section.name}]")
        for item in fields(values):
            origin = loaded.origins.get((section.name, item.name))
            note = f"  # {origin}" if origin else ""
            lines.append(f"{item.name} = {_toml(getattr(values, item.name))}{note}")
        lines.append("")
    return "\n".join(lines)


def _toml(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
