"""Compares a node with the rules as `tests/support/reference_membership.py` states them over plain sets: members and voids.

Nodes that all have the same wrong rule agree with one another. This tells.
"""

from collections.abc import Sequence
from typing import Final

from node.ingest.replica import load_blocks_of, open_stored
from protocol.body import (
    Adopt,
    Answer,
    Approve,
    Body,
    BranchAdd,
    BranchEdit,
    Checkpoint,
    Grant,
    Invite,
    Join,
    Offer,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
    Remove,
    RepoInit,
    Revoke,
    Tag,
    UnknownBody,
)
from protocol.commit import Commit
from protocol.content import Compaction
from protocol.ids import CommitId, UserId
from storage.commits.commits import TimelineRow
from tests.promise import checks
from tests.promise.people import Person
from tests.promise.world import Broken, World
from tests.support.reference_membership import ADMIN, MANAGE, READ, WRITE, Deed, Op, Reference
from tests.support.reference_membership import World as Judged
from verifier.tangle_kinds import GROUP

_OPERATIONS_MAX: Final = 150
"""Root branch commits up to which the reference, which is slow, is asked."""
Opened = tuple[TimelineRow, Commit, Body | UnknownBody]


def check_reference(world: World, person: Person) -> None:
    """Compare members and voids of a node with the reference. Raises Broken."""
    root = person.replica.root_branch(person.repo())
    opened = _open_all(person)
    roots = [one for one in opened if one[0].branch_num == root.num]
    if len(roots) > _OPERATIONS_MAX:
        return
    numbers = {row.commit_id: number for number, (row, _, _) in enumerate(roots)}
    authors = {row.commit_id: row.author for row, _, _ in roots}
    reference = Reference(lambda number: roots[number][0].commit_id)
    pasts: dict[CommitId, frozenset[int]] = {}
    for number, (row, _, body) in enumerate(roots):
        past = frozenset(numbers[ack] for ack in row.acks).union(*(pasts[ack] for ack in row.acks))
        pasts[row.commit_id] = past
        op = _as_op(row.author, body, past, numbers, authors)
        if not reference.admit(number, op):
            raise Broken(
                "as_the_rules_say",
                f"{person.name} accepted {checks.say_commit(world, row.commit_id)}, against M",
            )
    whole = frozenset(numbers.values())
    held = {_name(user): int(level) for user, level in person.replica.members(person.repo()).items()}
    told = reference.members(whole)
    if held != told:
        names = {_name(one.user): name for name, one in world.people.items()}
        said = [
            f"{names.get(user, user)}: {held.get(user, 0)}, not {told.get(user, 0)}"
            for user in sorted({*held, *told})
            if held.get(user) != told.get(user)
        ]
        raise Broken("as_the_rules_say", f"members at {person.name}: {', '.join(said)}")
    _check_voids(world, person, opened, roots, numbers, pasts, reference.world(whole))


def _open_all(person: Person) -> list[Opened]:
    replica, rows = person.replica, checks.rows_of(person)
    found: list[Opened] = []
    with replica.database.read() as connection:
        blocks = load_blocks_of(connection, rows)
        for row in rows:
            commit, body = open_stored(replica, row, blocks[row.num])
            found.append((row, commit, body))
    return found


def _name(user: UserId) -> str:
    return user.hex()


def _as_op(
    author: UserId,
    body: Body | UnknownBody,
    past: frozenset[int],
    numbers: dict[CommitId, int],
    authors: dict[CommitId, UserId],
) -> Op:
    name = _name(author)
    match body:
        case RepoInit():
            return Op(name, past, "found", names=tuple(map(_name, body.owners)))
        case Grant():
            return Op(name, past, "grant", _name(body.user), body.permission)
        case Remove():
            return Op(name, past, "remove", _name(body.user), body.keeps or 0)
        case Invite():
            return Op(name, past, "invite", level=body.permission, uses=body.uses)
        case Join():
            return Op(name, past, "join", target=numbers.get(body.invitation, -1))
        case Revoke():
            return Op(name, past, "revoke", target=numbers.get(body.invitation, -1))
        case Quorum():
            names = tuple(map(_name, body.signers))
            return Op(name, past, "quorum", level=body.threshold, names=names, covers=body.removals)
        case ProposeRemoval():
            return Op(name, past, "propose", _name(body.user), body.keeps or 0)
        case ProposeCheckpoint():
            return Op(name, past, "propose")
        case Approve():
            return Op(name, past, "approve", target=numbers.get(body.proposal, -1))
        case BranchAdd() | BranchEdit() | Tag():
            return Op(name, past, level=MANAGE)
        case Adopt():
            return Op(name, past, level=ADMIN)
        case Offer():
            return Op(name, past, level=READ)
        case Answer():
            is_own = authors.get(body.offer) == author
            if is_own and not body.accepts:
                return Op(name, past, "withdraw", target=numbers.get(body.offer, -1))
            return Op(name, past, level=ADMIN)
        case _:  # an init that is due needs write alone
            return Op(name, past, level=WRITE)


def _check_voids(
    world: World,
    person: Person,
    opened: Sequence[Opened],
    roots: Sequence[Opened],
    numbers: dict[CommitId, int],
    pasts: dict[CommitId, frozenset[int]],
    judged: Judged,
) -> None:
    removals = [
        (numbers[row.commit_id], body)
        for row, _, body in roots
        if isinstance(body, Remove) and body.user != row.author and judged.counts(numbers[row.commit_id])
    ]
    adopted = {
        (body.branch, one)
        for row, _, body in roots
        if isinstance(body, Adopt) and judged.counts(numbers[row.commit_id])
        for one in body.commits
    }
    content = {
        row.commit_id: (row, commit, body) for row, commit, body in opened if row.commit_id not in numbers
    }
    for row, commit, body in content.values():
        if isinstance(body, Checkpoint):
            continue
        place = commit.place(GROUP)
        seen = () if place is None else place.previous
        past = frozenset(numbers[one] for one in seen).union(*(pasts[one] for one in seen))
        named_by = frozenset(
            number
            for number, removal in removals
            if removal.user == row.author
            and any(
                end.branch == commit.branch_id and _is_named(row, end.sequence, end.commit, content, person)
                for end in removal.feeds
            )
        )
        needs = Permission.MANAGE if isinstance(body, Compaction) else Permission.WRITE
        is_void = (
            not judged.may(Deed(_name(row.author), past, named_by), needs)
            and (commit.branch_id, row.commit_id) not in adopted
        )
        if is_void != row.is_void:
            raise Broken(
                "as_the_rules_say",
                f"at {person.name} {checks.say_commit(world, row.commit_id)} is {'void' if row.is_void else 'not void'}",
            )


def _is_named(
    row: TimelineRow, sequence: int, commit_id: CommitId, content: dict[CommitId, Opened], person: Person
) -> bool:
    """N2: whether an end of a removal names a commit of the removed member in its branch."""
    feed = {
        one: opened
        for one, opened in content.items()
        if (opened[0].author, opened[0].branch_num) == (row.author, row.branch_num)
    }
    at = feed.get(commit_id)
    if at is None or at[1].content.feed_sequence != sequence:
        places = [
            one.content.feed_sequence for _, one, _ in feed.values() if one.content.feed_sequence <= sequence
        ]
        return len(places) == len(set(places)) and content[row.commit_id][1].content.feed_sequence <= sequence
    while at is not None:
        if at[0].commit_id == row.commit_id:
            return True
        previous = at[1].content.feed_previous
        before = None if previous is None else feed.get(previous)
        is_next = before is not None and before[1].content.feed_sequence == at[1].content.feed_sequence - 1
        at = before if is_next else None
    return False
