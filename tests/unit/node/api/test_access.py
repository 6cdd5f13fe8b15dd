"""What tokens may: every endpoint with every action, and requests that are refused over a real connection."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response

from node.api import binding
from node.api.access import LISTS, Access
from node.api.callers import CALLER, HOME, Caller, Callers, caller_of_token
from node.api.event_streams import Event
from node.api.targets import Targets
from node.contract.access import ACTIONS
from node.contract.browsers import MAKE_PAIRING_CODE, REVOKE_BROWSER
from node.contract.table import ENDPOINTS, AnyEndpoint
from node.contract.values import Request
from node.home.tokens import Kind, Token, TokenFile
from node.ingest.membership_facts import NO_FACTS, StatedName
from node.ingest.people import People
from node.runtime.blocking import threads
from node.runtime.errors import ServiceError
from protocol.ids import RepoId, UserId
from protocol.limits.users import API_TOKEN_TARGETS_MAX, API_TOKENS_MAX, PAGE_TOKENS_MAX
from tests.support.answers import CHECKED
from tests.support.blocking import inline
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes
from tests.support.served import TOKEN, Served, app_of, served, service_of

NOW = 1_700_000_000.0
EACH = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
FIELDS = {
    "repo": ("repo", "branches"),
    "branch": ("branch", "repo of branch"),
    "source": ("branch",),
    "commit": ("commit",),
    "": ("repos", "readable", "all repos", "node", "person", "home"),
}
"""Targets that a scope may have, by its field."""


@EACH
def test_an_entry_states_what_a_token_needs(endpoint: AnyEndpoint) -> None:
    parts = [one.name for one in endpoint.path_parameters]
    for scope in endpoint.scopes:
        assert scope.target in FIELDS[scope.field]
        assert not scope.field or scope.field in [*parts, *endpoint.body_fields]
    named = {scope.field for scope in endpoint.scopes}
    for part in ("repo", "branch"):
        assert part not in parts or part in named, f"a token for other repos would reach this {part}"
    assert "branch" in parts or "commit" not in parts or "commit" in named
    for field in {"repo", "branch", "source"} & endpoint.body_fields.keys():
        is_label = (endpoint.name, field) == ("import_commits", "source")
        assert field in named or is_label, f"a token for other repos would reach what {field} names"
    if endpoint.method == "GET":
        assert {scope.action for scope in endpoint.scopes} <= {"read", "node"}, (
            "what is asked changes nothing"
        )
    if any(scope.target in ("repos", "branches") for scope in endpoint.scopes):
        assert set(endpoint.answer.__annotations__) <= LISTS | {"cursor", "complete"}, (
            "what is not readable is taken out of such lists"
        )


def test_only_what_shows_nothing_is_for_every_token() -> None:
    assert {one.name for one in ENDPOINTS if not one.scopes} == {"describe_api", "draw_qr", "show_token"}


def test_only_the_person_of_the_node_makes_tokens_and_gets_keys() -> None:
    about = {
        name: {one.name for one in ENDPOINTS if any(scope.target == name for scope in one.scopes)}
        for name in ("home", "person")
    }
    assert about["home"] == {"make_page_code"}
    assert about["person"] == {
        *(
            "create_token",
            "list_tokens",
            "revoke_token",
            "make_pairing_code",
            "keep_browser",
            "revoke_browser",
        ),
        *(
            "change_setting",
            "restart_node",
            "start_with_login",
            "show_key_words",
            "recover_user",
            "start_backup",
            "make_report",
            "open_report",
            "make_export_code",
        ),
        *("state_me", "set_petname"),
        *("invite_device", "join_as_device", "sync_devices", "remove_device", "promote_device"),
        *("name_friends", "sign_recovery", "finish_recovery"),
    }


def test_a_page_is_its_persons_and_an_app_is_not(world: "_World") -> None:
    page = Token("page-1", "0" * 64, "page", ACTIONS, 0, 0)
    callers = {"page": Caller("page-1", frozenset(ACTIONS), token=page), "app": world.caller(*ACTIONS)}
    for endpoint in ENDPOINTS:
        about = {scope.target for scope in endpoint.scopes}
        verdicts = {kind: world.verdict(endpoint, caller) for kind, caller in callers.items()}
        if "person" in about:
            assert verdicts == {"page": "admitted", "app": "insufficient_scope"}, endpoint.name
        elif "home" in about:
            assert set(verdicts.values()) == {"insufficient_scope"}, endpoint.name


def test_pages_of_this_machine_pair_browsers_and_those_pair_none(world: "_World") -> None:
    kinds: tuple[Kind, ...] = ("app", "page", "browser")
    callers = {
        kind: Caller(kind, frozenset(ACTIONS), token=Token(kind, "0" * 64, kind, ACTIONS, 0, 0))
        for kind in kinds
    }
    for endpoint in (MAKE_PAIRING_CODE, REVOKE_BROWSER):
        verdicts = {kind: world.verdict(endpoint, caller) for kind, caller in callers.items()}
        assert verdicts == {"app": "insufficient_scope", "page": "admitted", "browser": "insufficient_scope"}


@dataclass(frozen=True, slots=True)
class _World:
    """A node with two repos of two branches each, and what admits requests to it."""

    access: Access
    targets: Targets
    repos: dict[str, str]
    """Name -> id."""
    commit: str
    """In the branch `main` of `notes`."""

    def caller(self, *may: str, repos: tuple[str, ...] = (), branches: tuple[str, ...] = ()) -> Caller:
        """One with a token."""
        token = Token("chat", "0" * 64, "app", (), 0, 0)
        actions = frozenset(action for action in ACTIONS if action in may)
        return Caller("chat", actions, frozenset(repos), frozenset(branches), token)

    def branch(self, text: str) -> str:
        """REPO:BRANCH, of ids."""
        return self.targets.name(self.targets.branch(text))

    def verdict(self, endpoint: AnyEndpoint, caller: Caller) -> str:
        """`admitted`, or the code of the refusal."""
        arguments: dict[str, Any] = {
            "repo": "notes",
            "branch": "notes:main",
            "source": "notes:main",
            "commit": self.commit,
        }

        async def admit() -> None:
            await self.access.admit(endpoint, caller, arguments)
            await self.access.admit(endpoint, caller, arguments, of_body=True)

        try:
            trio.run(admit)
        except ServiceError as error:
            return error.code
        return "admitted"


@contextmanager
def _world(folder: Path) -> Iterator[_World]:
    repos: dict[str, str] = {}
    commits: list[str] = []

    async def fill() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app_of(service)),
            base_url="http://127.0.0.1/api/v1",
            headers={"Authorization": f"Bearer {'t' * 64}"},
        ) as client:
            for name in ("notes", "other"):
                repos[name] = (await client.post("/repos", json={"name": name})).json()["repo"]
                await client.post(f"/repos/{name}/branches", json={"name": "side"})
            written = await client.post("/branches/notes:main/commits", json={"text": "hello"})
            commits.append(written.json()["commit"])

    with open_nodes(folder, "alice") as (node,):
        service = service_of(node, folder)
        trio.run(fill)
        access = Access(
            service.targets, Callers("t" * 64, service.node.tokens.file), service.hub.run_blocking
        )
        yield _World(access, service.targets, repos, commits[0])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_World]:
    with _world(tmp_path_factory.mktemp("access")) as found:
        yield found


@pytest.mark.slow
@EACH
def test_a_token_without_a_needed_action_is_refused(world: _World, endpoint: AnyEndpoint) -> None:
    needed = {scope.action for scope in endpoint.scopes}
    is_home = any(scope.target in ("home", "person") for scope in endpoint.scopes)
    for action in ACTIONS:
        rest = world.caller(*set(ACTIONS) - {action})
        refused = is_home or action in needed
        assert world.verdict(endpoint, rest) == ("insufficient_scope" if refused else "admitted")
        alone = world.caller(action)
        refused = is_home or not needed <= {action}
        assert world.verdict(endpoint, alone) == ("insufficient_scope" if refused else "admitted")


@pytest.mark.slow
@EACH
def test_a_token_for_another_repo_or_branch_is_refused(world: _World, endpoint: AnyEndpoint) -> None:
    about = {scope.target for scope in endpoint.scopes}
    notes, other = world.repos["notes"], world.repos["other"]
    main = world.branch("notes:main")
    side = world.branch("notes:side")
    whole = about <= {"repo", "branch", "repo of branch", "commit", "branches", "repos", "readable"}
    single = about <= {"branch", "commit", "branches", "repos", "readable"}
    nothing = about <= {"repos", "readable"}
    for caller, admitted in (
        (world.caller(*ACTIONS, repos=(notes,)), whole),
        (world.caller(*ACTIONS, repos=(notes, other)), whole),
        (world.caller(*ACTIONS, repos=(other,)), nothing),
        (world.caller(*ACTIONS, branches=(main,)), single),
        (world.caller(*ACTIONS, branches=(side,)), about <= {"branches", "repos", "readable"}),
        (world.caller(*ACTIONS, repos=("a" * 52,)), nothing),
    ):
        assert world.verdict(endpoint, caller) == ("admitted" if admitted else "insufficient_scope")


@pytest.mark.slow
def test_a_name_becomes_an_id_of_the_callers_own(world: _World) -> None:
    other = world.caller(*ACTIONS, repos=(world.repos["other"],))
    show = next(one for one in ENDPOINTS if one.name == "show_digest")
    arguments: dict[str, Any] = {"branch": "main"}
    trio.run(world.access.admit, show, other, arguments)
    repo, _, branch = arguments["branch"].partition(":")
    assert (repo, len(branch)) == (world.repos["other"], 52), (
        "`main` alone is ambiguous for the node's own token"
    )


class _Scripted:
    """Events that come one by one."""

    def __init__(self, *events: Event) -> None:
        self._events = list(events)

    def start(self) -> None:
        """Nothing to begin."""

    def stop(self) -> None:
        """Nothing to end."""

    async def next(self) -> list[Event]:
        await trio.lowlevel.checkpoint()
        return [self._events.pop(0)]


def _repos_event(own_commits: int, other_commits: int) -> Event:
    repos = [{"repo": "a" * 52, "commits": own_commits}, {"repo": "b" * 52, "commits": other_commits}]
    return Event("repos", "", {"repos": repos, "gone": [], "cursor": "", "complete": True})


async def test_that_something_happens_in_other_repos_does_not_show(tmp_path: Path) -> None:
    file = TokenFile(tmp_path, lambda: NOW)
    token = Token("chat", "0" * 64, "app", ("read",), int(NOW), int(NOW) + 60, ("a" * 52,))
    file.replace([token])
    with open_nodes(tmp_path / "nodes", "alice") as (node,):
        access = Access(Targets(node.replica, node.author.user), Callers("t" * 64, file), inline())
        peers = Event("peers", "", {"peers": [], "known": [], "banned": []})
        source = _Scripted(
            _repos_event(1, 1), peers, _repos_event(1, 2), _repos_event(1, 3), _repos_event(2, 3)
        )
        seen = access.follow(source, caller_of_token(token))
        for commits in (1, 2):
            (event,) = await seen.next()
            assert event.data["repos"] == [{"repo": "a" * 52, "commits": commits}]


async def test_of_changes_of_other_repos_nothing_shows(tmp_path: Path) -> None:
    file = TokenFile(tmp_path, lambda: NOW)
    token = Token("chat", "0" * 64, "app", ("read",), int(NOW), int(NOW) + 60, ("a" * 52,))
    file.replace([token])

    def changes(*repos: tuple[str, int], gone: str = "") -> Event:
        views = [{"repo": name * 52, "commits": commits} for name, commits in repos]
        data = {"repos": views, "gone": [one * 52 for one in gone], "cursor": "", "complete": False}
        return Event("repos", "", data)

    events = (
        changes(("b", 1), gone="c"),
        changes(("a", 1), ("b", 2)),
        changes(("a", 1), gone="b"),
        changes(gone="ab"),
    )
    with open_nodes(tmp_path / "nodes", "alice") as (node,):
        access = Access(Targets(node.replica, node.author.user), Callers("t" * 64, file), inline())
        seen = access.follow(_Scripted(*events), caller_of_token(token))
        (first,), (last,) = await seen.next(), await seen.next()
        assert (first.data["repos"], first.data["gone"]) == ([{"repo": "a" * 52, "commits": 1}], [])
        assert (last.data["repos"], last.data["gone"]) == ([], ["a" * 52])


# --- requests ---


@asynccontextmanager
async def _clients(one: Served, **requests: dict[str, Any]) -> AsyncIterator[list[httpx.AsyncClient]]:
    """A client for each token that is asked for."""
    clients = []
    for name, body in requests.items():
        made = await one.client.post("/api/v1/tokens", json={"name": name, **body})
        assert made.status_code == 200, made.text
        headers = {"Authorization": f"Bearer {made.json()['token']}"}
        clients.append(httpx.AsyncClient(base_url=one.client.base_url, headers=headers, event_hooks=CHECKED))
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()


async def _repos(one: Served) -> None:
    for name in ("notes", "other"):
        await one.client.post("/api/v1/repos", json={"name": name})
        await one.client.post(f"/api/v1/repos/{name}/branches", json={"name": "side"})


def _error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def _body(kind: type[Request] | None) -> bytes | None:
    return None if kind is None else b"{}"


@pytest.mark.slow
async def test_no_route_passes_the_table_by(tmp_path: Path) -> None:
    """Each endpoint over a connection, with a token that may do all, in a repo that is not the one that is named."""
    async with served(tmp_path) as one:
        await _repos(one)
        async with (
            _clients(
                one, elsewhere={"actions": ["read", "write", "manage", "admin"], "repos": ["other"]}
            ) as (client,),
        ):
            for endpoint in ENDPOINTS:
                parts = {part.name: "nope" for part in endpoint.path_parameters}
                parts |= {"repo": "notes", "branch": "notes:main"}
                path = "/api/v1" + endpoint.fill_path(parts)
                answer = await client.request(endpoint.method, path, content=_body(endpoint.request))
                if not {scope.target for scope in endpoint.scopes} <= {"repos", "readable"}:
                    assert _error(answer) == (403, "insufficient_scope"), endpoint.name
            assert (await client.get("/metrics")).status_code == 403
            async with _clients(one, node={"actions": ["node"]}, scraper={"actions": ["metrics"]}) as (
                node,
                scraper,
            ):
                assert _error(await node.get("/metrics")) == (403, "insufficient_scope")
                assert (await scraper.get("/metrics")).is_success
                assert _error(await scraper.get("/api/v1/status")) == (403, "insufficient_scope")
            assert (await client.get("/api/v1/repos")).json()["repos"][0]["name"] == "other"
            assert len((await one.client.get("/api/v1/repos")).json()["repos"]) == 2, "nothing was done"


@pytest.mark.slow
async def test_a_refusal_says_what_is_missing_and_how_to_get_it(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await _repos(one)
        async with _clients(
            one, chat={"actions": ["read"], "repos": ["notes"]}, sensor={"actions": ["write"]}
        ) as (
            chat,
            sensor,
        ):
            answer = await chat.post("/api/v1/branches/notes:main/commits", json={"text": "x"})
            assert _error(answer) == (403, "insufficient_scope")
            error = answer.json()["error"]
            assert (
                "needs `write` in the branch 'notes:main', and the token 'chat' has `read`"
                in error["message"]
            )
            assert error["next"] == (
                "make a token that may: ravel token create --name NAME --actions write --branch notes:main"
            )
            there = (await chat.get("/api/v1/branches/other:main/digest")).json()["error"]
            nowhere = (await chat.get("/api/v1/branches/never:main/digest")).json()["error"]
            assert there["code"] == nowhere["code"] == "insufficient_scope"
            assert there["message"].replace("other", "never") == nowhere["message"], (
                "what is there does not show"
            )
            secret = (await one.client.post("/api/v1/branches/other:main/commits", json={"text": "x"})).json()
            past = f"/api/v1/branches/notes:main/past/{secret['commit'][:6]}"
            assert _error(await chat.get(past)) == (404, "not_found")
            for path in ("", "/verdict"):
                answer = await chat.get(f"/api/v1/commits/{secret['commit']}{path}")
                assert _error(answer) == (403, "insufficient_scope")
                answer = await chat.get(f"/api/v1/commits/{'a' * 52}{path}")
                assert _error(answer) == (403, "insufficient_scope")
            assert (await sensor.post("/api/v1/branches/notes:main/commits", json={"text": "x"})).is_success
            assert _error(await sensor.get("/api/v1/branches/notes:main/timeline"))[0] == 403, (
                "write is not read"
            )
            assert (await chat.get("/api/v1/branches/main/timeline")).is_success, (
                "its own `main` is the only one"
            )


@pytest.mark.slow
async def test_a_branch_in_the_body_is_looked_at_too(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await _repos(one)
        all_but_node = ["read", "write", "manage", "admin"]
        async with _clients(
            one,
            both={"actions": all_but_node, "repos": ["notes", "other"]},
            half={"actions": all_but_node, "repos": ["notes"]},
            writer={"actions": ["write"], "repos": ["notes", "other"]},
        ) as (both, half, writer):
            for path in ("/api/v1/branches/notes:main/merges", "/api/v1/branches/notes:main/offers"):
                body = {"source": "other:main"}
                assert _error(await half.post(path, json=body)) == (403, "insufficient_scope")
                assert _error(await writer.post(path, json=body)) == (403, "insufficient_scope")
                assert (await both.post(path, json=body)).status_code in (200, 400), (
                    "only offers go between repos"
                )


@pytest.mark.slow
async def test_lists_show_what_a_token_may_read(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await _repos(one)
        async with _clients(
            one,
            repo={"actions": ["read"], "repos": ["notes"]},
            branch={"actions": ["read"], "branches": ["notes:side"]},
            node={"actions": ["read", "node"]},
        ) as (repo, branch, node):
            assert [view["name"] for view in (await repo.get("/api/v1/repos")).json()["repos"]] == ["notes"]
            assert (await branch.get("/api/v1/repos")).json()["repos"] == []
            shown = (await repo.get("/api/v1/repos/notes/branches")).json()["branches"]
            assert {view["name"] for view in shown} == {"main", "side"}
            shown = (await branch.get("/api/v1/repos/notes/branches")).json()["branches"]
            assert [view["name"] for view in shown] == ["side"]
            assert _error(await branch.get("/api/v1/repos/other/branches")) == (403, "insufficient_scope")
            await one.client.put(f"/api/v1/peers/{'a' * 52}/ban")
            for client, repos, banned in ((repo, 1, 0), (branch, 0, 0), (node, 2, 1)):
                seen = (await client.get("/api/v1/events")).json()
                assert (len(seen["repos"]), len(seen["banned"])) == (repos, banned)


@pytest.mark.slow
def test_a_token_for_some_repos_is_shown_no_names_from_others(world: _World) -> None:
    known, here, elsewhere = People(), RepoId(bytes(32)), RepoId(b"o" * 32)
    ann = UserId(b"a" * 32)
    facts = {elsewhere: replace(NO_FACTS, stated={ann: StatedName("Ann", None, 1)})}
    known.set_facts(facts, facts)

    async def answer(_: StarletteRequest) -> Response:
        return Response(await threads()(known.name, here, ann))

    async def name_for(caller: Caller) -> bytes:
        endpoint = next(one for one in ENDPOINTS if one.name == "list_repos")
        request = StarletteRequest({"type": "http", "path_params": {}, CALLER: caller})
        return bytes((await binding.admitted(endpoint, answer, world.access)(request)).body)

    async def ask_in_turn() -> list[bytes]:
        limited = world.caller("read", repos=(world.repos["notes"],))
        return [await name_for(one) for one in (limited, world.caller("read"), limited, HOME)]

    assert trio.run(ask_in_turn) == [b"", b"Ann", b"", b"Ann"]


async def _next_event(lines: AsyncIterator[str]) -> tuple[str, str]:
    """Name and data of the next event of a stream."""
    name = ""
    async for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            return name, line.removeprefix("data: ")
    return "", ""


@pytest.mark.extended
@pytest.mark.slow
async def test_streams_show_the_same_and_end_when_the_token_does(tmp_path: Path) -> None:
    now = NOW
    async with served(tmp_path, lambda: now) as one:
        await _repos(one)
        stream = {"Accept": "text/event-stream"}
        async with (
            _clients(
                one,
                chat={"actions": ["read", "write"], "repos": ["notes"]},
                short={"actions": ["read"], "repos": ["notes"], "expires_seconds": 60},
            ) as (chat, short),
            chat.stream("GET", "/api/v1/events", headers=stream) as events,
            chat.stream("GET", "/api/v1/branches/main/edits", headers=stream) as edits,
            short.stream("GET", "/api/v1/branches/main/edits", headers=stream) as brief,
        ):
            lines, edit_lines, brief_lines = events.aiter_lines(), edits.aiter_lines(), brief.aiter_lines()
            name, data = await _next_event(lines)
            assert (name, "other" in data) == ("repos", False), "no peers without `node`"
            for _ in range(2):
                assert (await _next_event(edit_lines))[0] == (await _next_event(brief_lines))[0]
            await one.client.post("/api/v1/branches/other:main/commits", json={"text": "unseen"})
            await one.client.post("/api/v1/branches/notes:main/commits", json={"text": "hello"})
            assert '"commits":6' in (await _next_event(lines))[1], (
                "that something happens elsewhere does not show"
            )
            assert "hello" in (await _next_event(edit_lines))[1]
            assert (await one.client.delete("/api/v1/tokens/chat")).is_success
            now = NOW + 60
            await one.client.post("/api/v1/branches/notes:main/commits", json={"text": "too late"})
            for follow, code in ((lines, "unauthorized"), (edit_lines, "unauthorized")):
                name, data = await _next_event(follow)
                assert (name, code in data, "too late" in data) == ("error", True, False)
            while (last := await _next_event(brief_lines))[0] == "edit":
                assert "too late" not in last[1]
            assert (last[0], "token_expired" in last[1]) == ("error", True)
            for follow in (lines, edit_lines, brief_lines):
                assert not [line async for line in follow if line.startswith("data: ")], (
                    "that was the last event"
                )
            assert _error(await chat.get("/api/v1/token")) == (401, "unauthorized")
            assert _error(await short.get("/api/v1/token")) == (401, "token_expired")


@pytest.mark.slow
async def test_what_is_no_valid_token_is_told_apart(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        made = (await one.client.post("/api/v1/tokens", json={"name": "chat", "actions": ["read"]})).json()[
            "token"
        ]
        for given, sentence in (
            ("", "no API token was sent"),
            ("Basic abc", "not of the form `Bearer TOKEN`"),
            (f"Bearer {made[:-1]}", "mistyped"),
            (f"Bearer ravel_{'a' * 52}", "wrong, was revoked, or is of another node"),
            (f"Bearer {'u' * 64}", "wrong, was revoked, or is of another node"),
            (f"Bearer {made}{'x' * 10_000}", "mistyped"),
        ):
            headers = {"Authorization": given} if given else {}
            async with httpx.AsyncClient(base_url=one.client.base_url, event_hooks=CHECKED) as stranger:
                answer = await stranger.get("/api/v1/token", headers=headers)
            assert _error(answer) == (401, "unauthorized")
            assert sentence in answer.json()["error"]["message"]
            assert made not in answer.text
        me = (await one.client.get("/api/v1/status")).json()
        for scheme in ("bearer ", "BEARER ", "Bearer  "):
            headers = {"Authorization": f"{scheme}{made}"}
            shown = (await one.client.get("/api/v1/token", headers=headers)).json()
            assert (shown["name"], shown["user"]) == ("chat", me["user"])
            own = {"Authorization": f"{scheme}{TOKEN}"}
            assert (await one.client.get("/api/v1/token", headers=own)).json()["name"] == "home"
        two = [("Authorization", f"Bearer {made}"), ("Authorization", f"Bearer {made}")]
        async with httpx.AsyncClient(base_url=one.client.base_url) as stranger:
            answer = await stranger.get("/api/v1/token", headers=two)
        assert "two tokens were sent" in answer.json()["error"]["message"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no_action": ({"actions": []}, "bad_request"),
    "unknown_action": ({"actions": ["own"]}, "bad_request"),
    "unknown_field": ({"actions": ["read"], "scope": "all"}, "bad_request"),
    "no_name": ({"actions": ["read"], "name": ""}, "bad_request"),
    "a_path_as_a_name": ({"actions": ["read"], "name": "../x"}, "bad_request"),
    "a_line_break_in_a_name": ({"actions": ["read"], "name": "x\n"}, "bad_request"),
    "a_long_name": ({"actions": ["read"], "name": "x" * 65}, "bad_request"),
    "the_name_of_the_nodes_own": ({"actions": ["read"], "name": "home"}, "already_exists"),
    "too_soon": ({"actions": ["read"], "expires_seconds": 59}, "bad_request"),
    "too_late": ({"actions": ["read"], "expires_seconds": 3650 * 86_400 + 1}, "bad_request"),
    "a_repo_that_is_not_there": ({"actions": ["read"], "repos": ["nope"]}, "not_found"),
    "a_branch_that_is_not_there": ({"actions": ["read"], "branches": ["notes:nope"]}, "not_found"),
    "a_branch_that_is_ambiguous": ({"actions": ["read"], "branches": ["main"]}, "ambiguous"),
    "the_node_in_a_repo": ({"actions": ["read", "node"], "repos": ["notes"]}, "bad_request"),
    "too_many_repos": (
        {"actions": ["read"], "repos": ["notes"] * (API_TOKEN_TARGETS_MAX + 1)},
        "bad_request",
    ),
    "too_many_of_both": (
        {"actions": ["read"], "repos": ["notes"] * 9, "branches": ["notes:main"] * 8},
        "too_large",
    ),
}


@pytest.mark.slow
async def test_what_no_token_can_be_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await _repos(one)
        for name, (body, code) in REFUSED.items():
            answer = await one.client.post("/api/v1/tokens", json={"name": "chat", **body})
            assert answer.json()["error"]["code"] == code, name
        assert (await one.client.get("/api/v1/tokens")).json() == {"tokens": []}
        assert _error(await one.client.delete("/api/v1/tokens/nope")) == (404, "not_found")


@pytest.mark.slow
async def test_names_and_numbers_of_tokens_are_bounded(tmp_path: Path) -> None:
    now = NOW
    async with served(tmp_path, lambda: now) as one:
        tokens = "/api/v1/tokens"
        brief = {"name": "brief", "actions": ["read"], "expires_seconds": 60}
        assert (await one.client.post(tokens, json=brief)).is_success
        assert _error(await one.client.post(tokens, json=brief)) == (409, "already_exists")
        now += 60
        assert (await one.client.get(tokens)).json()["tokens"][0]["expired"]
        assert (await one.client.post(tokens, json=brief)).is_success, "the name of an expired token is free"
        for number in range(API_TOKENS_MAX - 1):
            assert (
                await one.client.post(tokens, json={"name": f"n{number}", "actions": ["read"]})
            ).is_success
        one_more = {"name": "more", "actions": ["read"]}
        assert _error(await one.client.post(tokens, json=one_more)) == (413, "too_large")
        now += 60
        assert (await one.client.post(tokens, json=one_more)).is_success, "expired ones make room"
        pages = [await one.service.node.tokens.make_for_page() for _ in range(PAGE_TOKENS_MAX + 1)]
        shown = (await one.client.get(tokens)).json()["tokens"]
        assert sum(view["kind"] == "page" for view in shown) == PAGE_TOKENS_MAX, "apps leave pages their room"
        for page, status in ((pages[0], 401), (pages[1], 200), (pages[-1], 200)):
            answer = await one.client.get("/api/v1/token", headers={"Authorization": f"Bearer {page}"})
            assert answer.status_code == status


@pytest.mark.slow
async def test_the_last_use_is_shown_and_written_once_a_minute(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    now = NOW
    with fail_after(300), open_nodes(tmp_path, "alice") as (node,):
        service = service_of(node, tmp_path, clock=lambda: now)
        made = await service.node.tokens.create("chat", ["read"], [], [], 3600)
        headers = {"Authorization": f"Bearer {made['token']}"}
        transport = httpx.ASGITransport(app=app_of(service))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(service.node.tokens.run)
            for seconds, written in ((0, None), (30, None), (31, NOW + 61), (1, NOW + 61)):
                await trio.sleep(seconds)
                now += seconds
                shown = (await client.get("/api/v1/token", headers=headers)).json()
                assert shown["last_used_at"] == now
                on_disk = service_of(node, tmp_path).node.tokens.file.tokens()[0].last_used_at
                assert on_disk is None if written is None else on_disk in (NOW + 30, NOW + 61)
            nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_repo_that_is_gone_stays_a_scope_without_a_name(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        file = one.service.node.tokens.file
        token = Token(
            "chat",
            "0" * 64,
            "app",
            ("read",),
            int(NOW),
            int(NOW) + 60,
            ("a" * 52,),
            (f"{'b' * 52}:{'c' * 52}",),
        )
        file.replace([token])
        (shown,) = (await one.client.get("/api/v1/tokens")).json()["tokens"]
        assert shown["repos"] == [{"repo": "a" * 52, "name": None}]
        assert shown["branches"] == [{"repo": "b" * 52, "branch": "c" * 52, "name": None}]
