"""Types of answers: made. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class Revoked(TypedDict):
    """A token or a browser that was revoked."""

    made: list[MadeThing]
    """Things that its holder made, the latest first."""


class MadeThing(TypedDict):
    """Thing that the holder of a token made."""

    kind: str
    """`ask_link`: by which users ask. `device_link`: for a device. `allowed_peer`: of this relay."""
    what: str
    """What tells it from others: the id of an invitation, link, member or peer; a token's, browser's or account's
    name. Empty of a link that opens a repo, and of what is begun.
    """
    repo: str | None
    """Null: it is of no repo."""
    repo_name: str | None
    """Null: it is of no repo, or the repo is not here any more."""
    made_at: int
    """Unix seconds."""
    expires_at: int | None
    """Unix seconds. Null: it does not expire."""
    begun: bool
    """Possibly there: it is being made, or was never noted as made."""
    ended: bool
    """It has expired, or was taken back by this request."""
    advice: str
    """Command or page that takes it back, or finds it. Empty: nothing is left to do."""
