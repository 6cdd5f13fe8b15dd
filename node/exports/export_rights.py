"""Exports memberships and epochs of each repo as rows, without secrets.

Each repo's membership is built as at the daemon's start, from the same moment of the store as the rest of the export, and
one is in memory at a time. A repo whose root branch cannot be opened for damage has no rows, and is counted instead.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, select

from node.ingest.replica import open_membership
from node.ingest.stored_commits import UNREADABLE
from node.ingest.tables import Tables, load_tables
from protocol.formats.body import (
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Move,
    Permission,
    RecoveryGrant,
    Remove,
    RepoInit,
    body_kind,
)
from protocol.formats.epochs import EpochHand, EpochInit
from protocol.ids import CommitId, EpochId, RepoId, UserId
from storage.commits.damaged import find_damaged_in
from storage.engine.queries import stream_rows
from storage.export.export import RepoRights, Unjudged
from storage.export.parts import ROWS_AT_ONCE, ExportRow
from storage.export.rows import Pseudonym
from storage.repos.repos import Branch
from storage.schema.schema import commits
from verifier.devices import find_persons
from verifier.epochs import box_holders, epoch_reason
from verifier.membership import Membership
from verifier.operations import Operation, Operations
from verifier.places import find_agreed, find_heirs, find_moves, find_recovered
from verifier.tangle import Tangle
from verifier.tangle_kinds import ABOUT_MEMBERS, EPOCH, MEMBERS, STARTS_EPOCH


class _Effect(NamedTuple):
    """Columns of MEMBERSHIPS between `operation` and `counts`: one operation's effect on one member or epoch."""

    member: UserId | None = None
    permission: Permission | None = None
    epoch: EpochId | None = None
    reason: str | None = None
    sealed_to: int | None = None


class _Place(NamedTuple):
    """Last columns of MEMBERSHIPS: a commit's place in a tangle of its root branch."""

    kind: str | None = None
    root: CommitId | None = None
    previous: list[CommitId] | None = None


def open_rights(connection: Connection, pseudonym: Pseudonym | None) -> Iterator[RepoRights | Unjudged]:
    """Yield the rows of each repo with members, to be read before the next is asked for; or why there are none.

    Raises StorageError.
    """
    tables = load_tables(connection)
    for root in tables.roots.values():
        if tables.repos[root.repo_num].has_members:
            yield _open_repo(connection, tables, root, pseudonym or _unchanged)


def _open_repo(
    connection: Connection, tables: Tables, root: Branch, told: Pseudonym
) -> RepoRights | Unjudged:
    try:
        membership = open_membership(connection, tables, root.facts.repo_id)
    except UNREADABLE:  # damage; a database that fails raises none of these
        return Unjudged(is_damaged_here=find_damaged_in(connection, root.num) is not None)
    return RepoRights(
        _membership_rows(connection, root, membership, told),
        _member_rows(root.facts.repo_id, membership, told),
    )


def _unchanged(user: UserId) -> UserId:
    return user


def _membership_rows(
    connection: Connection, root: Branch, membership: Membership, told: Pseudonym
) -> Iterator[ExportRow]:
    now, operations = membership.now(), membership.operations
    places = _find_places(operations)
    query = select(commits.c.num, commits.c.commit_id).where(commits.c.branch_num == root.num)
    for num, commit_id in stream_rows(connection, query.order_by(commits.c.num), ROWS_AT_ONCE):
        operation = operations[commit_id]
        kind, counts = body_kind(operation.body), now.counts(operation)
        for member, permission, *of_epoch in _effects(operations, operation):
            yield (
                num,
                commit_id,
                root.branch_id,
                kind,
                None if member is None else told(member),
                None if permission is None else permission.name.lower(),
                *of_epoch,
                counts,
                *places.get(commit_id, _Place()),
            )


def _find_places(operations: Operations) -> dict[CommitId, _Place]:
    """Return the places of commits in tangles of epochs and of members, as `KindTangle` has them. Costs O(operations).

    What lies between two commits of one epoch was published in that epoch too: a later one opens the earlier (V12). So
    each commit is in the tangle of epochs, and in that of its own epoch's members alone.
    """
    places: dict[CommitId, _Place] = {}
    of_epochs: Tangle | None = None
    of_members: dict[EpochId, Tangle] = {}
    seen: dict[EpochId, set[CommitId]] = {}
    for one in operations.since(0):
        acks = tuple(operations.previous(one.commit_id))
        starts = isinstance(one.body, STARTS_EPOCH)
        if of_epochs is None:
            of_epochs = Tangle(one.commit_id)
            places[one.commit_id] = _Place(EPOCH, one.commit_id, [])
        elif of_epochs.add(one.commit_id, acks, is_shown=starts):
            places[one.commit_id] = _Place(EPOCH, of_epochs.root, of_epochs.previous(one.commit_id))
        if starts:
            of_members[one.started_epoch] = Tangle(one.commit_id)
            seen[one.started_epoch] = {one.commit_id}
        if (tangle := of_members.get(one.epoch)) is None or tangle.root == one.commit_id:
            continue
        known = seen[one.epoch]
        is_shown = isinstance(one.body, ABOUT_MEMBERS)
        if tangle.add(one.commit_id, (ack for ack in acks if ack in known), is_shown=is_shown):
            places[one.commit_id] = _Place(MEMBERS, tangle.root, tangle.previous(one.commit_id))
        known.add(one.commit_id)
    return places


def _effects(operations: Operations, operation: Operation) -> list[_Effect]:
    body = operation.body
    match body:
        case RepoInit():
            reason = epoch_reason(operations, operation)
            return [
                _Effect(owner, Permission.OWNER, operation.started_epoch, reason, len(body.owners))
                for owner in body.owners
            ]
        case Grant() | DeviceGrant() | RecoveryGrant():
            return [_Effect(body.user, body.permission)]
        case Join():
            return [_Effect(operation.author, operations.granted(operation))]
        case Move():
            return [_Effect(operation.author), _Effect(body.user, operations.granted(operation))]
        case Remove():
            return [_Effect(body.user, body.keeps)]
        case Invite():
            return [_Effect(permission=body.permission)]
        case EpochInit():
            reason = epoch_reason(operations, operation)
            return [
                _Effect(epoch=operation.started_epoch, reason=reason, sealed_to=len(box_holders(operation)))
            ]
        case EpochHand():
            return [_Effect(epoch=body.epoch, sealed_to=len(body.boxes))]
    return [_Effect()]


def _member_rows(repo_id: RepoId, membership: Membership, told: Pseudonym) -> Iterator[ExportRow]:
    now = membership.now()
    words = membership.device_statements
    heirs = find_heirs(find_agreed(find_moves(membership.operations, now), words, now))
    persons = find_recovered(membership.operations, now, heirs) | find_persons(now, words, heirs)
    for user, held in now.members().items():
        person = persons.get(user)
        yield repo_id, told(user), held.name.lower(), None if person is None else told(person)
