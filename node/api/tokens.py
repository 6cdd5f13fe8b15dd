"""Makes, lists and revokes tokens, and writes when they were last used."""

import secrets
import shlex
from collections.abc import Callable, Collection, Sequence
from typing import Final

import structlog
import trio
from msgspec import structs

from node.api.callers import HOME_NAME, Caller
from node.api.targets import Targets
from node.contract.access import ACTIONS, OF_THE_NODE
from node.home.tokens import (
    OF_BROWSERS,
    Kind,
    Made,
    Token,
    TokenFile,
    digest_of,
    has_ended,
    mark_of,
    new_secret,
    not_ended,
    prune_revoked,
    size_of_made,
)
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import UserId
from protocol.limits.users import (
    API_TOKEN_MADE_SIZE_MAX,
    API_TOKEN_TARGETS_MAX,
    API_TOKEN_USE_SECONDS,
    API_TOKENS_MAX,
    BROWSER_NAME_SIZE_MAX,
    BROWSER_SECONDS,
    BROWSERS_MAX,
    PAGE_TOKEN_SECONDS,
    PAGE_TOKENS_MAX,
)
from ravel.characters import composed
from ravel.types.browsers import BrowserView, KeptBrowser
from ravel.types.made import MadeKind, MadeThing
from ravel.types.tokens import NewToken, OwnToken, TokenBranch, TokenList, TokenRepo, TokenView
from ravel.types.values import Action

log = structlog.get_logger()

_PAGE_NAME_SIZE: Final = 4  # bytes
_TAKEN_BACK: Final[dict[MadeKind, str]] = {
    "invitation": "ravel member uninvite {repo} {what}",
    "ask_link": "ravel requests close {repo} {what}",
    "read_link": "ravel repo renew {repo}",
    "branch_link": "ravel repo renew {repo}",
    "device_link": "ravel member uninvite {repo} {what}",
    "member": "ravel member exclude {repo} {what}",
    "token": "ravel token revoke {what}",
    "browser": "ravel browser revoke {what}",
    "relay_account": "ravel relay revoke {what}",
    "peer": "ravel peer remove {what}",
    "allowed_peer": "ravel relay deny {what}",
}
"""Kind of thing -> the command that ends it."""
_FOUND_BY: Final[dict[MadeKind, str]] = _TAKEN_BACK | {
    "invitation": "ravel member invitations {repo}",
    "ask_link": "ravel requests links {repo}",
    "device_link": "ravel device list",
    "member": "ravel member list {repo}",
    "token": "ravel token list",
    "browser": "ravel browser list",
    "relay_account": "ravel relay accounts",
    "peer": "ravel peer list",
    "allowed_peer": "ravel relay list",
}
"""Kind of thing -> the command that shows whether one was made; where there is none, the command that ends it."""


class Tokens:
    """The tokens of the node."""

    def __init__(self, file: TokenFile, targets: Targets, user: UserId, run_blocking: RunBlocking) -> None:
        """`user` is whom all of them act for."""
        self.file = file
        self._user = user
        self._targets = targets
        self._run_blocking = run_blocking
        self._lock = trio.Lock()

    async def create(
        self,
        name: str,
        actions: list[Action],
        repos: list[str],
        branches: list[str],
        expires_seconds: int,
        origins: Sequence[str] = (),
    ) -> NewToken:
        """Make a token for an app. Raises ServiceError `bad_request`, `not_found`, `ambiguous`, `already_exists`."""
        granted = tuple(action for action in ACTIONS if action in actions)
        whole = OF_THE_NODE.intersection(actions)
        if (repos or branches) and whole:
            first = min(whole)
            raise ServiceError(
                "bad_request",
                f"`{first}` is about the whole node, and cannot be limited to repos or branches",
                f"make two tokens: one with `{first}`, one for the repos",
            )
        if len(repos) + len(branches) > API_TOKEN_TARGETS_MAX:
            raise ServiceError(
                "too_large",
                f"a token is for at most {API_TOKEN_TARGETS_MAX} repos and branches",
                "make two tokens",
            )
        of_repos = dict.fromkeys(self._targets.text_of(self._targets.repo(text)) for text in repos)
        of_branches = dict.fromkeys(self._targets.name(self._targets.branch(text)) for text in branches)
        async with self._lock:
            kept = self.file.tokens()
            named = next(
                (
                    one
                    for one in kept
                    if one.name == name and one.kind not in OF_BROWSERS and one.revoked_at is None
                ),
                None,
            )
            if name == HOME_NAME or (named is not None and not self.file.is_expired(named)):
                raise ServiceError(
                    "already_exists", f"there is a token called {name!r}", f"ravel token revoke {name}"
                )
            kept = self._ended(kept, lambda one: one is named)
            if _count_apps(kept) >= API_TOKENS_MAX:
                kept = self._ended(kept, self.file.is_expired)
            if _count_apps(kept) >= API_TOKENS_MAX:
                raise ServiceError(
                    "too_large",
                    f"there are {API_TOKENS_MAX} tokens, and not more",
                    "revoke one that `ravel token list` shows as unused",
                )
            secret = new_secret()
            made = self._make(name, secret, "app", granted, expires_seconds, (*of_repos,), (*of_branches,))
            token = structs.replace(made, origins=tuple(dict.fromkeys(origins)))
            await self._write([*kept, token])
        log.info("token made", name=name, actions=granted, repos=len(of_repos), branches=len(of_branches))
        return {"token": secret, "name": name, "expires_at": token.expires_at}

    async def make_for_page(self) -> str:
        """Make a token for a web page, with all actions. Of too many, the oldest is good no more. Raises ServiceError."""
        async with self._lock:
            kept = self.file.tokens()
            pages = [one for one in kept if one.kind == "page" and self.file.is_good(one)]
            good = pages[-PAGE_TOKENS_MAX + 1 :]
            kept = self._ended(kept, lambda one: one.kind == "page" and one not in good)
            secret = new_secret()
            name = f"page-{secrets.token_hex(_PAGE_NAME_SIZE)}"
            token = self._make(name, secret, "page", ACTIONS, PAGE_TOKEN_SECONDS, (), ())
            await self._write([*kept, token])
        log.info("token made for the web page", name=name)
        return secret

    async def make_for_browser(self, name: str, maker: str = "") -> str:
        """Make a token for a browser of another machine, with all actions, and write it down with its maker's.

        Raises ServiceError `too_large`, and `unauthorized` where the maker's token is good no more.
        """
        async with self._lock:
            kept = self.file.tokens()
            if maker and not any(one.digest == maker and self.file.is_good(one) for one in kept):
                raise ServiceError(
                    "unauthorized",
                    "the page that made that code was signed out since: its token was revoked or has expired",
                    "`ravel open --remote` on the node's machine makes another",
                )
            kept, taken = self._with_room_for_browser(kept)
            secret = new_secret()
            token = self._make(_free_name(name, taken), secret, "browser", ACTIONS, BROWSER_SECONDS, (), ())
            thing = Made(
                *("browser", "", token.name, token.created_at, token.expires_at), mark=mark_of(token.digest)
            )
            kept = [_with_made(one, thing, token.created_at) if one.digest == maker else one for one in kept]
            await self._write([*kept, token])
        log.info("browser paired", name=token.name)
        return secret

    async def keep(self, caller: Caller, name: str) -> KeptBrowser:
        """Keep the caller's page signed in under a name, for BROWSER_SECONDS from now.

        Raises ServiceError `bad_request` where it is no page of this machine, and `too_large`.
        """
        async with self._lock:
            digest = caller.token.digest if caller.token is not None and caller.is_page else ""
            kept, taken = self._with_room_for_browser(self.file.tokens(), digest)
            own = next((one for one in kept if one.digest == digest and one.revoked_at is None), None)
            if own is None:
                raise ServiceError("bad_request", "only a page on this machine stays signed in", "ravel open")
            token = structs.replace(
                own, kind="kept", name=_free_name(name, taken), expires_at=self.file.now() + BROWSER_SECONDS
            )
            await self._write([token if one is own else one for one in kept])
        log.info("browser stays signed in", name=token.name)
        return {"name": token.name, "expires_at": token.expires_at}

    def _with_room_for_browser(
        self, tokens: Sequence[Token], digest: str = ""
    ) -> tuple[list[Token], set[str]]:
        """End expired tokens of browsers, and return all tokens with the names that other browsers have.

        Raises ServiceError `too_large` where they are too many.
        """
        found = self._ended(tokens, lambda one: one.kind in OF_BROWSERS and self.file.is_expired(one))
        good = [one for one in found if one.kind in OF_BROWSERS and one.revoked_at is None]
        taken = {one.name for one in good if one.digest != digest}
        if len(taken) >= BROWSERS_MAX:
            raise ServiceError(
                "too_large",
                f"{BROWSERS_MAX} browsers are paired, and not more",
                "revoke one that `ravel browser list` shows as unused",
            )
        return found, taken

    async def list_all(self) -> TokenList:
        """List all tokens of apps and pages, expired ones too, and revoked ones with which something was made."""
        kept = [one for one in self.file.tokens() if one.kind not in OF_BROWSERS]
        return {"tokens": await self._run_blocking(self._views, kept)}

    async def list_browsers(self) -> list[BrowserView]:
        """List the browsers that stay signed in, expired ones too, and revoked ones with which something was made."""
        kept = [one for one in self.file.tokens() if one.kind in OF_BROWSERS]
        return [_browser_view(view) for view in await self._run_blocking(self._views, kept)]

    async def revoke(self, token: str, mark: str = "") -> list[Token]:
        """Revoke a token of an app or a page, and return it; if it was revoked before, return what is kept of it.

        `mark`: of the only token that is meant. Raises ServiceError `not_found`.
        """
        found = await self._revoke(
            lambda one: (
                one.name == token and one.kind not in OF_BROWSERS and mark in ("", mark_of(one.digest))
            ),
            ServiceError(
                "not_found", f"no token is called {token[:100]!r}", "`ravel token list` shows tokens"
            ),
        )
        log.info("token revoked", name=token)
        return found

    async def revoke_browser(self, browser: str, mark: str = "") -> list[Token]:
        """End a pairing, and return its token, as `revoke` does. Raises ServiceError `not_found`."""
        wanted = composed(browser)
        found = await self._revoke(
            lambda one: one.name == wanted and one.kind in OF_BROWSERS and mark in ("", mark_of(one.digest)),
            ServiceError(
                "not_found",
                f"no paired browser is called {browser[:100]!r}",
                "`ravel browser list` shows them",
            ),
        )
        log.info("browser revoked", name=browser)
        return found

    def check_room(self, caller: Caller) -> None:
        """Refuse a caller whose token has made as much as may be listed with it. Raises ServiceError `too_large`."""
        if caller.token is None:
            return
        made = not_ended(self._latest(caller.token).made, self.file.now())
        if size_of_made(made) >= API_TOKEN_MADE_SIZE_MAX:
            raise ServiceError(
                "too_large",
                f"{len(made)} links, members and the like were made with the token {caller.name!r}, and not more can be",
                "use the command on the node's machine, whose own token has no such bound",
            )

    async def begin(self, caller: Caller, thing: Made) -> None:
        """Write down, before the deed, a thing that a caller's token may have made. Durable when it returns.

        Raises ServiceError `unauthorized` where the token was revoked, `too_large` as `check_room`, and `storage_failed`.
        """
        async with self._lock:
            self.check_room(caller)
            digest = "" if caller.token is None else caller.token.digest
            if all(one.digest != digest or one.revoked_at is not None for one in self.file.tokens()):
                raise _revoked(caller)
            await self._change(digest, lambda one: _with_made(one, thing, thing.at))

    async def complete(self, caller: Caller, thing: Made, made: Made) -> None:
        """Write down what the thing is that was begun. Raises ServiceError `unauthorized` where the token was revoked."""
        digest = "" if caller.token is None else caller.token.digest
        async with self._lock:
            await self._change(digest, lambda one: structs.replace(one, made=_swapped(one, thing, made)))
            if all(one.digest != digest or one.revoked_at is not None for one in self.file.tokens()):
                log.warning(
                    "made with a token that was revoked meanwhile",
                    name=caller.name,
                    kind=made.kind,
                    what=made.what,
                )
                raise _revoked(caller)

    async def forget_made(self, token: Token, thing: Made) -> None:
        """Take a thing that is not there from a token's list. Raises ServiceError `storage_failed`."""
        async with self._lock:
            await self._change(token.digest, lambda one: structs.replace(one, made=_swapped(one, thing)))

    async def _change(self, digest: str, change: Callable[[Token], Token]) -> None:
        await self._write([change(one) if one.digest == digest else one for one in self.file.tokens()])

    async def _revoke(self, is_meant: Callable[[Token], bool], error: ServiceError) -> list[Token]:
        async with self._lock:
            kept = self.file.tokens()
            found = [one for one in kept if is_meant(one)]
            if not found:
                raise error
            good = [one for one in found if one.revoked_at is None]
            if not good:
                return found
            await self._write(self._ended(kept, lambda one: one in good))
            return good

    def _ended(self, tokens: Sequence[Token], is_meant: Callable[[Token], bool]) -> list[Token]:
        """Return the tokens with the given ones revoked. `_write` keeps those that made something which stays."""
        now = self.file.now()
        return [
            structs.replace(one, revoked_at=now) if one.revoked_at is None and is_meant(one) else one
            for one in tokens
        ]

    async def _write(self, tokens: Sequence[Token]) -> None:
        await self._run_blocking(lambda: self.file.replace(prune_revoked(tokens, self.file.now())))

    async def show(self, caller: Caller) -> OwnToken:
        """Return the token of a caller."""
        user = id_text(self._user)
        if caller.token is not None:
            shown: TokenView = await self._run_blocking(self._view, self._latest(caller.token))
            return {**shown, "user": user}
        await trio.lowlevel.checkpoint()
        return {
            "user": user,
            "name": HOME_NAME,
            "kind": "home",
            "actions": [*ACTIONS],
            "repos": [],
            "branches": [],
            "origins": [],
            "created_at": None,
            "expires_at": None,
            "last_used_at": None,
            "expired": False,
            "revoked": False,
            "made": [],
        }

    async def run(self) -> None:
        """Write when tokens were last used, once a minute at most, until cancelled."""
        while True:
            await trio.sleep(API_TOKEN_USE_SECONDS)
            await self.save_uses()

    async def save_uses(self) -> None:
        """Write when tokens were last used. What cannot be written is logged, and tried again."""
        async with self._lock:
            try:
                await self._run_blocking(self.file.save_uses)
            except ServiceError as error:
                log.warning("uses of tokens are not written", error=error.message)

    def _latest(self, token: Token) -> Token:
        """Return the token as it is kept now, or as it was."""
        return next((one for one in self.file.tokens() if one.digest == token.digest), token)

    def _make(
        self,
        name: str,
        secret: str,
        kind: Kind,
        actions: tuple[Action, ...],
        seconds: int,
        repos: tuple[str, ...],
        branches: tuple[str, ...],
    ) -> Token:
        now = self.file.now()
        return Token(name, digest_of(secret), kind, actions, now, now + seconds, repos, branches)

    def _views(self, tokens: Sequence[Token]) -> list[TokenView]:
        """Describe tokens with what each made. The answer may have megabytes, so it is not made in the event loop."""
        return [self._view(one) for one in tokens]

    def _view(self, token: Token) -> TokenView:
        return {
            "name": token.name,
            "kind": token.kind,
            "actions": [*token.actions],
            "repos": [self._repo_view(repo) for repo in token.repos],
            "branches": [self._branch_view(name) for name in token.branches],
            "origins": [*token.origins],
            "created_at": token.created_at,
            "expires_at": token.expires_at,
            "last_used_at": token.last_used_at,
            "expired": self.file.is_expired(token),
            "revoked": token.revoked_at is not None,
            "made": [self.view_made_thing(one) for one in reversed(token.made)],
        }

    def view_made_thing(self, made: Made) -> MadeThing:
        """Return what the API says of a thing that was made."""
        repo = made.repo.partition(":")[0]
        ended = has_ended(made, self.file.now())
        advice = (_FOUND_BY if made.is_begun else _TAKEN_BACK)[made.kind]
        return {
            "kind": made.kind,
            "what": made.what,
            "repo": repo or None,
            "repo_name": self._repo_view(repo)["name"] if repo else None,
            "made_at": made.at,
            "expires_at": made.until,
            "begun": made.is_begun,
            "ended": ended,
            "advice": "" if ended else advice.format(repo=repo, what=shlex.quote(made.what)),
        }

    def _repo_view(self, repo: str) -> TokenRepo:
        try:
            return {"repo": repo, "name": self._targets.repo(repo).name}
        except ServiceError:  # it was left or forgotten since
            return {"repo": repo, "name": None}

    def _branch_view(self, name: str) -> TokenBranch:
        repo, _, branch = name.partition(":")
        try:
            return {"repo": repo, "branch": branch, "name": self._targets.branch(name).name}
        except ServiceError:  # as above
            return {"repo": repo, "branch": branch, "name": None}


def _revoked(caller: Caller) -> ServiceError:
    return ServiceError("unauthorized", f"the API token {caller.name!r} was revoked")


def _count_apps(tokens: Sequence[Token]) -> int:
    return sum(one.kind == "app" and one.revoked_at is None for one in tokens)


def _with_made(token: Token, made: Made, now: int) -> Token:
    """Return a token with one more made thing. Of too many, ended ones are dropped; `check_room` refuses more."""
    is_full = size_of_made(token.made) >= API_TOKEN_MADE_SIZE_MAX
    return structs.replace(token, made=(*(not_ended(token.made, now) if is_full else token.made), made))


def _swapped(token: Token, thing: Made, *others: Made) -> tuple[Made, ...]:
    """Return what a token made, with others in the place of one thing."""
    if thing not in token.made:
        return (*token.made, *others)
    place = token.made.index(thing)
    return (*token.made[:place], *others, *token.made[place + 1 :])


def _free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number if another browser has it."""
    found, number = name, 1
    while found in taken:
        number += 1
        end = f" {number}"
        found = name[: BROWSER_NAME_SIZE_MAX - len(end)] + end
    return found


def _browser_view(token: TokenView) -> BrowserView:
    created, expires = token["created_at"], token["expires_at"]
    assert created is not None, "all but the node's own have a time"
    assert expires is not None, "the same"
    return {
        "name": token["name"],
        "created_at": created,
        "expires_at": expires,
        "last_used_at": token["last_used_at"],
        "expired": token["expired"],
        "revoked": token["revoked"],
        "here": token["kind"] == "kept",
        "made": token["made"],
    }
