"""Explains a commit's verdict: the rule and the commits that decided it."""

from collections.abc import Callable, Iterable
from typing import Final, NotRequired, TypedDict

from sqlalchemy import Connection

from node.ingest.publication_parsing import read_pending
from node.ingest.replica import Replica
from node.ingest.void_recheck import VoidRecheck
from node.runtime.errors import ServiceError
from node.runtime.resolve import PREFIX_SIZE_MIN
from protocol.codec import DecodeError
from protocol.formats.body import DeviceGrant, Grant, Join, Move, RecoveryGrant, Remove, RepoInit
from protocol.formats.text import id_text, parse_id_prefix
from protocol.ids import CommitId, UserId
from ravel.types.commits import VerdictFields, VerdictView, VoidView
from storage.commits.commits import load_facts
from storage.commits.lookup import FoundCommit, find_commits
from storage.commits.pending import load_one_pending
from storage.commits.void_marks import load_judged, load_void_ids
from storage.repos.repos import Branch
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.verify import find_causes
from verifier.void_rules import Void, find_adoption

_VOIDS_SHOWN_MAX: Final = 1000
_ID_SHOWN_LENGTH: Final = 12


class _Judged(TypedDict):
    """Subject of a verdict."""

    commit: str
    branch: str
    branch_name: str
    author: NotRequired[str]
    author_name: NotRequired[str]


def explain(replica: Replica, text: str) -> VerdictView:
    """Explain the verdict on the commit of that id or unique prefix. Raises ServiceError `not_found`, `ambiguous`."""
    with replica.membership_lock, replica.database.read() as connection:
        found = find_commit(connection, text)
        branch = replica.branches[found.branch_num]
        judged: _Judged = {
            "commit": id_text(found.commit_id),
            "branch": id_text(branch.branch_id),
            "branch_name": branch.name,
        }
        if found.state == "rejected":
            return {**judged, **_verdict("rejected", found.code, found.detail, [])}
        if found.state == "unread":
            return {**judged, **_verdict("unread", "", "its format version is not known to this node", [])}
        if found.state == "pending":
            causes = [id_text(cause) for cause in sorted(_find_missing(replica, connection, found.commit_id))]
            rule, reason = "V5", "commits that it follows are not here"
            if not causes:
                rule, reason = "E3", "the key of the epoch that it is about is not here"
            return {**judged, **_verdict("pending", rule, reason, causes)}
        if not branch.facts.has_members:
            reason = "a holder of the writers' secret published it; members are not known here"
            return {**judged, **_verdict("accepted", "V7", reason, [])}
        membership = replica.membership(branch.facts.repo_id)
        people, repo_id = replica.people, branch.facts.repo_id

        def who(user: UserId) -> str:
            return people.name(repo_id, user) or id_text(user)[:_ID_SHOWN_LENGTH]

        if branch.facts.is_root_branch:
            operation = membership.operations[found.commit_id]
            judged["author"] = id_text(operation.author)
            judged["author_name"] = people.name(repo_id, operation.author)
            return {**judged, **_explain_operation(membership, operation, who)}
        review = VoidRecheck(connection, replica.tables, branch.repo_num, membership)
        (commit,) = load_judged(connection, branch.num, [found.commit_id])
        judged["author"], judged["author_name"] = id_text(commit.author), people.name(repo_id, commit.author)
        adoption = find_adoption(membership, commit.commit_id, branch.branch_id)
        if adoption is not None:
            by = [id_text(adoption.commit_id)]
            return {**judged, **_verdict("accepted", "N3", "it was adopted", by)}
        void = review.find_reason(branch, commit)
        if void is not None:
            return {**judged, **_explain_void(void)}
        grants = membership.now().credentials_of(commit.author)
        by = [id_text(one.commit_id) for one in grants]
        return {**judged, **_verdict("accepted", "M5", _rests_on(grants, who), by)}


def list_voids(replica: Replica, branch: Branch) -> list[VoidView]:
    """List the first void commits of a branch, each with the rule and the operations that void it."""
    with replica.membership_lock, replica.database.read() as connection:
        membership = replica.membership(branch.facts.repo_id)
        review = VoidRecheck(connection, replica.tables, branch.repo_num, membership)
        ids = load_void_ids(connection, branch.num)[:_VOIDS_SHOWN_MAX]
        judged = {one.commit_id: one for one in load_judged(connection, branch.num, ids)}
        voids = [(judged[raw], review.find_reason(branch, judged[raw])) for raw in ids]
        return [
            {
                "commit": id_text(one.commit_id),
                "author": id_text(one.author),
                "author_name": replica.people.name(branch.facts.repo_id, one.author),
                **_explain_void(void),
            }
            for one, void in voids
            if void is not None
        ]


def find_commit(connection: Connection, text: str, branches: Iterable[Branch] | None = None) -> FoundCommit:
    """Return the fate of the commit of an id or unique prefix, in `branches` or anywhere.

    A request for one branch or repo must give its `branches`: else the refusal tells a token for these which ids exist
    elsewhere. Raises ServiceError `not_found`, `ambiguous`.
    """
    try:
        ids = parse_id_prefix(text) if len(text) >= PREFIX_SIZE_MIN else None
    except DecodeError:
        ids = None
    nums = None if branches is None else {branch.num for branch in branches}
    found = find_commits(connection, *ids, branch_nums=nums) if ids else []
    if not found:
        raise ServiceError("not_found", f"no commit is called {text!r}", "`ravel log BRANCH` shows commits")
    if len(found) > 1:
        raise ServiceError("ambiguous", f"more than one commit fits {text!r}", "give more of the id")
    return found[0]


def _find_missing(replica: Replica, connection: Connection, commit_id: CommitId) -> set[CommitId]:
    """List what a waiting commit names and is not here."""
    kept = load_one_pending(connection, commit_id)
    topic = None if kept is None else replica.topics.get(kept[0])
    found = None if kept is None or topic is None else read_pending(topic, kept[1])
    if found is None:
        return set()
    named = set(find_causes(found.commit))
    return named - load_facts(connection, named).keys()


def _verdict(verdict: str, rule: str, reason: str, commits: list[str]) -> VerdictFields:
    return {"verdict": verdict, "rule": rule, "reason": reason, "by": commits}


def _explain_void(void: Void) -> VerdictFields:
    reason = "its author's membership rests on what does not count any more"
    if void.rule == "N4":
        reason = "too few of the approvals count that it was made by"
    if void.operations:
        reason = "its author was removed by a senior, and the removal does not name this commit"
    return _verdict("void", void.rule, reason, [id_text(one.commit_id) for one in void.operations])


def _explain_operation(
    membership: Membership, operation: Operation, who: Callable[[UserId], str]
) -> VerdictFields:
    now = membership.now()
    if now.counts(operation):
        grants = now.credentials_of(operation.author)
        return _verdict("accepted", "", _rests_on(grants, who), [id_text(one.commit_id) for one in grants])
    voiders = now.voiders(operation)
    if voiders:
        reason = "; ".join(_in_words(one, who) for one in voiders)
        rule = "R2" if isinstance(operation.body, Join) else "R4"
        return _verdict("void", rule, reason, [id_text(one.commit_id) for one in voiders])
    if not now.are_approved(operation):
        demands = [demand for one in operation.demands for demand in one.of_each]
        approvals = [
            id_text(raw) for raw in dict.fromkeys(raw for demand in demands for raw in demand.approvals)
        ]
        return _verdict("void", "R6", "too few of the approvals count that it was made by", approvals)
    return _verdict("void", "R3", "its author's right to it rests on what does not count any more", [])


def _rests_on(grants: list[Operation], who: Callable[[UserId], str]) -> str:
    return "; ".join(_in_words(one, who) for one in grants) or "its author was a member when it was made"


def _in_words(operation: Operation, who: Callable[[UserId], str]) -> str:
    by = who(operation.author)
    match operation.body:
        case RepoInit():
            return "its author founded the repo"
        case Grant():
            return (
                f"{by} made its author a member with the permission {operation.body.permission.name.lower()}"
            )
        case DeviceGrant() | RecoveryGrant():
            return f"it is a computer of {by}, with the permission {operation.body.permission.name.lower()}"
        case Move():
            return f"the place of {by} passed to its author"
        case Join():
            return "its author joined by an invitation"
        case Remove():
            return f"{by} removed its author"
    return f"{by} revoked the invitation by which its author joined"
