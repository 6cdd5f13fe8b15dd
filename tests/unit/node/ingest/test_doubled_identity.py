"""A user who wrote elsewhere writes here once a peer was compared, however the user came to this folder."""

import errno
import os
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from node.authoring import feed_writer as feed_writer_module
from node.care.backup import create_backup, restore_backup
from node.care.doctor import examine
from node.home.folder_mark import MARK_NAME, is_copy, note_copy, store_name, write_mark
from node.home.home import create_home
from node.home.key_file import fresh_keys
from node.ingest.acceptance import accept_own
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch
from node.runtime.errors import ServiceError
from node.sync.feed_recovery import FeedRecovery
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication
from storage.commits.feeds import count_forks_of, load_feeds
from storage.engine import losses
from storage.engine.losses import read_loss
from storage.repos.repos import Branch
from tests.support.batches import accept_whole
from tests.support.builders import publications_of
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, together, until_equal


def _by_words(alice: Path, home: Path) -> None:
    seed = Node(alice.parent / "scratch", "alice").user_seed
    create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0", keys=fresh_keys(seed), is_recovered=True)


def _by_backup(alice: Path, home: Path) -> None:
    create_backup(alice, alice.parent / "backup", 1_700_000_000)
    restore_backup(alice.parent / "backup", home)


def _by_tar(alice: Path, home: Path) -> None:
    """Copy a folder as into the volume of a container."""
    archive = alice.parent / "home.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(alice, ".")
    with tarfile.open(archive) as tar:
        tar.extraction_filter = lambda member, _: member  # 3.11.2 has no argument for it, and 3.12 wants one
        tar.extractall(home)  # noqa: S202  # made just now


def _by_keys_alone(alice: Path, home: Path) -> None:
    home.mkdir()
    for name in ("config.toml", "keys.json", "api-token"):
        shutil.copy(alice / name, home / name)


@dataclass(frozen=True)
class Origin:
    """Origin of a folder's user; `has_repo`: the store came along."""

    make: Callable[[Path, Path], object]
    said: str
    has_repo: bool


ORIGINS = {
    "words, or a file of `key export`": Origin(_by_words, "your key is older than this node", False),
    "a backup": Origin(_by_backup, "restored from a backup of 2023-11-14 22:13 UTC", True),
    "a copied folder": Origin(shutil.copytree, "this folder is a copy", True),
    "a folder that was copied into a container": Origin(_by_tar, "this folder is a copy", True),
    "a folder with the keys of another": Origin(_by_keys_alone, "your key is older than this node", False),
}


@pytest.fixture
def alice_home(tmp_path: Path) -> Path:
    """Make a folder for alice with all that a home has; its store is made by the test."""
    home = tmp_path / "alice"
    create_home(home, listen="127.0.0.1:0", api="127.0.0.1:0")
    return home


def _start(home: Path) -> Node:
    """Open it as a daemon does."""
    note_copy(home)
    return Node(home, "alice")


def _forks(node: Node) -> int:
    with node.replica.database.read() as connection:
        return sum(feed.forks for feed in load_feeds(connection, node.branch().num))


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS.keys())
async def test_a_user_who_wrote_elsewhere_forks_no_feed(
    tmp_path: Path, alice_home: Path, autojump_clock: MockClock, origin: Origin
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        alice.write(alice.branch(), "before")
        await together(alice, bob)
        origin.make(alice_home, tmp_path / "again")
        alice.write(alice.branch(), "since then")
        await together(alice, bob)
        whole = alice.digest(alice.branch())
        again = _start(tmp_path / "again")
        if not origin.has_repo:
            await again.joiner.follow(bob.capability())
        async with connected(again, bob):
            with pytest.raises(ServiceError, match=origin.said) as caught:
                await until_equal(again, bob, "root")
                again.author.write(again.branch(), Post("before a peer was compared"))
            assert caught.value.code == "feed_uncertain"
            await FeedRecovery(again.hub).settle_all()
            assert again.digest(again.branch()) == whole
            again.write(again.branch(), "behind what others hold")
            await until_equal(again, bob)
        assert _forks(bob) == _forks(again) == 0
        # What comes by a further link is looked for, too: the user may have written there.
        other, _ = bob.author.founding.create_repo("other")
        link = bob.invite(other)
        await again.joiner.begin(link)
        assert again.replica.own_feeds.uncertain == {other.repo_id}
        again.replica.close()
        again.open()
        assert again.replica.own_feeds.uncertain == {other.repo_id}, "a restart does not change that"
        again.replica.close()


def test_a_folder_that_was_renamed_or_mounted_elsewhere_is_no_copy(tmp_path: Path, alice_home: Path) -> None:
    alice = _start(alice_home)
    _, branch = alice.create_repo()
    alice.replica.close()
    alice_home.rename(tmp_path / "moved")
    (tmp_path / "link").symlink_to(tmp_path / "moved")
    again = _start(tmp_path / "link")
    again.write(branch, "at once")
    again.replica.close()
    assert read_loss(tmp_path / "moved") is None


def test_a_restored_latest_backup_and_a_folder_without_a_mark_are_no_copies(
    tmp_path: Path, alice_home: Path
) -> None:
    alice = _start(alice_home)
    alice.create_repo()
    create_backup(alice_home, tmp_path / "backup", 1_700_000_000)
    assert not (tmp_path / "backup" / MARK_NAME).exists()
    restore_backup(tmp_path / "backup", tmp_path / "latest", is_latest=True)
    note_copy(tmp_path / "latest")
    assert read_loss(tmp_path / "latest") is None
    alice.replica.close()
    (alice_home / MARK_NAME).unlink()  # as a Ravel without marks left it
    note_copy(alice_home)
    assert read_loss(alice_home) is None
    assert (alice_home / MARK_NAME).exists()


def test_a_mark_that_names_another_inode_or_nothing_is_that_of_a_copy(tmp_path: Path) -> None:
    for change, is_copied in (
        (lambda inode, generation: f"{int(inode) + 1} {generation}", True),
        (lambda inode, _: f"{inode} 0", False),  # written where generations are not told
        (lambda inode, _: inode, True),
        (lambda *_: "\xff nothing", True),
        (lambda *_: "9" * 1000, True),
    ):
        (tmp_path / "lost-writes.json").unlink(missing_ok=True)
        write_mark(tmp_path)
        mark = tmp_path / MARK_NAME
        mark.write_text(change(*mark.read_text().split()))
        note_copy(tmp_path)
        assert (read_loss(tmp_path) is not None) == is_copied
        assert is_copy(tmp_path) is False, "it names this one now, and is not said again"


@pytest.mark.parametrize(
    "kind, is_copied", [("ext4", True), ("vfat", False), ("fuse.sshfs", False), ("fuseblk", False)]
)
def test_where_files_are_numbered_anew_at_each_mount_a_number_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_copied: bool
) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "22 1 0:0 / /proc rw - vfat none rw\n"
        f"23 1 {os.major(device)}:{os.minor(device)} / / rw,relatime shared:1 - {kind} /dev/sdb1 rw\n"
    )
    monkeypatch.setattr("node.home.folder_mark._MOUNTS", mounts)
    write_mark(tmp_path)
    (tmp_path / MARK_NAME).write_text("1 2\n")
    assert is_copy(tmp_path) is is_copied


def test_a_copy_is_named_by_doctor_before_it_is_started(tmp_path: Path, alice_home: Path) -> None:
    assert not [one for one in examine(alice_home) if one.name == "own feeds"]
    shutil.copytree(alice_home, tmp_path / "again")
    (check,) = [one for one in examine(tmp_path / "again") if one.name == "own feeds"]
    assert "copy" in check.detail


async def test_a_store_that_a_snapshot_brought_back_is_noticed_when_own_commits_come(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    # The same inodes with older content: nothing in the folder tells. The first own commit from a peer does.
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await together(alice, bob)
        alice.replica.close()
        before = {path: path.read_bytes() for path in (tmp_path / "alice").glob("ravel.sqlite*")}
        alice.open()
        for number in range(3):
            alice.write(alice.branch(), f"post {number}")
        await together(alice, bob)
        whole = alice.digest(alice.branch())
        alice.replica.close()
        for path in (tmp_path / "alice").glob("ravel.sqlite*"):
            if path in before:
                with path.open("r+b") as file:
                    file.truncate(0)
                    file.write(before[path])
            else:
                path.unlink()
        alice.open()
        assert not alice.replica.own_feeds.uncertain
        async with connected(alice, bob):
            await until_equal(alice, bob)
            assert alice.digest(alice.branch()) == whole
            assert alice.replica.own_feeds.elsewhere_at is not None
            with pytest.raises(ServiceError, match="set back, or another one uses your key"):
                alice.author.write(alice.branch(), Post("there may be more"))
            await FeedRecovery(alice.hub).settle_all()
            alice.write(alice.branch(), "behind them")
            await until_equal(alice, bob)
        assert _forks(bob) == 0


async def test_two_nodes_of_one_user_that_write_apart_are_told_of_their_forks(
    tmp_path: Path, alice_home: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await together(alice, bob)
        alice.replica.close()
        shutil.copytree(alice_home, tmp_path / "again")
        again = Node(tmp_path / "again", "alice")  # by a Ravel that looks at no mark
        alice.open()
        alice.write(alice.branch(), "here")
        again.write(again.branch(), "and there")
        await together(alice, bob)
        await together(again, bob)
        for node in (again, bob):
            with node.replica.database.read() as connection:
                repo = next(iter(node.replica.repos))
                assert count_forks_of(connection, alice.author.user) == {repo: 1}
                assert count_forks_of(connection, bob.author.user) == {}
        assert again.replica.own_feeds.elsewhere_at is not None
        again.replica.close()


def _set_back(tmp_path: Path) -> tuple[Node, Branch, list[bytes]]:
    """Make a node whose folder is an older one of alice's, with what alice has published since."""
    alice = Node(tmp_path / "alice", "alice")
    _, branch = alice.create_repo()
    alice.replica.close()
    shutil.copytree(tmp_path / "alice", tmp_path / "again")
    alice.open()
    alice.write(branch, "since then")
    new = publications_of(alice.replica, branch)[1:]
    alice.replica.close()
    return Node(tmp_path / "again", "alice"), branch, new


def test_a_write_that_waits_while_own_commits_come_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was encoded before they were here, for a place of the feed that one of them has.
    again, branch, new = _set_back(tmp_path)

    def after_they_came(*args: Any, **options: Any) -> IngestResult:  # noqa: ANN401  # as the real one
        _take(again, new)
        return accept_own(*args, **options)

    monkeypatch.setattr(feed_writer_module, "accept_own", after_they_came)
    with pytest.raises(ServiceError, match="set back, or another one uses your key"):
        again.author.write(branch, Post("at the same place"))
    assert _forks(again) == 0
    again.replica.close()


def test_that_own_commits_came_is_known_before_the_next_writer_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, branch, new = _set_back(tmp_path)
    show, known = again.replica.show, list[bool]()

    def look(*args: Any) -> None:  # noqa: ANN401  # as the real one
        known.append(branch.facts.repo_id in again.replica.own_feeds.uncertain)
        show(*args)

    monkeypatch.setattr(again.replica, "show", look)
    _take(again, new)
    assert known == [True]
    again.replica.close()


def test_own_commits_that_came_keep_writes_waiting_though_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, branch, new = _set_back(tmp_path)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(losses, "write_loss", fail)
        _take(again, new)
    for _ in range(2):
        with pytest.raises(ServiceError, match="set back, or another one uses your key"):
            again.author.write(branch, Post("there may be more"))
        again.replica.own_feeds.note_elsewhere(branch.facts.repo_id, 0)  # there is room now
    again.replica.close()
    again.open()
    assert again.replica.own_feeds.uncertain == {branch.facts.repo_id}
    again.replica.close()


def _take(node: Node, items: list[bytes]) -> None:
    """Take publications in as from a peer."""
    (topic,) = {decode_publication(item).topic for item in items}
    known = node.replica.by_topic[topic]
    assert accept_whole(node.replica, known, open_batch(known, items), 0).accepted


def test_own_writes_and_others_commits_are_nothing_from_elsewhere(tmp_path: Path) -> None:
    node = Node(tmp_path, "alice")
    _, branch = node.create_repo()
    node.write(branch, "mine")
    assert node.replica.own_feeds.elsewhere_at is None
    assert os.listdir(tmp_path).count("lost-writes.json") == 0
    node.replica.close()


def test_a_store_has_its_name_until_it_is_copied(tmp_path: Path) -> None:
    first, copy = tmp_path / "first", tmp_path / "copy"
    first.mkdir()
    write_mark(first)
    name = store_name(first)
    shutil.copytree(first, copy)
    note_copy(copy)
    note_copy(first)
    assert store_name(copy) != name
    first.rename(tmp_path / "moved")
    assert store_name(tmp_path / "moved") == name
