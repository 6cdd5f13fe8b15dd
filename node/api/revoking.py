"""Writes down with each token what its holder made and what outlives it, and takes that back when the token is revoked.

Links, tokens, browsers, accounts and peers are ended here. A member is not excluded, and a repo not renewed, without a
person who looks: the answer names the command.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from node.api.callers import Caller
from node.api.relay_accounts import RelayAccounts
from node.api.relay_admin import Relaying
from node.api.targets import Targets
from node.api.tokens import Tokens
from node.contract.made import MadeThing, Makes, Revoked
from node.home.tokens import Made
from node.membership.members import Members
from node.membership.peers import Peers
from node.membership.requests import Requests
from node.runtime.errors import ServiceError


class Revoking:
    """Ends tokens and pairings together with what was made by them."""

    def __init__(
        self,
        tokens: Tokens,
        targets: Targets,
        members: Members,
        requests: Requests,
        accounts: RelayAccounts,
        relaying: Relaying,
        peers: Peers,
    ) -> None:
        self._tokens = tokens
        self._targets = targets
        self._members = members
        self._requests = requests
        self._accounts = accounts
        self._relaying = relaying
        self._peers = peers

    async def make(
        self,
        makes: Makes,
        caller: Caller,
        arguments: Mapping[str, Any],
        act: Callable[[], Awaitable[Mapping[str, Any]]],
    ) -> Mapping[str, Any]:
        """Do what makes something that lasts, and write it down with the caller's token before the answer is given.

        Raises ServiceError as `act` does, and `too_large` where the token has made as much as may be listed.
        """
        if caller.is_home or (makes.only_if and not arguments[makes.only_if]):
            return await act()
        self._tokens.check_room(caller)
        place = ""
        if makes.repo in arguments:
            place = self._targets.text_of(self._targets.repo(arguments[makes.repo]))
        elif makes.branch:
            place = self._targets.name(self._targets.branch(arguments[makes.branch]))
        answer = await act()
        await self._tokens.note_made(
            caller,
            makes.kind,
            place or answer.get(makes.repo, ""),
            answer[makes.what] if makes.what else "",
            answer[makes.until] if makes.until else None,
        )
        return answer

    async def revoke_token(self, token: str, made: bool) -> Revoked:
        """End a token of an app or a page; with `made`, also what its holder made. Raises ServiceError `not_found`."""
        found = await self._tokens.revoke(token)
        return {"made": await self._take_back(found.made, made)}

    async def revoke_browser(self, browser: str, made: bool) -> Revoked:
        """End a pairing; with `made`, also what was made with it. Raises ServiceError `not_found`."""
        found = await self._tokens.revoke_browser(browser)
        return {"made": await self._take_back(found.made, made)}

    # --- steps ---

    async def _take_back(self, things: Sequence[Made], is_wanted: bool) -> list[MadeThing]:
        """Return what was made, the latest first, each ended where that is wanted and can be done here."""
        found = []
        for thing in reversed(things):
            view = self._tokens.show_made(thing)
            found.append(view)
            if not is_wanted or view["ended"]:
                continue
            try:
                further = await self._end(thing)
            except ServiceError as error:
                # What is gone has no command that would end it again.
                view["ended"] = error.code == "not_found"
                view["advice"] = "" if view["ended"] else f"{view['advice']} ({error.message})"
                continue
            if further is not None:
                view |= {"ended": True, "advice": ""}
                found += further
        for view in found:
            view["advice"] = await self._advice_on_joined(view) or view["advice"]
        return found

    async def _end(self, thing: Made) -> list[MadeThing] | None:
        """End a thing, and return what was made by it in turn. None: only a person ends it. Raises ServiceError."""
        match thing.kind:
            case "invitation" | "device_link":
                await self._members.revoke_invitation(thing.repo, thing.what)
            case "ask_link":
                await self._requests.close_link(thing.repo, thing.what)
            case "token":
                return (await self.revoke_token(thing.what, made=True))["made"]
            case "browser":
                return (await self.revoke_browser(thing.what, made=True))["made"]
            case "relay_account":
                await self._accounts.revoke(thing.what)
            case "peer":
                await self._peers.remove(thing.what)
            case "allowed_peer":
                await self._relaying.deny(thing.what)
            case _:
                return None
        return []

    async def _advice_on_joined(self, view: MadeThing) -> str:
        """What ends the membership of those who came by a link; empty where nobody did."""
        if view["kind"] not in ("invitation", "device_link") or view["repo"] is None:
            return ""
        try:
            listed = (await self._members.invitations(view["repo"]))["invitations"]
        except ServiceError:  # the repo is gone
            return ""
        joined = [user for one in listed if one["invitation"] == view["what"] for user in one["joined"]]
        if view["kind"] == "device_link":
            return "; ".join(f"ravel device remove {user}" for user in joined)
        return "; ".join(f"ravel member exclude {view['repo']} {user}" for user in joined)
