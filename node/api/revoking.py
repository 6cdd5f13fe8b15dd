"""Writes down with each token what its holder made and what outlives it, and takes that back when the token is revoked.

Links, tokens, browsers, accounts and peers are ended here. A member is not excluded, and a repo not renewed, without a
person who looks: the answer names the command.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import structlog
import trio
from msgspec import structs

from node.api.callers import Caller
from node.api.relay_accounts import RelayAccounts
from node.api.relay_admin import Relaying
from node.api.targets import Targets
from node.api.tokens import Tokens
from node.contract.made import Makes
from node.home.tokens import Made, Token, digest_of, mark_of
from node.membership.members import Members
from node.membership.requests import Requests
from node.network.peers import Peers
from node.runtime.errors import ServiceError
from protocol.limits.users import API_MAKE_SECONDS
from ravel.types.made import MadeThing, Revoked
from ravel.types.members import InvitationView
from storage.engine.database import StorageError

log = structlog.get_logger()


class Revoking:
    """Ends tokens and pairings, together with the things that were made with them."""

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
        """Make something that lasts, and record it with the caller's token: before it is begun, and when it is done.

        Raises ServiceError as `act` does, `too_large` if the token has made as much as can be listed, `unauthorized` if it
        was revoked meanwhile, `storage_failed` if the record cannot be written or the act takes too long.
        """
        if caller.is_home or (makes.only_if and not arguments[makes.only_if]):
            return await act()
        place = ""
        if makes.repo in arguments:
            place = self._targets.text_of(self._targets.repo(arguments[makes.repo]))
        elif makes.branch:
            place = self._targets.name(self._targets.branch(arguments[makes.branch]))
        begun = Made(makes.kind, place, "", self._tokens.file.now(), is_begun=True)
        await self._tokens.begin(caller, begun)
        # A client that leaves must not part the deed from what is written of it.
        with trio.move_on_after(API_MAKE_SECONDS, shield=True):
            answer = await self._act(caller, begun, act)
            made = structs.replace(
                begun,
                repo=place or answer.get(makes.repo, ""),
                what=answer[makes.what] if makes.what else "",
                until=answer[makes.until] if makes.until else None,
                is_begun=False,
            )
            mark = await self._mark_of_made(made, answer)
            try:
                await self._tokens.complete(caller, begun, structs.replace(made, mark=mark))
            except ServiceError as error:
                if error.code != "storage_failed":
                    raise
                # It is done and will not be undone: whoever made it gets it, and the list says that it may be there.
                log.warning("the list has no id of what was made", name=caller.name, kind=made.kind)
            return answer
        raise ServiceError(
            "storage_failed",
            f"it took longer than {API_MAKE_SECONDS:.0f} s and was given up; it may have been done",
            "look whether it was, and try again",
        )

    async def revoke_token(self, token: str, made: bool) -> Revoked:
        """End a token of an app or a page; with `made`, also the things its holder made. Raises ServiceError `not_found`.

        Things that could not be ended stay in the list of the token, which can be revoked again.
        """
        return {"made": await self._take_back(await self._tokens.revoke(token), made)}

    async def revoke_browser(self, browser: str, made: bool) -> Revoked:
        """End a pairing; with `made`, also the things made with it. Raises ServiceError `not_found`.

        Things that could not be ended stay in its list, as in `revoke_token`.
        """
        return {"made": await self._take_back(await self._tokens.revoke_browser(browser), made)}

    # --- steps ---

    async def _act(
        self, caller: Caller, begun: Made, act: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> Mapping[str, Any]:
        """Do the deed. Where it fails nothing was made, and the entry goes."""
        assert caller.token is not None, "of the node's own token nothing is written"
        try:
            return await act()
        except Exception:  # whatever it is, it goes on to the caller
            try:
                await self._tokens.forget_made(caller.token, begun)
            except ServiceError as error:
                log.warning("the list has what was not made", name=caller.name, error=error.message)
            raise

    async def _mark_of_made(self, made: Made, answer: Mapping[str, Any]) -> str:
        """Return a mark that tells a thing from a later one of the same name; empty where the thing may be older."""
        if made.kind == "token":
            return mark_of(digest_of(answer["token"]))
        try:
            created_at, mark = await self._find_mark(made)
        except (
            ServiceError,
            StorageError,
        ):  # it was ended meanwhile, or cannot be read: a person looks at it
            return ""
        return mark if created_at >= made.at else ""

    async def _find_mark(self, made: Made) -> tuple[int, str]:
        """Return when a thing of that name was made, and a mark that tells it from a later one; empty if there is none.

        Raises ServiceError.
        """
        if made.kind == "relay_account":
            accounts = (await self._accounts.list_all())["accounts"]
            found = next((one["created_at"] for one in accounts if one["name"] == made.what), None)
            return (0, "") if found is None else (found, mark_of(str(found)))
        if made.kind == "peer":  # nothing says since when it is kept
            return made.at, mark_of((await self._peers.show(made.what))["address"])
        return 0, ""

    async def _take_back(self, tokens: Sequence[Token], is_wanted: bool) -> list[MadeThing]:
        """Return what was made, the latest first, each ended where that is wanted and can be done here.

        Each that leaves nothing to do is taken from the list of its token at once: what is cut short can be repeated.
        """
        found = list[MadeThing]()
        invitations = dict[str, dict[str, InvitationView]]()
        for token in tokens:
            for thing in reversed(token.made):
                view = self._tokens.view_made_thing(thing)
                found.append(view)
                link = await self._find_link(thing, invitations)
                if link is not None and link["revoked"]:
                    view |= {"ended": True, "advice": ""}
                further = list[MadeThing]()
                if is_wanted and not view["ended"]:
                    further = await self._end_as_can_be(thing, view)
                left = (view["advice"], _advice_on_joined(thing, link))
                view["advice"] = "; ".join(filter(None, left))
                if view["ended"] and not view["advice"]:
                    await self._tokens.forget_made(token, thing)
                found += further
        return found

    async def _end_as_can_be(self, thing: Made, view: MadeThing) -> list[MadeThing]:
        """End a thing, or say in its view why not, and return what was made by it in turn."""
        further: list[MadeThing] | None = []
        try:
            further = await self._end(thing)
        except ServiceError as error:
            # What is gone has no command that would end it again.
            if error.code != "not_found":
                view["advice"] = f"{view['advice']} ({error.message})"
                return []
        if further is None:
            return []
        view |= {"ended": True, "advice": ""}
        return further

    async def _end(self, thing: Made) -> list[MadeThing] | None:
        """End a thing, and return what was made by it in turn. None: only a person ends it. Raises ServiceError."""
        if thing.is_begun:
            return None
        match thing.kind:
            case "invitation" | "device_link":
                await self._members.revoke_invitation(thing.repo, thing.what)
            case "ask_link":
                await self._requests.close_link(thing.repo, thing.what)
            case "token":
                return await self._take_back(
                    await self._tokens.revoke(thing.what, thing.mark), is_wanted=True
                )
            case "browser":
                ended = await self._tokens.revoke_browser(thing.what, thing.mark)
                return await self._take_back(ended, is_wanted=True)
            case "relay_account" | "peer":
                return await self._end_named(thing)
            case "allowed_peer":
                await self._relaying.deny(thing.what)
            case _:
                return None
        return []

    async def _end_named(self, thing: Made) -> list[MadeThing] | None:
        """End an account or a peer, unless it may be another one than was made. Raises ServiceError."""
        _, mark = await self._find_mark(thing)
        if not mark:
            return []  # it is gone
        if mark != thing.mark:
            return None
        await (self._accounts.revoke if thing.kind == "relay_account" else self._peers.remove)(thing.what)
        return []

    async def _find_link(
        self, thing: Made, known: dict[str, dict[str, InvitationView]]
    ) -> InvitationView | None:
        """Return the invitation that a thing is, as its repo has it; the repo's are loaded once and go into `known`."""
        if thing.kind not in ("invitation", "device_link") or not thing.repo:
            return None
        if thing.repo not in known:
            try:
                listed = (await self._members.invitations(thing.repo))["invitations"]
            except ServiceError:  # the repo is gone
                listed = []
            known[thing.repo] = {one["invitation"]: one for one in listed}
        return known[thing.repo].get(thing.what)


def _advice_on_joined(thing: Made, link: InvitationView | None) -> str:
    """Return the commands that end the membership of those who came by a link."""
    end = "device remove" if thing.kind == "device_link" else f"member exclude {thing.repo}"
    return "; ".join(f"ravel {end} {user}" for user in (link["joined"] if link is not None else ()))
