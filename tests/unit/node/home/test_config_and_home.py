"""Configuration and folder: every wrong key is named, every secret is private."""

import errno
import os
import pwd
import stat
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from node.home.config import CONFIG_SIZE_MAX, default_config_text, load_document, read_config
from node.home.config_editing import default_text, set_key
from node.home.config_sections import Config
from node.home.default_repo import load_default_repo
from node.home.folder_mark import MARK_NAME, write_mark
from node.home.home import NEIGHBOURS_MAX, create_home, lock_home, no_node, open_home, run_file
from node.home.identity import open_keys, read_keys
from node.home.people_file import read_people
from node.home.private_files import create_file
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import AnyId
from ravel.home import access_advice, owner_advice, read_run_file
from storage.engine.losses import Loss, write_loss
from storage.engine.store_identity import write_store_id
from tests.support.keys import no_passphrase

PEER = id_text(AnyId(b"p" * 32))
CONFIGS = Path(__file__).parents[4] / "configs"


def test_the_default_text_is_the_default_configuration_and_is_shipped(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(default_config_text())
    assert read_config(path, load_document(path)) == Config()
    assert (CONFIGS / "ravel.toml").read_text() == default_config_text()


def test_a_byte_order_mark_before_the_file_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(BOM_UTF8 + b"[node]\nworkers = 1\n")
    assert load_document(path) == {"node": {"workers": 1}}


def test_values_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        f'[network]\nlisten = "[::1]:0"\npeers = [{{ address = "a.example:7474", peer = "{PEER}" }}]\n'
        '[api]\nlisten = "localhost:1"\n[log]\nlevel = "debug"\n[node]\nworkers = 2\n'
    )
    config = read_config(path, load_document(path))
    assert (config.network.listen, config.network.peers[0].peer) == ("[::1]:0", b"p" * 32)
    assert (config.api.listen, config.log.level, config.node.workers) == ("localhost:1", "debug", 2)


BAD: dict[str, tuple[str, str]] = {
    "unknown_section": ("[netwrok]\n", "did you mean 'network'"),
    "unknown_key": ('[network]\nlistn = "x"\n', "did you mean 'listen'"),
    "far_from_any_key": ("[log]\nzzz = 1\n", "known: level"),
    "not_toml": ("[network\n", "not TOML"),
    "a_value_for_a_section": ("network = 1\n", "is a section"),
    "wrong_type": ("[network]\nlisten = 7474\n", "is a text"),
    "no_port": ('[network]\nlisten = "localhost"\n', "host:port"),
    "port_too_large": ('[network]\nlisten = "localhost:65536"\n', "host:port"),
    "port_in_other_digits": ('[network]\nlisten = "localhost:٣"\n', "host:port"),
    "label_too_long": (f'[network]\nlisten = "{"a" * 64}.example:1"\n', "host:port"),
    "empty_label": ('[network]\nlisten = "a..b:1"\n', "host:port"),
    "control_character": ('[network]\nlisten = "a\\u0000b:1"\n', "host:port"),
    "no_ipv6": ('[network]\nlisten = "[1.2.3.4]:1"\n', "host:port"),
    "bare_ipv6": ('[network]\nlisten = "::1:80"\n', "host:port"),
    "api_on_every_interface": ('[api]\nlisten = "0.0.0.0:1"\n', "loopback"),
    "unknown_level": ('[log]\nlevel = "loud"\n', "one of debug"),
    "advertised_one_of_two": ('[network]\nadvertise = "a:1, b"\n', "commas between"),
    "advertised_too_many": ('[network]\nadvertise = "a:1,b:1,c:1,d:1"\n', "at most 3 addresses"),
    "advertised_without_port": ('[network]\nadvertise = "a:0"\n', "others can dial"),
    "advertised_as_every_interface": ('[network]\nadvertise = "0.0.0.0:1"\n', "others can dial"),
    "peers_not_a_list": ("[network]\npeers = 1\n", "list"),
    "peer_without_id": ('[network]\npeers = [{ address = "a:1" }]\n', "address, peer"),
    "peer_of_a_bad_id": ('[network]\npeers = [{ address = "a:1", peer = "abc" }]\n', "52 characters"),
    "too_large": ("#" * (CONFIG_SIZE_MAX + 1), "bytes"),
}


@pytest.mark.parametrize("defect", BAD)
def test_a_bad_configuration_is_named_with_file_and_key(tmp_path: Path, defect: str) -> None:
    text, expected = BAD[defect]
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ServiceError) as caught:
        read_config(path, load_document(path))
    assert caught.value.code == "bad_config"
    assert expected in caught.value.message
    assert str(path) in caught.value.message


def test_a_home_is_private_and_a_second_init_changes_nothing(tmp_path: Path) -> None:
    os.umask(0)
    home = create_home(tmp_path / "home", name="me", listen="127.0.0.1:1")
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.path.iterdir()} == {0o600}
    again = create_home(tmp_path / "home", name="other", listen="127.0.0.1:2")
    assert again == home
    keys = open_keys(home.path, no_passphrase)
    assert again.api_token == home.api_token
    assert keys == open_keys(again.path, no_passphrase)
    assert len({keys.node_seed, keys.user_seed, keys.store_key}) == 3
    assert not any(secret.hex() in repr(keys) for secret in (keys.node_seed, keys.user_seed, keys.store_key))
    os.umask(0o022)


@pytest.mark.parametrize(
    "write",
    [
        write_mark,
        lambda folder: write_loss(folder, Loss(None, None)),
        lambda folder: write_store_id(folder, "id"),
    ],
    ids=["mark", "loss", "store id"],
)
def test_two_commands_that_write_one_file_of_a_folder_at_a_moment_both_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    """Each has a draft of its own: what one renames is not the other's."""
    sync = os.fsync

    def write_too(handle: int) -> None:
        monkeypatch.setattr("os.fsync", sync)
        write(tmp_path)
        sync(handle)

    monkeypatch.setattr("os.fsync", write_too)
    write(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1, "no draft is left"


def test_a_bad_address_leaves_no_folder_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as caught:
        create_home(tmp_path / "home", listen="nonsense")
    assert str(tmp_path / "home" / "config.toml") in caught.value.message
    (tmp_path / "home" / "config.toml.new").write_text("half-written by a process that was killed")
    assert create_home(tmp_path / "home").config == Config()


def test_a_name_that_is_given_is_what_the_user_states(tmp_path: Path) -> None:
    home = create_home(tmp_path / "home", name="Zoe\u0308")
    kept = read_people(home.path).me
    assert (kept.name, kept.stated_at > 0) == ("Zo\u00eb", True)
    create_home(tmp_path / "home", name="Another")
    assert read_people(home.path).me == kept, "a second init changes nothing"
    with pytest.raises(ServiceError, match=r"U\+202E"):
        create_home(tmp_path / "other", name="A\u202eB")
    assert not (tmp_path / "other").exists()


def test_what_another_command_makes_at_the_same_moment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = create_home(tmp_path / "other", storage="")
    path = tmp_path / "home"
    path.mkdir(mode=0o700)

    def make_first(target: Path, content: bytes) -> None:
        if not target.exists():
            (other.path / target.name).rename(target)
        create_file(target, content)

    monkeypatch.setattr("node.home.home.create_file", make_first)
    monkeypatch.setattr("node.home.identity.create_file", make_first)
    with pytest.raises(ServiceError, match="another command has just made a node") as caught:
        create_home(path, storage="")
    assert caught.value.code == "already_exists"
    assert open_home(path).api_token
    assert [one.name for one in other.path.iterdir()] == [MARK_NAME]


def test_a_file_system_without_hard_links_takes_new_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is exported to a stick, and sticks have FAT."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    create_file(tmp_path / "user.key", b"first")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "user.key", b"second")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("user.key", b"first")]


def test_an_export_goes_into_the_folder_wherever_the_daemon_was_started(tmp_path: Path) -> None:
    home = create_home(tmp_path / "home", storage="")
    for destination, expected in (
        ("", home.path / "exports"),
        ("out/x", home.path / "out" / "x"),
        ("/srv/x", "/srv/x"),
        ("s3://bucket/x", "s3://bucket/x"),
    ):
        changed = open_home(home.path, [f"export.destination={destination}"])
        assert changed.export_destination == str(expected)


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "lock").mkdir()
    with pytest.raises(ServiceError) as caught, lock_home(tmp_path / "home"):
        raise AssertionError("held")
    assert caught.value.code == "storage_failed"


def test_root_makes_no_node_in_a_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    _belong_to(monkeypatch, 1234, tmp_path)
    with pytest.raises(ServiceError, match="belongs to another user") as caught:
        create_home(tmp_path, storage="")
    assert caught.value.code == "not_permitted"
    assert list(tmp_path.iterdir()) == []


def _belong_to(monkeypatch: pytest.MonkeyPatch, user: int, *paths: Path) -> None:
    stat = Path.stat

    def found(path: Path, **options: bool) -> os.stat_result:
        fields = list(stat(path, **options))
        if path in paths:
            fields[4] = user
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "stat", found)
    monkeypatch.setattr(Path, "lstat", lambda path: found(path, follow_symlinks=False))


def test_what_another_user_left_in_the_folder_is_told_with_what_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert owner_advice(tmp_path) == ""
    assert access_advice(tmp_path) == "check its owner and permissions"
    path = tmp_path / "it's"
    path.touch()
    _belong_to(monkeypatch, 2**31, path)
    advice = f"it belongs to {2**31}: sudo chown {pwd.getpwuid(os.geteuid()).pw_name} '{tmp_path}/it'\"'\"'s'"
    assert owner_advice(path) == owner_advice(tmp_path) == access_advice(path) == advice
    _belong_to(monkeypatch, 2**31, path, tmp_path)
    assert owner_advice(path).startswith(f"{path} belongs to {2**31}: run the command as that user")


@pytest.mark.parametrize("name", ["config.toml", "api-token", "keys.json", "default-repo"])
def test_a_file_that_may_not_be_read_is_told_with_what_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = create_home(tmp_path / "home", storage="")
    (home.path / "default-repo").touch()
    _belong_to(monkeypatch, 2**31, home.path / name)
    opened, opened_path = os.open, Path.open

    def refuse(path: str | Path) -> None:  # root may read anything
        if str(path) == str(home.path / name):
            raise PermissionError(13, "Permission denied")

    def open_handle(path: str | Path, flags: int, mode: int = 0o777) -> int:
        refuse(path)
        return opened(path, flags, mode)

    def open_path(path: Path, mode: str = "r", **options: Any) -> object:  # noqa: ANN401  # as pathlib has it
        refuse(path)
        return opened_path(path, mode, **options)

    monkeypatch.setattr(os, "open", open_handle)
    monkeypatch.setattr(Path, "open", open_path)
    asks: dict[str, Callable[[Path], object]] = {
        "config.toml": open_home,
        "api-token": lambda home: open_home(home).api_token,
        "keys.json": read_keys,
        "default-repo": load_default_repo,
    }
    with pytest.raises(ServiceError) as caught:
        asks[name](home.path)
    assert caught.value.code == "bad_config"
    assert f"it belongs to {2**31}: sudo chown" in caught.value.advice


def test_a_lock_whose_file_was_removed_still_holds(tmp_path: Path) -> None:
    with lock_home(tmp_path), run_file(tmp_path, api="127.0.0.1:1", listen="127.0.0.1:3", peer=PEER, run="r"):
        (tmp_path / "lock").unlink()
        with pytest.raises(ServiceError, match=f"process {os.getpid()} uses") as caught, lock_home(tmp_path):
            raise AssertionError("held twice")
        assert caught.value.code == "already_running"
        assert read_run_file(tmp_path).holder.pid == os.getpid(), "commands find the daemon"
        (tmp_path / "lock").unlink()
        assert read_run_file(tmp_path).holder.pid == os.getpid()
    with lock_home(tmp_path):
        pass


def test_secrets_that_others_may_read_or_that_are_damaged_are_refused(tmp_path: Path) -> None:
    home = create_home(tmp_path / "home")
    for name, read in (
        ("keys.json", lambda: open_keys(home.path, no_passphrase)),
        ("api-token", lambda: home.api_token),
    ):
        file = home.path / name
        file.chmod(0o640)
        with pytest.raises(ServiceError, match="read by others"):
            read()
        file.chmod(0o600)
        for content in ("", "zz", "00" * 31, "\udcff", "x" * 100_000):
            file.write_text(content, errors="surrogateescape")
            with pytest.raises(ServiceError) as caught:
                read()
            assert caught.value.code == "bad_config"
        file.unlink()
        with pytest.raises(ServiceError) as caught:
            read()
        assert caught.value.code == "not_initialised"


def test_a_folder_without_a_node_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as caught:
        open_home(tmp_path)
    assert caught.value.code == "not_initialised"
    assert caught.value.advice.startswith("give the right folder by --home or RAVEL_HOME; ")
    assert caught.value.advice.endswith(f"ravel --home {tmp_path} up")


def test_a_mistyped_folder_is_answered_with_the_node_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_home(tmp_path / "alice")
    with pytest.raises(ServiceError) as caught:
        open_home(tmp_path / "alcie")
    assert caught.value.advice.startswith(f"did you mean ravel --home {tmp_path / 'alice'}?")
    looked_at: list[Path] = []
    monkeypatch.setattr("node.home.home.has_keys", looked_at.append)
    for number in range(NEIGHBOURS_MAX + 1):
        (tmp_path / f"other{number}").mkdir()
    no_node(tmp_path / "alcie")
    assert len(looked_at) == NEIGHBOURS_MAX


def test_what_a_setting_is_by_default_can_be_set_again(tmp_path: Path) -> None:
    home = create_home(tmp_path / "node")
    for key in ("network.peers", "relay.size_max", "network.listen", "network.circuits", "export.options"):
        before = home.config_path.read_text()
        set_key(home.config_path, key, default_text(key))
        assert home.config_path.read_text() == before, key


def test_a_folder_is_held_by_one_process(tmp_path: Path) -> None:
    with lock_home(tmp_path), pytest.raises(ServiceError, match=str(os.getpid())), lock_home(tmp_path):
        raise AssertionError("held twice")
    with lock_home(tmp_path):
        pass


def test_the_run_file_says_where_the_daemon_answers(tmp_path: Path) -> None:
    with pytest.raises(ServiceError) as caught:
        read_run_file(tmp_path)
    assert caught.value.code == "not_running"
    with lock_home(tmp_path):
        (tmp_path / "run.json.new").write_text("half-written by a process that was killed")
        for port in ("1", "2"):
            with run_file(tmp_path, api=f"127.0.0.1:{port}", listen="127.0.0.1:3", peer=PEER, run="r"):
                assert read_run_file(tmp_path).api == f"127.0.0.1:{port}"
            assert not (tmp_path / "run.json").exists()
        (tmp_path / "run.json").write_text("{")
        with pytest.raises(ServiceError):
            read_run_file(tmp_path)


def test_the_run_file_of_a_killed_daemon_is_not_believed(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    with lock_home(tmp_path), run_file(tmp_path, api="127.0.0.1:1", listen="127.0.0.1:3", peer=PEER, run="r"):
        kept.write_bytes((tmp_path / "run.json").read_bytes())
    kept.rename(tmp_path / "run.json")
    with pytest.raises(ServiceError) as caught:  # else the token would go to anyone who has that port now
        read_run_file(tmp_path)
    assert caught.value.code == "not_running"
    with lock_home(tmp_path), pytest.raises(ServiceError):
        read_run_file(tmp_path)


def test_a_folder_of_other_files_is_no_home_and_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    (folder / "letter.txt").touch()
    with pytest.raises(ServiceError, match=r"letter\.txt") as caught:
        create_home(folder, storage="")
    assert caught.value.code == "already_exists"
    assert (stat.S_IMODE(folder.stat().st_mode), [one.name for one in folder.iterdir()]) == (
        0o755,
        ["letter.txt"],
    )
    new_disk = tmp_path / "disk"
    (new_disk / "lost+found").mkdir(parents=True)
    create_home(new_disk, storage="")
