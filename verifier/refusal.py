"""The exception that rules raise to refuse a commit, and the permission check that most rules begin with."""

from protocol.body import Permission


class CommitRefused(Exception):
    """A commit lacks authority; `code` is stable, and names the rule in its detail."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


def need(held: Permission | None, needed: Permission, rule: str) -> None:
    """Raise CommitRefused unless what is held is what is needed."""
    if held is None:
        raise CommitRefused("unknown_author", rule)
    if held < needed:
        raise CommitRefused("not_permitted", rule)
