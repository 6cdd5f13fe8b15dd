"""The exception that rules raise to refuse a commit, and the permission check that most rules begin with."""

from protocol.codec import Value
from protocol.formats.body import Permission
from protocol.ids import UserId


class Seniors(Value, frozen=True):
    """Members who hold what a removal of a user lacks: rights that are senior to all that it would take."""

    user: UserId
    members: tuple[UserId, ...]
    """Some of them, sorted; there may be none at all."""


class CommitRefused(Exception):
    """A commit lacks authority; `code` is stable, and names the rule in its detail.

    `seniors` are those who could do it, where a removal was refused for that.
    """

    def __init__(self, code: str, detail: str, seniors: Seniors | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.seniors = seniors


def require_permission(held: Permission | None, needed: Permission, rule: str) -> None:
    """Raise CommitRefused unless what is held is what is needed."""
    if held is None:
        raise CommitRefused("unknown_author", rule)
    if held < needed:
        raise CommitRefused("not_permitted", rule)
