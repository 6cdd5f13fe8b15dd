"""The doctor: each thing that can be wrong with a folder, a disk, a clock, a port or a peer is named, with advice."""

import json
import os
import shutil
import socket
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from node.authoring.author import Author
from node.care import doctor
from node.care.debug_bundle import write_bundle
from node.care.doctor import (
    OK,
    PROBLEM,
    WARNING,
    Check,
    check_bound,
    check_connected,
    check_keys_in_use,
    check_members_clocks,
    check_repos,
    examine,
)
from node.cli.main import app
from node.home.config import CONFIG_NAME
from node.home.config_editing import set_key
from node.home.config_sections import NetworkConfig
from node.home.home import UNWRITABLE_ADVICE, create_home
from node.home.identity import open_keys
from node.home.people_file import PeopleFile, with_petname, write_people
from node.ingest.replica import Replica
from node.runtime.errors import ERROR_KINDS, ServiceError
from node.runtime.version import RELEASED_AT
from protocol.crypto.keys import HashKey, StoreKey
from protocol.formats.content import Post
from protocol.formats.text import id_text
from protocol.ids import AnyId
from protocol.limits.peers import CLOCK_DRIFT_MAX_SECONDS
from protocol.limits.users import DISK_FREE_MIN
from ravel.types.node import NodeStatus, StoreBound
from ravel.types.peers import RelayStatus
from ravel.types.repos import RepoList
from storage.commits.search_index import begin_index, keep_upto
from storage.engine.database import Database
from storage.engine.errors import StorageError
from storage.schema.schema import commits, store_seal
from tests.support.keys import no_passphrase
from tests.support.nodes import Node
from tests.support.older_stores import OLDER, older_is_known

NOW = 1_790_000_000.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    create_home(folder, listen="127.0.0.1:0", api="127.0.0.1:0")
    Database(folder).close()
    return folder


def _states(checks: list[Check], name: str) -> set[str]:
    return {check.state for check in checks if check.name == name}


def _examine(home: Path, now: float = NOW) -> list[Check]:
    return examine(home, now=lambda: now)


def test_a_good_folder_has_no_problem(home: Path) -> None:
    checks = _examine(home)
    assert [check for check in checks if check.state == PROBLEM] == []
    assert {check.name for check in checks} >= {
        "folder",
        "configuration",
        "keys",
        "disk",
        "store",
        "clock",
        "ports",
    }
    assert all(check.advice for check in checks if check.state != OK)
    assert _states(checks, "daemon") == {WARNING}, "none runs"


def _put(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o600)


FOLDERS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "folder_open": (lambda home: home.chmod(0o755), "folder", "chmod 700"),
    "key_open": (lambda home: (home / "keys.json").chmod(0o644), "files", "chmod 600"),
    "key_damaged": (lambda home: (home / "keys.json").write_text("zz"), "keys", "backup"),
    "token_gone": (lambda home: (home / "api-token").unlink(), "keys", "init"),
    "tokens_damaged": (lambda home: _put(home / "tokens.json", "{}"), "tokens", "revokes all"),
    "configuration": (lambda home: (home / "config.toml").write_text("[x]"), "configuration", "edit"),
    "no_store": (lambda home: (home / "ravel.sqlite").write_bytes(b"x" * 5000), "store", "fsck"),
}


@pytest.mark.parametrize("defect", FOLDERS)
def test_what_is_wrong_in_the_folder_is_a_problem(home: Path, defect: str) -> None:
    harm, name, advice = FOLDERS[defect]
    harm(home)
    found = [check for check in _examine(home) if check.state == PROBLEM]
    assert any(check.name == name and advice in check.advice for check in found), found


@pytest.mark.parametrize("revision, state", [("r9999", PROBLEM), (OLDER, OK)])
def test_a_store_of_another_schema_is_told(home: Path, revision: str, state: str) -> None:
    with closing(sqlite3.connect(home / "ravel.sqlite")) as raw:
        raw.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        raw.commit()
    with older_is_known():
        (check,) = [check for check in _examine(home) if check.name == "store"]
    assert (check.state, revision in check.detail) == (state, True)


def test_a_full_disk_is_a_problem_before_it_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, state in ((DISK_FREE_MIN - 1, PROBLEM), (DISK_FREE_MIN, WARNING), (1 << 40, OK)):
        monkeypatch.setattr(doctor, "free_space", lambda _, free=free: free)
        assert _states(_examine(home), "disk") == {state}
    (disk,) = [check for check in _examine(home) if check.name == "disk"]
    assert disk.detail.startswith("1.0 TiB are free; the store has "), "each in the unit that fits"
    assert not disk.detail.endswith("MiB"), "a new store is smaller than that, and not 0 MiB"


def test_a_store_on_a_disk_that_takes_no_writes_needs_no_backup(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise StorageError("unable to open database file")

    monkeypatch.setattr("node.care.doctor.read_store", refuse)
    monkeypatch.setattr(os, "access", lambda *_: False)
    advice = {check.name: check.advice for check in _examine(home) if check.state == PROBLEM}
    assert advice["folder"] == advice["store"] == UNWRITABLE_ADVICE


def test_a_clock_that_went_back_is_a_problem(home: Path) -> None:
    node = Node(home, "alice")  # its clock begins at 1,700,000,000 seconds
    node.create_repo()
    with node.replica.database.write() as connection:
        connection.execute(update(commits).values(received_at=int(NOW * 1000)))
    node.replica.close()
    assert _states(_examine(home, NOW - CLOCK_DRIFT_MAX_SECONDS), "clock") == {OK}
    assert _states(_examine(home, NOW - CLOCK_DRIFT_MAX_SECONDS - 1), "clock") == {PROBLEM}
    assert _states(_examine(home, RELEASED_AT - 1.0), "clock") == {PROBLEM}


def test_a_store_that_could_not_be_written_anew_when_it_was_sealed_is_a_warning(home: Path) -> None:
    Database(home, StoreKey(b"k" * 32)).close()
    assert _states(_examine(home), "store") == {OK}
    database = Database(home, StoreKey(b"k" * 32))
    with database.write() as connection:
        connection.execute(update(store_seal).values(is_clean=False))
    database.close()
    assert _states(_examine(home), "store") == {OK, WARNING}


def test_a_port_that_another_program_has_is_a_problem(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        create_home(tmp_path / "home", listen=f"127.0.0.1:{other.getsockname()[1]}", api="127.0.0.1:0")
        (found,) = [
            check for check in _examine(tmp_path / "home") if check.name == "ports" and check.state == PROBLEM
        ]
        assert "network.listen" in found.detail
        create_home(tmp_path / "web", listen="127.0.0.1:0", api="127.0.0.1:0")
        address = f"127.0.0.1:{other.getsockname()[1]}"
        set_key(tmp_path / "web" / CONFIG_NAME, "network.websocket_listen", address)
        (found,) = [
            check for check in _examine(tmp_path / "web") if check.name == "ports" and check.state == PROBLEM
        ]
        assert "network.websocket_listen" in found.detail


def _status(
    pending: int,
    *peers: tuple[str, str, str],
    source: str = "configured",
    unknown: int = 0,
    waiting: int = 0,
) -> NodeStatus:
    looked_at = {
        "key_use": {"displaced_at": None, "own_commits_came_at": None},
        "pending": pending,
        "peers": [
            {
                "peer": peer,
                "name": "",
                "newer_features": [],
                "older_features": [],
                "address": "a:1",
                "state": state,
                "last_error": "no answer",
                "source": source,
                "unknown_messages": unknown,
                "waiting_topics": waiting,
                "topics": [{"state": topic}],
            }
            for peer, state, topic in peers
        ],
    }
    return cast(NodeStatus, looked_at)  # the rest of it is not looked at


def test_unreachable_peers_and_stuck_topics_are_warnings() -> None:
    check = partial(doctor.check_peers, repos=_repos())
    assert {one.state for one in check(_status(0))} == {OK}
    assert [one.name for one in check(_status(0))] == ["topics"], "nobody is connected, and nobody need be"
    assert {one.state for one in check(_status(0, ("p", "connected", "in sync")))} == {OK}
    away = list(check(_status(0, ("p", "waiting", ""))))
    assert (away[0].state, "no answer" in away[0].detail) == (WARNING, True)
    learned = list(check(_status(0, ("p", "dialing", ""), source="introduction")))
    assert {one.state for one in learned} == {OK}, "nobody promised that it answers"
    both = list(check(_status(0, ("p", "waiting", ""), ("p", "connected", "in sync"))))
    assert {one.state for one in both} == {OK}, "it has dialed us"
    stuck = list(check(_status(3, ("p", "connected", "in sync"))))
    assert [one.name for one in stuck if one.state == WARNING] == ["topics"]
    other = list(check(_status(0, ("p", "connected", "not joined"), unknown=2)))
    assert (other[0].state, other[0].detail) == (
        WARNING,
        "p runs another Ravel: it sent 2 messages of kinds that this node does not know",
    )
    waiting = list(check(_status(0, ("p", "connected", "comparing"), waiting=7)))
    assert (waiting[0].state, waiting[0].detail) == (
        OK,
        "7 topics not compared yet with p: each takes its turn",
    )
    at_work = list(check(_status(3, ("p", "connected", "receiving"))))
    assert {one.state for one in at_work} == {OK}


def _relay(**other: int | None) -> RelayStatus:
    known = {"size": 10 << 20, "size_max": 100 << 20, "free": 1 << 30, "promised": 0, "blocks_damaged": 0}
    return cast(RelayStatus, {**known, "full_in_days": None, **other})  # the rest of it is not looked at


@pytest.mark.parametrize(
    "what, said",
    [
        ({}, ""),
        ({"full_in_days": 15}, ""),
        ({"full_in_days": 14}, "full in 14 days"),
        ({"free": 89 << 20}, "90.0 MiB more, and 89.0 MiB are free"),
        ({"promised": 101 << 20}, "101 MiB together"),
        ({"blocks_damaged": 1}, "damaged"),
    ],
)
def test_a_relay_warns_before_it_is_full(what: dict[str, int], said: str) -> None:
    found = list(doctor.check_relay(_relay(**what)))
    warnings = [one.detail for one in found if one.state == WARNING]
    assert len(warnings) == bool(said)
    assert said in "".join(warnings)
    assert found[-1].state == OK


def test_the_command_exits_with_what_it_found(home: Path) -> None:
    run = ["--home", str(home), "doctor"]
    good = CliRunner().invoke(app, [*run, "--json"])
    assert (good.exit_code, json.loads(good.output)["problems"]) == (0, 0)
    home.chmod(0o755)
    bad = CliRunner().invoke(app, run)
    assert bad.exit_code == ERROR_KINDS["unhealthy"].exit_code
    assert "chmod 700" in bad.output
    shutil.rmtree(home)
    with pytest.raises(ServiceError, match="no node"):
        examine(home)


def test_a_bundle_of_a_stopped_node_says_what_is_wrong(home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text("[log]\nlevel = 1\n")
    out = tmp_path / "bundle.tar.gz"
    names = write_bundle(home, out, int(NOW))
    assert out.stat().st_mode & 0o777 == 0o600
    with tarfile.open(out) as archive:
        assert archive.getnames() == [f"ravel-debug/{name}" for name in names]
        file = archive.extractfile("ravel-debug/configuration.json")
        assert file is not None
        assert json.load(file)["error"]["code"] == "bad_config"
    with pytest.raises(ServiceError) as caught:
        write_bundle(home, out, int(NOW))
    assert caught.value.code == "already_exists"


def test_a_bundle_names_nobody_as_this_user_does(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = with_petname(PeopleFile(), AnyId(b"u" * 32), "the boss", is_peer=False)
    write_people(home, with_petname(called, AnyId(b"p" * 32), "the boss's laptop", is_peer=True))
    said = "notes: the boss's laptop follows parts of it, and the boss wrote; the bossy one did not"
    monkeypatch.setattr(
        "node.care.debug_bundle.examine", lambda _: [Check("repos", WARNING, said, "ask the boss")]
    )
    write_bundle(home, tmp_path / "bundle.tar.gz", int(NOW))
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        file = archive.extractfile("ravel-debug/doctor.json")
        assert file is not None
        [check] = json.load(file)
    user, peer = id_text(AnyId(b"u" * 32))[:12], id_text(AnyId(b"p" * 32))[:12]
    assert check["detail"] == f"notes: {peer} follows parts of it, and {user} wrote; the bossy one did not"
    assert check["advice"] == f"ask {user}"


def test_discovery_on_loopback_alone_is_a_warning() -> None:
    everywhere = "0.0.0.0:7474"  # nothing listens
    said = [
        [one.state for one in doctor.check_discovery(NetworkConfig(listen=listen, discover_lan=is_on))]
        for listen, is_on in (("127.0.0.1:7474", True), (everywhere, True), ("127.0.0.1:7474", False))
    ]
    assert said == [[WARNING], [], []]


def test_a_search_index_of_other_commits_is_a_warning(home: Path) -> None:
    database = Database(home)
    with database.write() as connection:
        begin_index(connection, HashKey(b"k" * 32), 1)
    assert _states(_examine(home), "search") == set()
    with database.write() as connection:
        keep_upto(connection, 1)
    database.close()
    assert _states(_examine(home), "search") == {WARNING}


def test_what_keeps_a_store_over_its_bound_is_said(home: Path) -> None:
    status, bound = _status(0), StoreBound(size=3 << 30, size_max=1 << 30, days=90, state="under")
    for found in (None, bound, StoreBound({**bound, "state": "giving_up"})):
        status["storage_bound"] = found
        assert not list(check_bound(status))
    for state, said in (("alone", "once a member's computer"), ("stuck", "no other computer shows it")):
        status["storage_bound"] = StoreBound({**bound, "state": state})
        [check] = check_bound(status)
        assert check.state == WARNING
        assert check.detail.startswith("the store takes 3.0 GiB of the 1.0 GiB that it may: ")
        assert said in check.detail


def test_a_file_that_is_larger_than_the_bound_is_named(home: Path) -> None:
    """Pages that nothing uses do not count for the bound, and only `ravel gc` gives them back."""
    Database(home).close()
    (home / "packs").mkdir(exist_ok=True)
    (home / "packs" / ("a" * 32)).write_bytes(bytes(1 << 20))
    assert _states(_examine(home), "disk") == {OK}
    set_key(home / CONFIG_NAME, "storage.size_max", "1")
    assert WARNING in _states(_examine(home), "disk")


def test_a_key_that_is_used_elsewhere_is_named() -> None:
    status = _status(0)
    assert not list(check_keys_in_use(status))
    status["key_use"] = {"displaced_at": 1_800_000_000, "own_commits_came_at": 1_800_000_000}
    keys, commits = check_keys_in_use(status)
    assert (keys.state, commits.state) == (PROBLEM, WARNING)
    assert "another node uses this node's key" in keys.detail
    assert "another node uses your key" in commits.detail


@pytest.mark.parametrize(
    "authors, ahead, state, said",
    [
        (0, None, None, ""),
        (3, 200, None, ""),
        (1, 3 * 86_400, WARNING, "it is 3 d ahead of that of the member who writes now"),
        (2, -7200, PROBLEM, "it is 2 h 0 min behind that of the 2 members who write now"),
    ],
)
def test_a_clock_that_is_not_that_of_others_is_told(
    authors: int, ahead: int | None, state: str | None, said: str
) -> None:
    status = _status(0)
    status["clock"] = {"authors": authors, "ahead_seconds": ahead}
    checks = list(check_members_clocks(status))
    assert [(one.state, one.detail) for one in checks] == ([] if state is None else [(state, said)])


def _repos(**standing: object) -> RepoList:
    """One repo; what is not named of its standing is as it is where all is well."""
    well = {"state": "in_sync", "parts": [], "uncertain": "", "own_forks": 0, "epoch_due": False, "guests": 0}
    said = {**well, "held_at": 5, "unheld": 0, **standing}
    return cast(RepoList, {"repos": [{"name": "notes", "permission": "write", "standing": said}]})


def test_readers_who_are_no_members_are_told_and_are_no_fault() -> None:
    [found] = check_repos(_repos(guests=2))
    assert (found.state, found.detail) == (
        OK,
        "notes: at least 2 readers who are no member are connected, by a link",
    )
    assert "ravel repo renew" in found.advice


def test_who_signed_other_members_is_named_as_a_problem() -> None:
    [found] = check_repos(_repos(parts=[{"code": "false_checkpoint", "people": ["ben"]}]))
    assert (found.state, found.detail) == (
        PROBLEM,
        "notes: ben signed other members than follow from what is here",
    )
    assert "ravel repo checkpoints" in found.advice


@pytest.mark.parametrize(
    "standing, is_said",
    [
        ({}, False),
        ({"state": "cut_off"}, True),
        ({"state": "damaged"}, True),
        ({"state": "waiting"}, True),
        ({"state": "waiting", "uncertain": "this folder is a copy"}, False),  # said once, of all
        ({"state": "alone", "unheld": 3}, True),
        ({"state": "not_shared", "unheld": 3}, True),
        ({"state": "alone", "unheld": None, "held_at": None}, False),  # a repo of one's own
        ({"own_forks": 2}, True),
    ],
)
def test_repos_of_which_something_is_amiss_are_named(standing: dict[str, object], is_said: bool) -> None:
    found = list(check_repos(_repos(**standing)))
    assert [one.state for one in found] == ([WARNING] if is_said else [])
    assert all(one.advice for one in found)


def test_a_place_that_passed_on_is_no_fault() -> None:
    moved = _repos(state="former", parts=[{"code": "former", "people": ["Ann's phone"]}], epoch_due=True)
    assert [(one.state, one.detail) for one in check_repos(moved)] == [
        (OK, "notes: your place has passed to Ann's phone")
    ]


@pytest.mark.parametrize("state", ["former", "cut_off"])
def test_who_is_no_member_is_sent_to_no_peer_for_what_came_since(state: str) -> None:
    status = _status(3, ("p", "connected", "in sync"))
    (*_, ended) = doctor.check_peers(status, _repos(state=state))
    assert (ended.state, ended.advice) == (OK, "")
    assert "not for this computer: 3 commits" in ended.detail
    both = _repos(state=state)
    both["repos"] += _repos(state="waiting", parts=[{"code": "causes_missing", "count": 3, "people": []}])[
        "repos"
    ]
    (*_, stuck) = doctor.check_peers(status, both)
    assert stuck.state == WARNING


def test_who_shares_and_is_connected_to_nobody_is_warned() -> None:
    (warned,) = check_connected(_status(0, ("p", "waiting", "")), _repos())
    assert "no peer is connected" in warned.detail
    assert not list(check_connected(_status(0, ("p", "connected", "in sync")), _repos()))
    assert not list(check_connected(_status(0), _repos(held_at=None)))


def test_a_forecast_of_the_disk_is_made_of_what_the_store_has_got_lately(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = open_keys(home, no_passphrase)
    replica = Replica(home, keys.store_key)
    author = Author(replica, keys.user_seed, lambda: int(NOW * 1000))
    author.founding.create_repo("repo", "main")
    (branch,) = replica.tables.with_name("main")
    for number in range(6):
        author.write(branch, Post(f"post {number}"))
    with replica.database.write() as connection:
        nums = list(connection.execute(select(commits.c.num).order_by(commits.c.num.desc())).scalars())
        for ago, num in enumerate(nums):
            at = int(NOW * 1000) - ago * 5 * 86_400_000
            connection.execute(update(commits).where(commits.c.num == num).values(received_at=at))
    replica.close()
    assert _states(_examine(home), "forecast") == set(), (
        "all that there is came in the days that are looked at"
    )
    monkeypatch.setattr("storage.commits.growth.GROWTH_DAY_COUNT_MAX", 3)
    (check,) = (one for one in _examine(home) if one.name == "forecast")
    assert check.detail.startswith("disk: ")
    assert "at the pace of the last 11 days" in check.detail  # from the beginning of the first
    assert check.state == OK
