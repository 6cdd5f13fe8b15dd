"""The repo that attackers attack, and what each of them knows of it.

The victim owns the repo. Beside it there are a writer, a reader (a member who may not write), and a user whom the victim
excluded: the exclusion started a second epoch, so there are the topics of an old one and of the present one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, Target, WrittenCommit, aim
from node.ingest.replica import Replica
from protocol.crypto import signing
from protocol.crypto.keys import UserSeed
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.content import Post
from protocol.ids import CommitId, PeerId
from storage.commits.commits import load_places, load_timeline
from storage.repos.repos import Branch, Repo

WRITER: Final = UserSeed(b"hostile writer".ljust(32, b"-"))
READER: Final = UserSeed(b"hostile reader".ljust(32, b"-"))
EXCLUDED: Final = UserSeed(b"hostile excluded".ljust(32, b"-"))
"""Seeds of users who turned hostile."""
_WRITTEN_AT_ONCE: Final = 1000
_NAMES: Final = ("root", "main")


@dataclass(frozen=True, slots=True)
class Stage:
    """A repo with two epochs. Attackers use of it what their role knows.

    Targets say a branch, an epoch, and the writers' topic or the epoch's own.
    """

    victim: PeerId  # the node's key
    init_id: CommitId
    root: Target
    main: Target
    own_root: Target  # on the epoch's own topic, as who lacks the writers' secret
    old_root: Target  # in the first epoch
    old_main: Target
    old_own: Target
    seen: tuple[CommitId, ...]  # heads of the root branch
    seen_before: tuple[CommitId, ...]  # what the excluded user says to have seen: its own grant
    chain: tuple[CommitId, ...]  # commits of `main`, oldest first: each acks the one before
    root_chain: tuple[CommitId, ...]  # the same of the root branch
    ranks: Mapping[CommitId, int]  # of both


def set_up(replica: Replica, author: Author, repo: Repo, length: int) -> CommitId:
    """Admit the hostile users, write `length` posts in two epochs, and exclude one user; the id of that user's grant."""
    root = replica.root_branch(repo)
    main = next(one for one in replica.branches.values() if one.name == "main")
    users = {seed: signing.key_pair(seed)[0] for seed in (WRITER, READER, EXCLUDED)}
    author.write(root, Grant(users[WRITER], Permission.WRITE))
    author.write(root, Grant(users[READER], Permission.READ))
    granted, _ = author.write(root, Grant(users[EXCLUDED], Permission.WRITE))
    _write_posts(author, main, length // 4)
    author.write(root, Remove(users[EXCLUDED], None, ()))
    author.write(main, Post("in the second epoch"))
    _write_posts(author, main, length - length // 4)
    return granted.commit_id


def _write_posts(author: Author, branch: Branch, count: int) -> None:
    for start in range(0, count, _WRITTEN_AT_ONCE):
        texts = [f"post {start + one}" for one in range(min(_WRITTEN_AT_ONCE, count - start))]
        author.write_many(branch, partial(_same, [Draft(Post(text)) for text in texts]), _nothing_more)


def stage_of(replica: Replica, victim: PeerId, repo: Repo, granted: CommitId) -> Stage:
    """What there is to know of a furnished repo. `victim` is the node's key, `granted` what `set_up` gave."""
    root, main = (next(one for one in replica.branches_in(repo.num) if one.name == name) for name in _NAMES)
    with replica.database.read() as connection:
        chain, root_chain = (
            tuple(row.commit_id for row in load_timeline(connection, one.num, 0, 1_000_000))
            for one in (main, root)
        )
        ranks = {one: place.rank for one, place in load_places(connection, (*chain, *root_chain)).items()}
    first, *_, present = replica.tables.held_epochs(repo.num).values()
    return Stage(
        victim,
        repo.init_id,
        aim(root.facts, root.num, present),
        aim(main.facts, main.num, present),
        Target(root.facts, root.num, present, by_writer=False),
        aim(root.facts, root.num, first),
        aim(main.facts, main.num, first),
        Target(root.facts, root.num, first, by_writer=False),
        root_chain[-1:],
        (granted,),
        chain,
        root_chain,
        ranks,
    )


def _same(drafts: Sequence[Draft], _connection: Connection) -> Sequence[Draft]:
    return drafts


def _nothing_more(_connection: Connection, _written: Sequence[WrittenCommit]) -> None:
    """Nothing else belongs into the transaction."""
