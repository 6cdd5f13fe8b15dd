"""Reads pasted links, and shows the content of one before anything is done with it."""

from collections.abc import Callable
from typing import TypeVar

from node.membership.lobbies import find_repo
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.body import Permission
from protocol.formats.links import (
    AskLink,
    BranchCapability,
    InvitationLink,
    PeerAddress,
    ReadCapability,
    link_kind,
    parse_ask_link,
    parse_branch_capability,
    parse_capability,
    parse_invitation,
)
from protocol.formats.text import id_text, pasted_word
from protocol.ids import RepoId
from ravel.types.repos import LinkView

T = TypeVar("T")


def parse_pasted(parse: Callable[[str], T], text: str, what: str) -> T:
    """Decode a pasted link. Raises ServiceError `bad_link`."""
    try:
        return parse(text)
    except DecodeError as error:
        advice = "copy the link whole, or ask for a new one"
        problem = error.detail or error.reason
        if error.reason == "other_kind":
            advice = "`ravel repo join` takes invitations, `repo follow` capabilities, `device join` links for devices"
        elif error.reason == "mistyped":
            problem = "a part of the link is missing or altered"
        raise ServiceError("bad_link", f"this is not {what}: {problem}", advice) from None


class LinkLooks:
    """Shows the content of links. Asks nobody. `clock` gives unix seconds."""

    def __init__(self, hub: Hub, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._clock = clock

    async def look(self, link: str) -> LinkView:
        """Show the content of a link before it is used. Names are its maker's claims. Raises ServiceError `bad_link`."""
        text = pasted_word(link)
        match link_kind(text):
            case "ask":
                return self._view_ask(parse_pasted(parse_ask_link, text, "a link that asks"))
            case "read":
                return self._view_read(parse_pasted(parse_capability, text, "a read capability"))
            case "branch":
                return self._view_branch(parse_pasted(parse_branch_capability, text, "a branch's capability"))
            case _:
                return self._view_invitation(parse_pasted(parse_invitation, text, "an invitation"))

    def _view_invitation(self, link: InvitationLink) -> LinkView:
        may = link.permission.name.lower()
        return self._view("invite", link.repo, link.name, link.by, may, link.expires_at, link.peers)

    def _view_ask(self, link: AskLink) -> LinkView:
        lobby = link.opened()
        may = Permission(link.permission).name.lower()
        return self._view("ask", link.repo, link.name, lobby.by, may, lobby.expires_at, lobby.peers)

    def _view_read(self, link: ReadCapability) -> LinkView:
        return self._view("read", link.repo, link.name, None, "read", None, link.peers)

    def _view_branch(self, link: BranchCapability) -> LinkView:
        return self._view("branch", link.repo, link.name, None, "read", None, link.peers)

    def _view(
        self,
        kind: str,
        repo_id: RepoId,
        name: str,
        by: str | None,
        permission: str,
        expires_at: int | None,
        peers: tuple[PeerAddress, ...],
    ) -> LinkView:
        here = find_repo(self._hub.replica, repo_id)
        called = self._hub.owners.called
        return {
            "kind": kind,
            "repo": id_text(repo_id),
            "name": name,
            "by": by,
            "permission": permission,
            "expires_at": None if expires_at is None else expires_at // 1000,
            "expired": expires_at is not None and expires_at <= self._clock() * 1000,
            "here": None if here is None or kind == "branch" else here.name,
            "peers": [
                {**called(one.peer), "peer": id_text(one.peer), "address": one.address} for one in peers
            ],
        }
