"""Where settings come from, and what is said about wrong ones."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from fila.errors import ConfigError
from fila.server.sources import effective_toml, load


def write(folder: Path, text: str) -> Path:
    path = folder / "fila.toml"
    path.write_text(text)
    return path


def refusal(path: Path | None, environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, environ or {}, search=())
    return str(caught.value)


def test_nothing_configured_gives_the_defaults() -> None:
    config = load(None, {}, search=()).config

    assert config.server.listen_addr == "127.0.0.1:5555"
    assert config.server.data_dir == "./fila-data"
    assert config.scheduler.quantum == 1
    assert config.queue_defaults.visibility_timeout_ms == 30_000
    assert config.storage.fsync == "always"


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[server]\nlisten_addr = "a:1"\ndata_dir = "file"\n[limits]\nheaders_max = 7'
    )
    environ = {"FILA_SERVER__LISTEN_ADDR": "b:2", "FILA_DATA_DIR": "environment"}

    loaded = load(path, environ, {("server", "listen_addr"): "c:3"})

    assert loaded.config.server.listen_addr == "c:3"
    assert loaded.config.server.data_dir == "environment"
    assert loaded.config.limits.headers_max == 7
    assert loaded.origins["server", "data_dir"] == "FILA_DATA_DIR"


def test_the_first_file_that_exists_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "[scheduler]\nquantum = 1000")

    loaded = load(None, {}, search=(tmp_path / "missing.toml", path))

    assert loaded.config.scheduler.quantum == 1000


def test_variables_of_other_programs_are_left_alone() -> None:
    assert load(None, {"FILA_ADDR": "host:1", "FILA_PROVE": "1"}, search=()).origins == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[schedular]\nquantum = 1", ["schedular", "did you mean scheduler?"]),
        ("[server]\nlisten_adr = 'a:1'", ["listen_adr", "did you mean listen_addr?", "data_dir"]),
        ("[events]\nanything = 1", ["anything", "allowed: none"]),
        ("[scheduler]\nquantum = 0", ["scheduler.quantum", "from 1 to 1000000"]),
        ("[scheduler]\nquantum = true", ["scheduler.quantum", "whole number"]),
        ("[scheduler]\nquantum = 1.5", ["scheduler.quantum", "whole number"]),
        ("[scheduler]\nvisibility_timeout_ms = 999", ["visibility_timeout_ms", "from 1000"]),
        ("[storage]\nfsync = 'sometimes'", ["storage.fsync", "always, interval, never"]),
        ("[server]\nlisten_addr = '5555'", ["server.listen_addr", "host:port"]),
        ("[server]\nlisten_addr = 'a:99999'", ["server.listen_addr", "host:port"]),
        ("[server]\nlisten_addr = '::1:5555'", ["server.listen_addr", "[::1]:5555"]),
        ("[server]\nlisten_addr = 5555", ["server.listen_addr", "text"]),
        ("[server]\ndata_dir = ''", ["server.data_dir", "empty"]),
        ("server = 1", ["must be a section"]),
        ("[server", ["not valid TOML"]),
        ("a = " + "[" * 100_000, ["not valid TOML"]),
        ("[scheduler]\nquantum = " + "9" * 5000, ["not valid TOML"]),
        ("[scheduler]\nquantum = '" + "9" * 5000 + "'", ["scheduler.quantum", "whole number"]),
        ("[scheduler]\nquantum = ' 1_0 '", ["scheduler.quantum", "whole number"]),
        ('[server]\ndata_dir = "a\\u0000b"', ["server.data_dir", "control characters"]),
        ('[server]\nlisten_addr = "a\\u0000:1"', ["server.listen_addr", "control characters"]),
        ("[server]\ndata_dir = '~nobody-has-this-name/x'", ["server.data_dir", "home directory"]),
    ],
)
def test_a_mistake_in_the_file_is_one_line_that_says_what_is_allowed(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    path = write(tmp_path, text)

    said = refusal(path)

    assert said.startswith(str(path))
    assert "\n" not in said
    assert all(word in said for word in words), said


def test_a_mistake_in_the_environment_names_the_variable() -> None:
    said = refusal(None, {"FILA_SCHEDULER__QUANTUM": "many"})
    unknown = refusal(None, {"FILA_SERVER__LISTEN": "x:1"})

    assert said.startswith("FILA_SCHEDULER__QUANTUM: scheduler.quantum is 'many'")
    assert unknown.startswith("FILA_SERVER__LISTEN: unknown key in [server]: listen")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.toml").startswith(f"{tmp_path / 'none.toml'}: cannot be read")


def test_a_setting_without_meaning_is_accepted_with_one_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "[scheduler]\nlease_expiry_check_interval_ms = 1000")

    [warning] = load(path, {}).warnings

    assert "lease_expiry_check_interval_ms" in warning


def test_the_effective_settings_are_toml_that_says_where_they_came_from(tmp_path: Path) -> None:
    path = write(tmp_path, "[scheduler]\nquantum = 9")
    loaded = load(path, {"FILA_DATA_DIR": 'a "b" \\c'})

    text = effective_toml(loaded)
    again = tmp_path / "again.toml"
    again.write_text(text)

    assert tomllib.loads(text)["server"]["data_dir"] == 'a "b" \\c'
    assert f"quantum = 9  # {path}" in text
    assert load(again, {}).config == loaded.config


def test_ipv6_addresses_are_in_brackets() -> None:
    loaded = load(None, {"FILA_SERVER__LISTEN_ADDR": "[::1]:0"}, search=())

    assert loaded.config.server.listen_addr == "[::1]:0"
