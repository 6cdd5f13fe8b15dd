"""What root branches say of members and epochs, as rows of an export: opened, judged, and told without what opens anything.

Each repo's membership is built as at the daemon's start, from the same moment of the store as the rest of the export; all
are in memory at once, as they are there. A repo of which a root commit is awaited has no rows until that is back.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from sqlalchemy import Connection, select

from node.replica import load_membership, load_tables
from protocol.body import Grant, Invite, Join, Permission, Remove, RepoInit, body_kind
from protocol.epochs import EpochAdd, EpochInit
from storage.blocks import DamagedBlock
from storage.export import Rights
from storage.export_parts import ROWS_PER_GROUP
from storage.export_rows import Pseudonym
from storage.export_schema import MEMBERS, MEMBERSHIPS
from storage.schema import commits
from storage.streaming import stream_rows
from verifier.devices import find_persons
from verifier.epochs import why_started
from verifier.membership import Membership
from verifier.operations import Operation, Operations


class _Judged(NamedTuple):
    """A repo's membership, and the number of its root branch."""

    repo_id: bytes
    branch_num: int
    membership: Membership


class _Effect(NamedTuple):
    """What an operation says of one member or one epoch: the columns of MEMBERSHIPS between `operation` and `counts`."""

    member: bytes | None = None
    permission: Permission | None = None
    epoch: bytes | None = None
    reason: str | None = None
    sealed_to: int | None = None


def open_rights(connection: Connection, pseudonym: Pseudonym | None) -> Rights:
    """The rows of `memberships` and `members`, of all repos whose root branches are here. Raises StorageError."""
    told = pseudonym or _themselves
    is_whole = True
    tables = load_tables(connection)
    judged: list[_Judged] = []
    for branch in tables.branches.values():
        repo = tables.repos[branch.repo_num]
        if not branch.facts.is_root_branch or not repo.has_members:
            continue
        try:
            membership = load_membership(connection, tables, repo.repo_id)
        except DamagedBlock:  # the daemon asks peers for it, and says so
            is_whole = False
            continue
        judged.append(_Judged(repo.repo_id, branch.num, membership))
    rows = {
        "memberships": _batches(MEMBERSHIPS, _membership_rows(connection, judged, told)),
        "members": _batches(MEMBERS, _member_rows(judged, told)),
    }
    return Rights(rows, is_whole)


def _themselves(user: bytes) -> bytes:
    return user


def _membership_rows(
    connection: Connection, judged: list[_Judged], told: Pseudonym
) -> Iterator[tuple[object, ...]]:
    for repo_id, branch_num, membership in judged:
        now, operations = membership.now(), membership.operations
        query = select(commits.c.num, commits.c.commit_id).where(commits.c.branch_num == branch_num)
        for num, commit_id in stream_rows(connection, query.order_by(commits.c.num), ROWS_PER_GROUP):
            operation = operations[commit_id]
            kind, counts = body_kind(operation.body), now.counts(operation)
            for member, permission, *of_epoch in _effects(operations, operation):
                yield (
                    num,
                    commit_id,
                    repo_id,
                    kind,
                    None if member is None else told(member),
                    None if permission is None else permission.name.lower(),
                    *of_epoch,
                    counts,
                )


def _effects(operations: Operations, operation: Operation) -> list[_Effect]:
    body, own_id = operation.body, operation.commit_id
    match body:
        case RepoInit():
            reason = why_started(operations, operation)
            return [
                _Effect(owner, Permission.OWNER, own_id, reason, len(body.owners)) for owner in body.owners
            ]
        case Grant():
            return [_Effect(body.user, body.permission)]
        case Join():
            return [_Effect(operation.author, operations.granted(operation))]
        case Remove():
            return [_Effect(body.user, body.keeps)]
        case Invite():
            return [_Effect(permission=body.permission)]
        case EpochInit():
            reason = why_started(operations, operation)
            return [_Effect(epoch=own_id, reason=reason, sealed_to=len(body.boxes))]
        case EpochAdd():
            return [_Effect(epoch=body.epoch, sealed_to=len(body.boxes))]
    return [_Effect()]


def _member_rows(judged: list[_Judged], told: Pseudonym) -> Iterator[tuple[object, ...]]:
    for repo_id, _, membership in judged:
        now = membership.now()
        persons = find_persons(now, membership.device_words)
        for user, held in now.members().items():
            person = persons.get(user)
            yield repo_id, told(user), held.name.lower(), None if person is None else told(person)


def _batches(schema: pa.Schema, rows: Iterator[tuple[object, ...]]) -> Iterator[pa.RecordBatch]:
    some: list[tuple[object, ...]] = []
    for row in rows:
        some.append(row)
        if len(some) == ROWS_PER_GROUP:
            yield _batch(schema, some)
            some = []
    if some:
        yield _batch(schema, some)


def _batch(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
