"""Builds tangles of a repo in memory on request, and returns their latest part.

What is grown is bounded, since a whole tangle is held for as long as the answer takes.
"""

from dataclasses import dataclass
from typing import TypedDict

from sqlalchemy import Connection

from node.ingest.replica import Replica, load_blocks_of, open_stored
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.scuttlebutt.threads import THREAD, source_of, thread_kind
from protocol.formats.body import Body, UnknownBody, body_kind
from protocol.formats.commit import Commit
from protocol.formats.content import Imported
from protocol.formats.text import id_text
from protocol.ids import CommitId, EpochId, UserId
from protocol.limits.users import TANGLE_SHOWN_COMMITS_MAX
from ravel.types.timelines import TangleView
from storage.commits.commits import TimelineRow, count_commits, iterate_arrivals
from storage.repos.repos import Branch, Repo
from verifier.tangle_kinds import TANGLE_KINDS, KindTangle, TangleKind, TangleScope

_LOADED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Stored:
    """An accepted commit and its body (`ReadCommit`), with what the store knows of it."""

    commit: Commit
    body: Body | UnknownBody
    row: TimelineRow


@dataclass(frozen=True, slots=True)
class TangleQuestion:
    """Tangle of a repo that is asked for, and how many commits of its end.

    `branch` is that of a branch's or a feed's tangle, `author` that of a feed's (empty: this user), `epoch` (id or
    prefix; empty: the one that is written in) that of the members'; `message` is the root of a thread of imported
    messages, `name` what these call such tangles. The others begin at the repo's init.
    """

    kind: str
    limit: int
    branch: str = "main"
    author: str = ""
    epoch: str = ""
    message: str = ""
    name: str = THREAD


def show_tangle(
    replica: Replica, repo: Repo, question: TangleQuestion, branch: Branch, author: UserId
) -> TangleView:
    """List the last commits, in canonical order, of one tangle of a repo, and what each follows in it.

    `branch` and `author` are those that the question names. Raises ServiceError `bad_request`, `not_found`, `too_large`.
    """
    kinds, kind_name = TANGLE_KINDS, question.kind
    if kind_name not in (*kinds, THREAD):
        raise ServiceError("bad_request", f"a kind is one of {', '.join(kinds)}, {THREAD}, not {kind_name!r}")
    match TangleScope.REPO if kind_name == THREAD else kinds[kind_name].scope:
        case TangleScope.BRANCH:
            sources = [branch]
        case TangleScope.ROOT_BRANCH:
            sources = [replica.root_branch(repo)]
        case TangleScope.REPO:
            sources = replica.branches_in(repo.num)
    begin: CommitId | None = _find_epoch(replica, repo, question.epoch) if kind_name == "members" else None
    with replica.database.read() as connection:
        if sum(count_commits(connection, one.num) for one in sources) > TANGLE_SHOWN_COMMITS_MAX:
            raise ServiceError(
                "too_large",
                f"it may have more than {TANGLE_SHOWN_COMMITS_MAX} commits",
                "export it, and use Spark",
            )
        stored = _load(replica, connection, sources)
    if kind_name == "feed":
        stored = [one for one in stored if one.row.author == author]
    if kind_name == THREAD:
        messages = _messages(stored)
        begin = messages.get(question.message)
        if begin is None:
            raise ServiceError(
                "not_found",
                f"no message {question.message!r} was imported",
                "name the one that begins the thread, as %...sha256: `ravel import ssb`",
            )
        tangle, rows = _grow(thread_kind(question.name, messages), stored, begin)
    else:
        tangle, rows = _grow(kinds[kind_name], stored, begin)
    if tangle is None:
        raise ServiceError("not_found", "there is no commit of that tangle here")
    graph = tangle.graph
    shown = list(graph.in_order())[-question.limit :]
    return {
        "kind": kind_name,
        "root": id_text(graph.root),
        "count": len(graph),
        "tips": [id_text(tip) for tip in graph.tips()],
        "commits": [
            {
                "commit": id_text(commit_id),
                "rank": graph.rank(commit_id),
                "previous": [id_text(previous) for previous in graph.previous(commit_id)],
                "author": id_text(rows[commit_id].row.author),
                "author_name": replica.people.name(repo.repo_id, rows[commit_id].row.author),
                "body": body_kind(rows[commit_id].body),
                "time": rows[commit_id].row.timestamp // 1000,
                "void": rows[commit_id].row.is_void,
                "tip": graph.is_tip(commit_id),
                "branch": graph.is_branch(commit_id),
                "merge": graph.is_merge(commit_id),
                **_imported_fields(rows[commit_id]),
            }
            for commit_id in shown
        ],
    }


def _messages(stored: list[_Stored]) -> dict[str, CommitId]:
    """Map each imported message to the commit that keeps it, the first where there are several."""
    found: dict[str, CommitId] = {}
    for one in stored:
        source = source_of(one)
        if source is not None:
            found.setdefault(source, one.row.commit_id)
    return found


class _ImportedFields(TypedDict, total=False):
    source: str
    imported_author: str


def _imported_fields(one: _Stored) -> _ImportedFields:
    if not isinstance(one.body, Imported):
        return {}
    return {"source": one.body.source_id, "imported_author": one.body.author}


def _find_epoch(replica: Replica, repo: Repo, text: str) -> EpochId:
    if not text:
        return replica.writing_epoch(repo).epoch_id
    with replica.membership_lock:
        epochs = replica.membership(repo.repo_id).operations.epochs
        return resolve("epoch", text, [(one.commit_id, "", one.started_epoch) for one in epochs])


def _load(replica: Replica, connection: Connection, sources: list[Branch]) -> list[_Stored]:
    """Load all commits of some branches, causes first."""
    loaded: list[_Stored] = []
    arrivals = list(iterate_arrivals(connection, [branch.num for branch in sources]))
    for start in range(0, len(arrivals), _LOADED_AT_ONCE):
        rows = arrivals[start : start + _LOADED_AT_ONCE]
        blocks = load_blocks_of(connection, rows)
        loaded += [_Stored(*open_stored(replica, row, blocks[row.num]), row) for row in rows]
    return loaded


def _grow(
    kind: TangleKind, stored: list[_Stored], begin: CommitId | None
) -> tuple[KindTangle | None, dict[CommitId, _Stored]]:
    """Return the tangle whose root is `begin`, else the first commit that is given; and all commits by id."""
    kept = {one.row.commit_id: one for one in stored}
    root = kept.get(begin) if begin is not None else next(iter(stored), None)
    if root is None:
        return None, kept
    tangle = KindTangle(kind, root)
    for one in stored:
        if one is not root:
            tangle.add(one)
    return tangle, kept
