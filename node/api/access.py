"""Admission of callers: compares a request with its endpoint's scopes, and cuts answers to what the caller may see.

For a caller that is for some repos, what it is not for looks as if it were not there: the same refusal, whatever there
is. A name that it may use is replaced by the id, so that the service finds the same repo or branch, and no other that
has the name too.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from node.api.callers import Caller, Callers
from node.api.event_streams import Event, EventSource
from node.api.targets import Targets
from node.contract.access import ACTIONS, TargetKind, TokenScope
from node.contract.endpoint import Endpoint
from node.observe.standing_view import without_peers
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from ravel.types.values import Action

_SHOWN_MAX: Final = 100
"""Characters of a name that a refusal repeats."""
_CHANGING: Final[frozenset[Action]] = frozenset({"manage", "admin"})
_NAMED: Final[frozenset[TargetKind]] = frozenset({"repo", "branch", "repo of branch"})
"""Targets of scopes whose field names a repo or branch."""
_PEERS: Final = ("peers", "known", "banned")
"""Keys of lists of peers, which the action `node` shows."""
LISTS: Final = frozenset({"repos", "gone", "branches", *_PEERS})
"""Keys of answers that `keep_readable` knows."""


class Access:
    """Admits requests. `callers` tells whether a token is still good."""

    def __init__(self, targets: Targets, callers: Callers, run_blocking: RunBlocking) -> None:
        self._targets = targets
        self._callers = callers
        self.run_blocking = run_blocking

    async def admit(
        self, endpoint: Endpoint[Any], caller: Caller, arguments: dict[str, Any], *, of_body: bool = False
    ) -> None:
        """Refuse what the caller's scopes do not allow. For a caller limited to some repos, replace names in `arguments` by
        ids.

        Called once for the path's names, before the body is read, and once `of_body` for the body's names. Raises
        ServiceError `insufficient_scope`, `ambiguous`.
        """
        if caller.is_home:
            return
        for scope in endpoint.scopes:
            if scope.target == "home" or (scope.target == "person" and not caller.is_person):
                raise _needs_home(caller, endpoint)
            if scope.action not in caller.actions:
                raise refusal(caller, endpoint, scope, arguments)
        scopes = [scope for scope in endpoint.scopes if (scope.field in endpoint.body_fields) == of_body]
        for scope in scopes if caller.is_limited else ():
            await self._find(scope, caller, arguments, endpoint)
        for scope in scopes if not caller.is_person else ():
            await self._spare_devices(scope, caller, arguments)

    def follow(self, source: EventSource, caller: Caller) -> EventSource:
        """Return the events of a source that a caller may see, while its token is good."""
        return source if caller.is_home else _CallerSource(source, caller, self._callers)

    async def _find(
        self, scope: TokenScope, caller: Caller, arguments: dict[str, Any], endpoint: Endpoint[Any]
    ) -> None:
        text = str(arguments.get(scope.field, ""))
        try:
            if scope.target == "repo":
                found = self._targets.repo(text, caller)
                arguments[scope.field] = self._targets.text_of(found)
            elif scope.target == "branches":
                arguments[scope.field] = self._targets.text_of(self._targets.repo_of_branches(text, caller))
            elif scope.target == "branch":
                arguments[scope.field] = self._targets.name(self._targets.branch(text, caller))
            elif scope.target == "commit":
                arguments[scope.field] = await self.run_blocking(self._targets.commit, text, caller)
            elif scope.target not in ("repos", "readable") and not self._is_for_rest(scope, caller, text):
                raise refusal(caller, endpoint, scope, arguments)
        except ServiceError as error:
            if error.code != "not_found":
                raise
            raise refusal(caller, endpoint, scope, arguments) from None

    async def _spare_devices(self, scope: TokenScope, caller: Caller, arguments: dict[str, Any]) -> None:
        """Raise if an app or a paired browser would change the members of the repo of this person's devices.

        Each member of that repo gets all repos of the person, later ones too. `arguments` gets the id of an admitted repo,
        so that no other repo takes its name meanwhile.
        """
        if scope.action not in _CHANGING or scope.target not in _NAMED:
            return
        text = str(arguments.get(scope.field, ""))
        try:
            if scope.target == "repo":
                repo = self._targets.repo(text, caller)
                name = self._targets.text_of(repo)
            else:
                branch = self._targets.branch(text, caller)
                repo, name = self._targets.repo_of(branch), self._targets.name(branch)
        except ServiceError:  # the service says what is wrong with the name
            return
        if await self.run_blocking(self._targets.is_of_devices, repo):
            raise ServiceError(
                "insufficient_scope",
                f"this person's devices find each other in the repo {repo.name!r}, so that only the person changes it",
                "use the command on the node's machine, or open the page there: ravel open",
            )
        arguments[scope.field] = name

    def _is_for_rest(self, scope: TokenScope, caller: Caller, text: str) -> bool:
        """Return True if a caller that is for some repos has a scope whose target is a whole repo, or all repos."""
        if scope.target != "repo of branch":
            return False
        return caller.is_for_repo(self._targets.repo_text(self._targets.branch(text, caller)))


def keep_readable(caller: Caller, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a list answer without the repos, branches and peers that the caller may not see."""
    found = dict(answer)
    if caller.is_limited and "repos" in found:
        found["repos"] = [one for one in found["repos"] if caller.is_for_repo(one["repo"])]
    if caller.is_limited and "gone" in found:
        found["gone"] = [one for one in found["gone"] if caller.is_for_repo(one)]
    if caller.is_limited and "branches" in found:
        found["branches"] = [
            one for one in found["branches"] if caller.is_for_branch(one["repo"], one["branch"])
        ]
    if "node" not in caller.actions:
        found |= {name: [] for name in _PEERS if name in found}
        if "repos" in found:
            found["repos"] = [
                {**one, "standing": without_peers(one["standing"])} if "standing" in one else one
                for one in found["repos"]
            ]
    return found


def check_action(caller: Caller, action: Action, what: str) -> None:
    """Refuse `what`, which is no endpoint of the table, to a token without an action. Raises `insufficient_scope`."""
    if action not in caller.actions:
        raise _insufficient(caller, f"`{what}` needs `{action}`", (action,), "")


def refusal(
    caller: Caller, endpoint: Endpoint[Any], scope: TokenScope, arguments: Mapping[str, object]
) -> ServiceError:
    """Return the refusal of a caller, with the command that makes a token with enough scope."""
    actions = tuple(action for action in ACTIONS if any(one.action == action for one in endpoint.scopes))
    text = str(arguments.get(scope.field, ""))[:_SHOWN_MAX]
    where, option = "", ""
    match scope.target:
        case "repo" | "branches":
            where, option = f" in the repo {text!r}", f" --repo {shlex.quote(text)}"
        case "branch":
            where, option = f" in the branch {text!r}", f" --branch {shlex.quote(text)}"
        case "repo of branch":
            where, option = f" in the whole repo of the branch {text!r}", " --repo REPO"
        case "commit":
            where, option = f" in the branch of the commit {text!r}", " --repo REPO"
        case "all repos":
            where = " in all repos"
    needed = f"`{endpoint.method} {endpoint.path}` needs `{scope.action}`{where}"
    return _insufficient(caller, needed, actions, option)


def _insufficient(caller: Caller, needed: str, actions: Sequence[str], option: str) -> ServiceError:
    held_actions = ", ".join(f"`{action}`" for action in ACTIONS if action in caller.actions)
    held = (
        f"{held_actions} in {counted(len(caller.repos), 'repo')} and {counted(len(caller.branches), 'branch', 'branches')}"
        if caller.is_limited
        else held_actions
    )
    return ServiceError(
        "insufficient_scope",
        f"{needed}, and the token {caller.name!r} has {held}",
        f"make a token that may: ravel token create --name NAME --actions {','.join(actions)}{option}",
    )


def _needs_home(caller: Caller, endpoint: Endpoint[Any]) -> ServiceError:
    return ServiceError(
        "insufficient_scope",
        f"`{endpoint.method} {endpoint.path}` is for the node's own token"
        f"{' and for pages' if endpoint.scopes[0].target == 'person' else ''}, and the token {caller.name!r} is another",
        "use the command, which has that token from the file api-token of the node's folder, or open the page: ravel open",
    )


class _CallerSource:
    """A source of events for one caller: ends with an error when its token is no longer good."""

    def __init__(self, source: EventSource, caller: Caller, callers: Callers) -> None:
        self._source = source
        self._caller = caller
        self._callers = callers
        self._sent: dict[str, Mapping[str, object]] = {}
        self._repos: dict[str, object] | None = None  # as they were sent last, by id

    def start(self) -> None:
        """Begin to notice."""
        self._source.start()

    def stop(self) -> None:
        """Cease to notice."""
        self._source.stop()

    async def next(self) -> Sequence[Event]:
        """Wait for the next events that the caller may see. Raises ServiceError, StorageError."""
        while True:
            self._callers.check(self._caller)
            events = await self._source.next()
            self._callers.check(self._caller)  # it may have been revoked while nothing happened
            seen = [event for event in map(self._keep, events) if event is not None]
            if seen or not events:
                return seen

    def _keep(self, event: Event) -> Event | None:
        if not LISTS & event.data.keys():
            return event
        if event.name == "peers" and "node" not in self._caller.actions:
            return None
        found = Event(event.name, event.cursor, keep_readable(self._caller, event.data))
        # That something happens in other repos must not show either.
        if event.name == "repos":
            return self._keep_repos(found)
        if self._sent.get(event.name) == found.data:
            return None
        self._sent[event.name] = found.data
        return found

    def _keep_repos(self, event: Event) -> Event | None:
        """Return the part of a list of repos that is new to the caller: of a complete list all of it, if any is new."""
        data: dict[str, Any] = dict(event.data)
        shown = {one["repo"]: one for one in data["repos"]}
        if data["complete"]:
            before, self._repos = self._repos, shown
            return event if shown != before else None
        sent = self._repos = self._repos if self._repos is not None else {}
        changed = {repo: one for repo, one in shown.items() if sent.get(repo) != one}
        sent.update(changed)
        for repo in data["gone"]:
            sent.pop(repo, None)
        if not changed and not data["gone"]:
            return None
        return Event(event.name, event.cursor, {**data, "repos": list(changed.values())})
