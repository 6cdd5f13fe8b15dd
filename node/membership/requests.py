"""User actions on requests to join: links that ask, who asked by them, answers; and the requests that this user made.

A link that asks opens a lobby and nothing of the repo (`protocol.formats.lobbies`). To accept is to grant, and to say in the
lobby where the repo begins, with its read secret sealed to the user who asked. `node.membership.lobbies` has the automatic
part.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

import trio

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import create_repo, write_commit, write_commits
from node.home.mnemonic import words_at
from node.membership.joining import Joiner, link_of
from node.membership.lobbies import (
    MadeLobby,
    count_lobbies,
    find_asked,
    find_lobbies_of,
    find_repo,
    find_requests,
)
from node.membership.persons import find_granted
from node.membership.sharing import Sharing, check_inviter, reach_text
from node.runtime.errors import ServiceError
from node.runtime.look_alikes import skeletons
from node.runtime.resolve import resolve
from node.sync.hub import Hub
from protocol.codec import encode
from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair
from protocol.formats.block import Reference
from protocol.formats.body import Body, Grant, Invite, Permission, Remove, Revoke
from protocol.formats.links import AskLink, PeerAddress, ask_link_text, find_kept_ask
from protocol.formats.lobbies import Admission, Lobby, LobbyAdd, LobbyAnswer, LobbyBox, code_numbers
from protocol.formats.text import id_text
from protocol.ids import ObjectId, RepoId, UserId
from protocol.limits.formats import LOBBY_ADMIN_COUNT_MAX, NAME_SIZE_MAX
from protocol.limits.peers import LOBBY_COMMIT_COUNT_MAX, LOBBY_COUNT_MAX
from ravel.types.requests import AskLinkList, AskLinkMade, AskLinkView, AskView, RequestList, RequestView
from storage.repos.repos import Repo
from verifier.lobbies import FoundRequest

_LOBBY_SUFFIX: Final = " (requests)"
_GRANTED: Final = {"read": Permission.READ, "write": Permission.WRITE}


@dataclass(frozen=True, slots=True)
class _Received:
    """A request to one of this user's repos."""

    made: MadeLobby
    lobby: Repo
    request: FoundRequest


class Requests:
    """Links that ask, and requests, as users see them."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        sharing: Sharing,
        joiner: Joiner,
        find_repo: Callable[[str], Repo],
    ) -> None:
        self._hub = hub
        self._author = author
        self._sharing = sharing
        self._joiner = joiner
        self._find_repo = find_repo

    # --- who is asked ---

    async def make_link(
        self, repo: str, permission: str, expires_seconds: int, uses: int, reach: str = "machine"
    ) -> AskLinkMade:
        """Make a link that asks: it has no secret of the repo, and `uses` users may ask by it."""
        target = self._find_repo(repo)
        wanted = _permission(permission)
        await self._hub.run_blocking(check_inviter, self._hub.replica, target, self._author.user)
        followed = await self._hub.run_blocking(count_lobbies, self._hub.replica)
        if followed >= LOBBY_COUNT_MAX:
            raise ServiceError(
                "too_large",
                f"this node follows {followed} links that ask, and no more at once",
                "`ravel requests close REPO LINK` ends one; those that ended go after 7 days",
            )
        ways = await self._sharing.ways_to(target, relays_only=True)
        self._sharing.check_reach(ways, reach)
        expires_at = self._hub.clock_ms() + expires_seconds * 1000
        link = await self._found_lobby(target, wanted, expires_at, uses, ways.peers)
        return {
            "link": ask_link_text(link),
            "lobby": id_text(link.opened().repo),
            "expires_at": expires_at // 1000,
            "addresses": ways.addresses,
            "reach": reach_text(ways.reach),
        }

    async def list_links(self, repo: str) -> AskLinkList:
        """List the links that ask of a repo, which its admins made."""
        return {"links": await self._hub.run_blocking(self._links, self._find_repo(repo))}

    async def close_link(self, repo: str, lobby: str) -> AskLinkList:
        """End a link that asks: nobody asks by it any more, and who asked is not accepted."""
        target = self._find_repo(repo)
        await self._hub.run_blocking(check_inviter, self._hub.replica, target, self._author.user)
        lobbies = await self._hub.run_blocking(find_lobbies_of, self._hub.replica, target)
        made = resolve("link", lobby, [(one.body.lobby, "", one) for one in lobbies])
        here = find_repo(self._hub.replica, made.body.lobby)
        if here is None:
            raise ServiceError(
                "incomplete", "the requests of that link are not on this node", "its maker can end it"
            )
        await self._write(here, Revoke(made.body.invitation))
        return await self.list_links(repo)

    async def list_received(self, repo: str) -> RequestList:
        """List who asks to be let into a repo, and how each request ended."""
        return {"requests": await self._hub.run_blocking(self._views, [self._find_repo(repo)]), "made": []}

    async def list_all(self) -> RequestList:
        """Requests to all repos whose admin this user is, and those that this user made."""
        return await self._hub.run_blocking(self._list)

    async def answer(self, repo: str, request: str, *, accepts: bool, permission: str = "") -> RequestView:
        """Accept a request, or refuse it. What was done already is not done again."""
        target = self._find_repo(repo)
        await self._hub.run_blocking(check_inviter, self._hub.replica, target, self._author.user)
        found = await self._find(target, request)
        if accepts:
            await self._accept(target, found, _permission(permission) if permission else None)
        elif found.request.admissions:
            raise ServiceError(
                "already_exists",
                "that request was accepted",
                f"`ravel member exclude {id_text(target.repo_id)[:12]} {id_text(found.request.user)}` takes it back",
            )
        elif found.request.refused_by is None:
            await self._write(found.lobby, LobbyAnswer(found.request.operation.commit_id, None))
        again = await self._find(target, id_text(found.request.operation.commit_id))
        return await self._hub.run_blocking(self._view, again)

    # --- who asks ---

    async def cancel(self, request: str) -> RequestList:
        """Take back a request of this user's, and forget its link."""
        asked = find_asked(self._hub.replica)
        lobby = resolve("request", request, [(link.repo, link.name, repo) for repo, link in asked])
        if await self._hub.run_blocking(self._may_withdraw, lobby):
            # Admins see it once they have met this node; a request that never went out leaves nothing behind.
            await self._write(lobby, Remove(self._author.user, None, ()))
        else:
            await self._hub.write(self._joiner.lobbies.forget, [lobby])
            self._hub.topics_changed()
        return await self.list_all()

    # --- steps ---

    async def _found_lobby(
        self,
        target: Repo,
        wanted: Permission,
        expires_at: int,
        uses: int,
        peers: tuple[PeerAddress, ...],
    ) -> AskLink:
        """Found the lobby and open it for the repo's admins, who are its owners. Return the link that asks."""
        hub, replica, author = self._hub, self._hub.replica, self._author
        members = await hub.run_blocking(replica.members, target)
        admins = [
            user for user, held in sorted(members.items()) if held >= Permission.ADMIN and user != author.user
        ][: LOBBY_ADMIN_COUNT_MAX - 1]
        name = target.name[: NAME_SIZE_MAX - len(_LOBBY_SUFFIX)] + _LOBBY_SUFFIX
        # Three writes: a lobby that no root branch names would stay for ever.
        with trio.CancelScope(shield=True):
            lobby = await create_repo(hub, author, name, others=admins)
            seed = InvitationSeed(secrets.token_bytes(32))
            bodies: list[Body] = [
                Lobby(target.repo_id),
                Invite(key_pair(seed)[0], Permission.READ, uses, expires_at),
            ]
            root = replica.root_branch(lobby)
            written = await write_commits(hub, author, root, [Draft(body) for body in bodies])
            invitation, epoch = written[1].commit_id, replica.writing_epoch(lobby)
            opened = LobbyAdd(
                lobby.repo_id,
                Reference(ObjectId(lobby.init_id), lobby.init_key),
                epoch.epoch_id,
                invitation,
                int(wanted),
                expires_at,
                tuple(LobbyBox(user, author.seal_key(lobby.repo_id, user, epoch.key)) for user in admins),
            )
            await write_commit(hub, author, replica.root_branch(target), opened)
        link = link_of(lobby, epoch, invitation, seed, Permission.READ, expires_at, peers)
        return AskLink(target.repo_id, target.name, int(wanted), encode(link))

    async def _accept(self, target: Repo, found: _Received, wanted: Permission | None) -> None:
        request = found.request
        status = self._status(found)
        if status in _ENDED:
            raise ServiceError(
                "expired", _ENDED[status], f"make a new link: ravel repo invite --ask {target.name}"
            )
        level = wanted or Permission(found.made.body.permission)
        held = await self._hub.run_blocking(find_granted, self._hub.replica, target, request.user)
        if (held or 0) < level:
            try:
                await self._write_planned(target, lambda: Grant(request.user, level))
            except ServiceError as error:
                if error.code != "already_exists":  # another admin was faster
                    raise
        if not request.admissions:
            await self._write_planned(found.lobby, lambda: self._admission(target, request))

    def _admission(self, target: Repo, request: FoundRequest) -> LobbyAnswer:
        epoch = self._hub.replica.writing_epoch(target)
        sealed = self._author.seal_key(target.repo_id, request.user, epoch.key)
        root = Reference(ObjectId(target.init_id), target.init_key)
        return LobbyAnswer(request.operation.commit_id, Admission(root, epoch.epoch_id, sealed))

    async def _write(self, repo: Repo, body: Body) -> None:
        await self._write_planned(repo, lambda: body)

    async def _write_planned(self, repo: Repo, plan: Callable[[], Body]) -> None:
        """Write a body that is made when it is settled in which epoch it is published."""
        root = self._hub.replica.root_branch(repo)
        await write_commits(self._hub, self._author, root, lambda _: [Draft(plan())])

    async def _find(self, target: Repo, text: str) -> _Received:
        received = await self._hub.run_blocking(self._received, [target])
        return resolve(
            "request",
            text,
            [(one.request.operation.commit_id, one.request.operation.asks_as or "", one) for one in received],
        )

    def _received(self, targets: list[Repo]) -> list[_Received]:
        replica = self._hub.replica
        found = []
        for target in targets:
            for made in find_lobbies_of(replica, target):
                lobby = find_repo(replica, made.body.lobby)
                if lobby is not None and replica.lobbies.get(lobby.repo_id) == target.repo_id:
                    found += [_Received(made, lobby, one) for one in find_requests(replica, lobby)]
        return found

    def count_waiting(self, target: Repo) -> int:
        """Count the users who wait for an answer of this user about a repo."""
        if (self._hub.replica.permission(target, self._author.user) or 0) < Permission.ADMIN:
            return 0
        return sum(self._status(one) == "waiting" for one in self._received([target]))

    def _list(self) -> RequestList:
        replica, me = self._hub.replica, self._author.user
        targets = [
            repo
            for repo in replica.repos.values()
            if repo.has_members and (replica.permission(repo, me) or 0) >= Permission.ADMIN
        ]
        return {"requests": self._views(targets), "made": self.list_made()}

    def _views(self, targets: list[Repo]) -> list[RequestView]:
        return [self._view(one) for one in self._received(targets)]

    def _view(self, found: _Received) -> RequestView:
        operation, target = found.request.operation, found.made.target
        people = self._hub.replica.people
        petname = people.petname(operation.author)
        stated = normalize("NFC", operation.asks_as or "")
        return {
            "request": id_text(operation.commit_id),
            "repo": id_text(target.repo_id),
            "repo_name": target.name,
            "lobby": id_text(found.lobby.repo_id),
            "user": id_text(operation.author),
            "name": petname or stated,
            "looks_alike": not petname and self._looks_like_a_member(target, operation.author, stated),
            "permission": Permission(found.made.body.permission).name.lower(),
            "code": _code(found.lobby.repo_id, target.repo_id, found.request),
            "asked_at": operation.timestamp // 1000,
            "expires_at": found.made.body.expires_at // 1000,
            "status": self._status(found),
        }

    def _looks_like_a_member(self, target: Repo, user: UserId, name: str) -> bool:
        if not name:
            return False
        own = set(skeletons(name))
        shown = self._hub.replica.people.of(target.repo_id)
        return any(one != user and own & set(skeletons(known.name)) for one, known in shown.items())

    def _status(self, found: _Received) -> str:
        request = found.request
        if request.admissions:
            return "accepted"
        if request.is_withdrawn:
            return "withdrawn"
        if request.refused_by is not None:
            return "refused"
        if request.is_closed:
            return "closed"
        return "expired" if self._hub.clock_ms() >= found.made.body.expires_at else "waiting"

    def _links(self, target: Repo) -> list[AskLinkView]:
        replica = self._hub.replica
        views: list[AskLinkView] = []
        for made in find_lobbies_of(replica, target):
            lobby = find_repo(replica, made.body.lobby)
            requests = [] if lobby is None else find_requests(replica, lobby)
            views.append(
                {
                    "lobby": id_text(made.body.lobby),
                    "author": id_text(made.operation.author),
                    "author_name": replica.people.name(target.repo_id, made.operation.author),
                    "permission": Permission(made.body.permission).name.lower(),
                    "expires_at": made.body.expires_at // 1000,
                    "here": lobby is not None,
                    "requests": len(requests),
                    "closed": lobby is not None and self._is_closed(lobby),
                    "full": lobby is not None and self._is_full(lobby),
                }
            )
        return views

    def _is_closed(self, lobby: Repo) -> bool:
        replica = self._hub.replica
        with replica.membership_lock:
            membership = replica.membership(lobby.repo_id)
            now = membership.now()
            return any(
                isinstance(one.body, Revoke) and now.has_effect(one) for one in membership.operations.removals
            )

    def _is_full(self, lobby: Repo) -> bool:
        replica = self._hub.replica
        with replica.membership_lock:
            return len(replica.membership(lobby.repo_id).operations) >= LOBBY_COMMIT_COUNT_MAX

    def _may_withdraw(self, lobby: Repo) -> bool:
        return self._hub.replica.permission(lobby, self._author.user) is not None

    def list_made(self) -> list[AskView]:
        """List the requests that this user made and that are not over. Reads the store."""
        views = [self.made_in(lobby) for lobby, _ in find_asked(self._hub.replica)]
        return [view for view in views if view is not None and view["status"] != "withdrawn"]

    def made_in(self, lobby: Repo) -> AskView | None:
        """Find this user's request in a lobby that its node followed by a link; None for another. Reads the store."""
        link = find_kept_ask(lobby.invitation)
        if link is None:
            return None
        replica, invitation = self._hub.replica, link.opened()
        own = [one for one in find_requests(replica, lobby) if one.user == self._author.user]
        with replica.membership_lock:
            operations = replica.membership(lobby.repo_id).operations
            was_member = bool(operations.grants_of(self._author.user))
            admin = operations.epochs[0].author if operations.epochs else None
        reason = self._joiner.lobbies.refused.get(lobby.repo_id, "")
        code = ""
        if own:
            status = _own_status(own[0])
            code = _code(lobby.repo_id, link.repo, own[0])
        else:
            status = "failed" if reason else "closed" if was_member else "sending"
        if status in ("sending", "waiting") and self._hub.clock_ms() >= invitation.expires_at:
            status = "expired"
        return {
            "repo": id_text(link.repo),
            "repo_name": link.name,
            "lobby": id_text(lobby.repo_id),
            "admin": "" if admin is None else id_text(admin),
            "admin_name": "" if admin is None else replica.people.name(lobby.repo_id, admin),
            "permission": Permission(link.permission).name.lower(),
            "code": code,
            "expires_at": invitation.expires_at // 1000,
            "status": status,
            "reason": reason,
        }


_ENDED: Final = {
    "withdrawn": "that user took the request back",
    "closed": "the link was ended after that user asked",
    "expired": "the link has expired",
}
"""Status -> why such a request is not accepted."""


def _own_status(request: FoundRequest) -> str:
    if request.is_withdrawn:
        return "withdrawn"
    if request.admissions:
        return "accepted"
    if request.refused_by is not None:
        return "refused"
    return "closed" if request.is_closed else "waiting"


def _permission(text: str) -> Permission:
    found = _GRANTED.get(text)
    if found is None:
        raise ServiceError("bad_request", f"permission is read or write, not {text!r}")
    return found


def _code(lobby: RepoId, repo: RepoId, request: FoundRequest) -> str:
    numbers = code_numbers(lobby, repo, request.user, request.operation.commit_id)
    return " ".join(words_at(numbers))
