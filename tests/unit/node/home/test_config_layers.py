"""File, environment and options: which wins, where each value comes from, and who is to blame for a bad one."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from node.cli.main import app
from node.home.config import default_config_text
from node.home.config_layers import find_unknown_variables, load_settings, variable_of
from node.home.config_sections import CONFIG_KEYS, Config
from node.home.home import create_home, open_home
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import AnyId

PEER = id_text(AnyId(b"p" * 32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(
        '[network]\nlisten = "127.0.0.1:1"\nadvertise = "file.example:1"\n[log]\nlevel = "error"\n'
    )
    return file


def test_options_go_before_the_environment_and_that_before_the_file(path: Path) -> None:
    environment = {"RAVEL_NETWORK_LISTEN": "127.0.0.1:2", "RAVEL_LOG_LEVEL": "warning", "PATH": "/bin"}
    config, settings = load_settings(path, environment, ["network.listen=127.0.0.1:3"])
    assert (config.network.listen, config.log.level) == ("127.0.0.1:3", "warning")
    assert config.network.advertise == "file.example:1"
    assert {one.key: one.source for one in settings if one.source != "default"} == {
        "network.listen": "option",
        "network.advertise": "file",
        "log.level": "environment",
    }


def test_every_key_has_a_variable_and_a_default(path: Path) -> None:
    path.write_text(default_config_text())
    config, settings = load_settings(path, {}, [])
    assert config == Config()
    assert [one.key for one in settings] == [f"{a}.{b}" for a, keys in CONFIG_KEYS.items() for b in keys]
    assert variable_of("network", "listen") == "RAVEL_NETWORK_LISTEN"
    assert {one.source for one in settings} == {"file"}


def test_what_is_no_text_is_written_as_in_the_file(path: Path) -> None:
    config, _ = load_settings(path, {"RAVEL_RELAY_ENABLED": "true"}, ["relay.size_max=7"])
    assert (config.relay.enabled, config.relay.size_max) == (True, 7)
    peers = f'[{{ address = "a.example:7474", peer = "{PEER}" }}]'
    config, _ = load_settings(path, {"RAVEL_NETWORK_PEERS": peers}, [])
    assert [one.peer for one in config.network.peers] == [b"p" * 32]


BAD = {
    "unknown_key": ({"RAVEL_NETWORK_LISTN": "x:1"}, [], "RAVEL_NETWORK_LISTN", "did you mean 'listen'"),
    "bad_value": ({"RAVEL_API_LISTEN": "0.0.0.0:1"}, [], "RAVEL_API_LISTEN", "loopback"),
    "not_toml": ({"RAVEL_NETWORK_PEERS": "[{"}, [], "RAVEL_NETWORK_PEERS", "not a TOML value"),
    "two_values": ({"RAVEL_NETWORK_PEERS": "[]\nother = 1"}, [], "RAVEL_NETWORK_PEERS", "more than one"),
    "bad_peers": ({"RAVEL_NETWORK_PEERS": "1"}, [], "RAVEL_NETWORK_PEERS", "is a list"),
    "no_flag": ({"RAVEL_RELAY_ENABLED": '"yes"'}, [], "RAVEL_RELAY_ENABLED", "true or false"),
    "too_many_days": ({}, ["storage.erase_after_days=36501"], "storage.erase_after_days", "a number from 0"),
    "no_number": ({}, ["relay.size_max=0"], "relay.size_max", "a number from 1"),
    "option_without_value": ({}, ["network.listen"], "network.listen", "SECTION.KEY=VALUE"),
    "option_of_no_section": ({}, ["netwrok.listen=a:1"], "netwrok.listen", "did you mean 'network'"),
    "option_of_no_key": ({}, ["network.listn=a:1"], "network.listn", "did you mean 'listen'"),
    "bad_option": ({"RAVEL_LOG_LEVEL": "info"}, ["log.level=loud"], "log.level", "one of debug"),
    "too_large": ({"RAVEL_NETWORK_PEERS": " " * (1 << 20) + "[]"}, [], "RAVEL_NETWORK_PEERS", "characters"),
}


@pytest.mark.parametrize("defect", BAD)
def test_a_bad_value_is_named_with_its_place(path: Path, defect: str) -> None:
    environment, options, place, expected = BAD[defect]
    with pytest.raises(ServiceError) as caught:
        load_settings(path, environment, options)
    assert caught.value.code == "bad_config"
    assert place in caught.value.message
    assert expected in caught.value.message
    assert caught.value.advice


def test_a_bad_value_of_the_file_is_a_fault_even_where_it_is_overridden(path: Path) -> None:
    path.write_text("[network]\nlisten = 1\n")
    with pytest.raises(ServiceError, match=r"config\.toml: \[network\] listen"):
        load_settings(path, {"RAVEL_NETWORK_LISTEN": "127.0.0.1:1"}, [])


def test_a_home_takes_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_home(tmp_path / "home")
    monkeypatch.setenv("RAVEL_NETWORK_ADVERTISE", "a.example:1")
    assert open_home(tmp_path / "home").config.network.advertise == "a.example:1"


@pytest.mark.slow
def test_show_says_where_values_come_from_and_check_what_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = create_home(tmp_path / "home")
    monkeypatch.setenv("RAVEL_LOG_LEVEL", "debug")
    monkeypatch.setenv("RAVEL_NETWROK_LISTEN", "x")
    run = ["--home", str(home.path), "config"]
    shown = json.loads(CliRunner().invoke(app, [*run, "show", "--set", "node.workers=2", "--json"]).output)
    by_key = {row["key"]: (row["value"], row["source"], row["variable"]) for row in shown["settings"]}
    assert by_key["log.level"] == ("debug", "environment", "RAVEL_LOG_LEVEL")
    assert by_key["node.workers"] == (2, "option", "RAVEL_NODE_WORKERS")
    assert by_key["network.peers"] == ([], "file", "RAVEL_NETWORK_PEERS")
    assert "log.level\tdebug\tenvironment" in CliRunner().invoke(app, [*run, "show"]).output
    checked = CliRunner().invoke(app, [*run, "check"]).output
    assert "note: RAVEL_NETWROK_LISTEN is set and is no key" in checked
    assert "overridden by the environment: log.level" in checked
    answer = json.loads(CliRunner().invoke(app, [*run, "check", str(home.config_path), "--json"]).output)
    assert answer["overridden"] == ["log.level"]
    home.config_path.write_text("[log]\nlevel = 1\n")
    assert isinstance(CliRunner().invoke(app, [*run, "check"]).exception, ServiceError)
    missing = CliRunner().invoke(app, [*run, "check", str(tmp_path / "none.toml")])
    assert isinstance(missing.exception, ServiceError)


def test_strangers_are_those_of_no_section() -> None:
    assert find_unknown_variables(
        {"RAVEL_HOME": "/x", "RAVEL_LOG_LEVEL": "info", "RAVEL_TOKEN": "t", "HOME": "/"}
    ) == ["RAVEL_TOKEN"]
