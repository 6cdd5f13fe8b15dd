"""`ravel config set`: one key changes, comments stay, and nothing that would lock the user out gets into the file."""

import tomllib
from pathlib import Path

import pytest

from node.home.config import Document, default_config_text, parse_config, parse_document
from node.home.config_editing import find_key, overriding_variable, set_key
from node.home.config_sections import CONFIG_KEYS
from node.runtime.errors import ServiceError

PEER = "a" * 52
VALUES = {
    "network.listen": "0.0.0.0:7474",
    "network.advertise": "a.example:7474",
    "network.peers": f'[{{ address = "b.example:7474", peer = "{PEER}", relay = true }}]',
    "api.listen": "[::1]:1",
    "api.tls": "*:7476",
    "api.tls_names": '["ravel.example", "[2001:db8::1]:443"]',
    "api.trusted_proxies": '["127.0.0.1", "fd00::/64"]',
    "export.destination": "file:///tmp/Ann \"A\" # one\n'two'",
    "export.format": "delta",
    "export.options": '{ anon = true, key = "secret" }',
    "relay.accept": "known",
    "storage.url": "postgresql://ravel@db.example/ravel",
    "log.level": "debug",
    "network.websocket_listen": "127.0.0.1:9443",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A fresh configuration file."""
    (tmp_path / "config.toml").write_text(default_config_text())
    return tmp_path / "config.toml"


def _value_for(section: str, key: str, said: Document) -> str:
    """Another valid value than the default."""
    if f"{section}.{key}" in VALUES:
        return VALUES[f"{section}.{key}"]
    value = said[section][key]
    if isinstance(value, bool):
        return str(not value).lower()
    return str(value + 1) if isinstance(value, int) else "x"


@pytest.mark.parametrize(
    "name", [f"{section}.{key}" for section, keys in CONFIG_KEYS.items() for key in keys]
)
def test_a_key_changes_and_all_else_stays(path: Path, name: str) -> None:
    section, key = find_key(name)
    before = path.read_text()
    said = parse_document(path, before)
    text = _value_for(section, key, said)
    assert set_key(path, name, text).is_change
    after = path.read_text()
    is_text = isinstance(said[section][key], str)
    said[section][key] = text if is_text else tomllib.loads(f"value = {text}")["value"]
    assert parse_document(path, after) == said
    assert [line for line in after.splitlines() if line.startswith("#")] == [
        line for line in before.splitlines() if line.startswith("#")
    ]
    assert not set_key(path, name, text).is_change
    assert path.read_text() == after


def test_a_file_of_few_lines_gets_its_section(path: Path) -> None:
    path.write_text('# mine\n[log]\nlevel = "info" # quiet\n')
    set_key(path, "relay.enabled", "true")
    set_key(path, "log.level", "error")
    text = path.read_text()
    assert text.startswith('# mine\n[log]\nlevel = "error" # quiet\n')
    assert parse_config(path, text).relay.enabled


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("network.lisen", "x", "did you mean 'listen'"),
        ("netwrk.listen", "x", "did you mean 'network'"),
        ("listen", "x", "did you mean network.listen or api.listen"),
        ("log.levle.x", "x", "unknown key"),
        ("", "x", "SECTION.KEY"),
        ("api.listen", "0.0.0.0:7475", "must be a loopback address"),
        ("api.listen", "127.0.0.1:7474", "cannot share a port"),
        ("api.tls", "127.0.0.1:7474", "cannot share a port"),
        ("api.tls", "*:7475", "cannot share a port"),
        ("network.websocket_listen", "*:7474", "cannot share a port"),
        ("api.tls", "7476", "host:port"),
        ("api.tls_names", '["https://ravel.example"]', "has hosts"),
        ("api.tls_names", '["wss://ravel.example"]', "has hosts"),
        ("api.tls_names", '["*:443"]', "has hosts"),
        ("api.tls_names", '["ravel.example:0"]', "has hosts"),
        ("api.tls_names", "[1]", "list of texts"),
        ("api.tls_names", str(["a.example"] * 17), "at most 16"),
        ("api.trusted_proxies", '["proxy.example"]', "addresses and networks"),
        ("network.listen", "0.0.0.0:7475", "cannot share a port"),
        ("network.listen", "nonsense", "host:port"),
        ("network.advertise", "0.0.0.0:7474", "others can dial"),
        ("network.peers", "[{ address = 1 }]", "peers holds"),
        ("network.introductions", "yes", "is true or false, not 'yes'"),
        ("relay.size_max", "0", "a number from 1"),
        ("relay.size_max", "1]\n[log]\nlevel = 7", "a number from 1"),
        ("log.level", "loud", "one of debug"),
        ("storage.url", "mysql://h/db", "[storage] url"),
        ("export.destination", "x" * 100_000, "more than 65536 characters"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(
    path: Path, name: str, value: str, message: str
) -> None:
    before = path.read_text()
    with pytest.raises(ServiceError) as caught:
        set_key(path, name, value)
    assert caught.value.code == "bad_config"
    assert message in caught.value.message
    assert caught.value.advice
    assert path.read_text() == before


def test_two_free_ports_and_two_hosts_may_be_alike(path: Path) -> None:
    set_key(path, "network.listen", "127.0.0.1:0")
    set_key(path, "api.listen", "127.0.0.1:0")
    set_key(path, "network.listen", "192.0.2.1:7475")
    set_key(path, "api.listen", "127.0.0.1:7475")


def test_another_store_than_the_nodes_is_refused(path: Path) -> None:
    store = path.with_name("ravel.sqlite")
    store.touch()
    with pytest.raises(ServiceError, match=r"without its repos") as caught:
        set_key(path, "storage.url", "postgresql://me:secret@db.example/ravel")
    assert "secret" not in str(caught.value)
    assert "restore --storage-url" in caught.value.advice
    store.unlink()  # as after `ravel restore --storage-url`
    change = set_key(path, "storage.url", "postgresql://me:secret@db.example/ravel")
    assert "secret" not in str(change)
    set_key(path, "storage.url", "postgresql://me:other@db.example/ravel")
    with pytest.raises(ServiceError, match="without its repos"):
        set_key(path, "storage.url", "")
    store.touch()  # as after `ravel restore --storage-url ""`
    set_key(path, "storage.url", "")


def test_a_broken_value_can_be_mended_by_setting_it(path: Path) -> None:
    path.write_text('[log]\nlevel = "loud"\n')
    set_key(path, "log.level", "info")
    assert parse_config(path, path.read_text()).log.level == "info"
    path.write_text("[log\n")
    with pytest.raises(ServiceError, match="not TOML"):
        set_key(path, "log.level", "info")


def test_a_variable_that_hides_the_file_is_named() -> None:
    assert overriding_variable("log.level", {"RAVEL_LOG_LEVEL": "info"}) == "RAVEL_LOG_LEVEL"
    assert overriding_variable("log.level", {}) == ""
