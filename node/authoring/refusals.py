"""Errors for users whose writes the rules refuse, with what to do next and who may do it instead."""

import re
import shlex
from typing import Final

from node.ingest.people import People
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import RepoId, UserId
from verifier.refusal import CommitRefused, Seniors
from verifier.verify import Rejected

_CODES: Final = {
    "already_holds": "already_exists",
    "nothing_to_remove": "already_exists",
    "branch_exists": "already_exists",
    "needs_quorum": "needs_quorum",
}
"""Code of a refusal -> code that users get, if not `not_permitted`. `already_exists`: a second click changes
nothing."""
_NEXT_STEPS: Final = {
    "not_permitted": (
        "`ravel repo list` shows what you may do there; an admin of the repo gives more: "
        "ravel member grant REPO {user} PERMISSION"
    ),
    "unknown_author": (
        "you are no member there, or none any more: `ravel repo list` says how you stand, and an admin can invite you"
    ),
    "needs_quorum": "`ravel quorum propose-removal` and `ravel branch checkpoint` ask the signers",
}
_ID_SHOWN_LENGTH: Final = 12
_RULE: Final = re.compile(r"([A-Z]\d+): (.+)", re.DOTALL)
"""Detail of a verdict: the rule's code, and what it says."""


class RefusedByRules(ServiceError):
    """The error of a user whose commit breaks a rule. `verdict` is the rules' own code (docs/specification/protocol.md)."""

    def __init__(self, code: str, message: str, advice: str, verdict: str) -> None:
        super().__init__(code, message, advice)
        self.verdict = verdict


def refuse(
    people: People, repo_id: RepoId, user: UserId, verdict: Rejected | CommitRefused
) -> RefusedByRules:
    """Return the error for a user whose commit in a repo breaks a rule."""
    if verdict.seniors is not None:
        return _name_seniors(people, repo_id, verdict.code, verdict.seniors)
    shown = _CODES.get(verdict.code, "not_permitted")
    heir = people.heir(repo_id, user)
    if heir is not None and verdict.code in _NEXT_STEPS and shown == "not_permitted":
        called = people.device_name(repo_id, heir)
        return RefusedByRules(
            shown, f"your place has passed to the computer {called}", "write there", verdict.code
        )
    called = people.name(repo_id, user)
    next_step = _NEXT_STEPS.get(verdict.code, "").format(
        user=shlex.quote(called) if called else id_text(user)
    )
    detail = _RULE.sub(r"\2 (rule \1)", verdict.detail)  # people read what it says first
    return RefusedByRules(shown, f"the rules refuse it: {detail}", next_step, verdict.code)


def _name_seniors(people: People, repo_id: RepoId, code: str, seniors: Seniors) -> RefusedByRules:
    def name(user: UserId) -> str:
        return people.name(repo_id, user) or id_text(user)[:_ID_SHOWN_LENGTH]

    removed = name(seniors.user)
    next_step = (
        f"senior to {removed}: {', '.join(dict.fromkeys(map(name, seniors.members)))}; ask one of them"
    )
    if not seniors.members:
        next_step = f"nobody is senior to {removed}, who alone can leave"
    message = f"you are not senior to {removed} there (rule M7)"
    return RefusedByRules("not_permitted", message, next_step, code)
