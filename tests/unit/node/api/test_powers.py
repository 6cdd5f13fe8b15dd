"""What the holder of a token can become, in as many steps as it likes, and what is left of that when the token is revoked.

`GIVES` says of each endpoint what its answer, or what it does, gives to who calls it. Roles give further rights. The
closure of both is what the holder of an action can become; docs/explanation/threat-model.md states it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from node.api.callers import caller_of_token
from node.contract.access import ACTIONS, Action
from node.contract.members import CREATE_INVITATION
from node.contract.table import ENDPOINTS, AnyEndpoint
from node.home.api_config import ApiConfig
from node.home.tokens import Made, Token, TokenFile, encode_tokens, size_of_made
from protocol.keys import UserSeed
from protocol.limits.formats import NAME_SIZE_MAX
from protocol.limits.users import (
    API_ORIGIN_SIZE_MAX,
    API_TOKEN_MADE_SIZE_MAX,
    API_TOKEN_NAME_SIZE_MAX,
    API_TOKEN_ORIGINS_MAX,
    API_TOKEN_TARGETS_MAX,
    API_TOKENS_FILE_SIZE_MAX,
    API_TOKENS_MAX,
    BROWSERS_MAX,
    PAGE_TOKENS_MAX,
)
from protocol.links import parse_invitation
from protocol.signing import key_pair
from protocol.text import id_text
from tests.support.answers import CHECKED
from tests.support.machine import fail_after
from tests.support.nodes import connected, open_nodes
from tests.support.served import Served, served, service_of

USER: Final = id_text(key_pair(UserSeed(bytes([7]) * 32))[0])

GIVES: Final[dict[str, set[str]]] = {
    # Links and grants: another key may come in, and stays when the token is gone.
    "create_invitation": {"member"},
    "make_ask_link": {"asker"},
    "answer_request": {"member"},
    "grant_permission": {"member", "owner of repos"},
    "share_repo": {"follower"},
    "share_branch": {"follower"},
    "make_offer": {"follower"},
    "propose_removal": {"judge"},
    "approve_proposal": {"judge"},
    "set_quorum": {"judge"},
    "remove_member": {"judge"},
    "answer_offer": {"judge"},
    "hide_post": {"judge"},
    "adopt_commits": {"judge"},
    "propose_checkpoint": {"judge"},
    "make_checkpoint": {"judge"},
    # The network: who the node speaks to.
    "add_peer": {"carrier"},
    "join_relay": {"carrier"},
    "join_repo": {"address of the node"},
    "follow_repo": {"address of the node"},
    "restore_peer": {"carrier"},
    "invite_to_relay": {"account at the relay"},
    "change_relay_account": {"account at the relay"},
    "allow_peer": {"account at the relay"},
    # The person: what these give has everything.
    "invite_device": {"device"},
    "join_as_device": {"device"},
    "sync_devices": {"device"},
    "create_token": {"person"},
    "make_page_code": {"person"},
    "make_pairing_code": {"browser"},
    "change_setting": {"person"},
    "show_key_words": {"person"},
    "start_backup": {"person"},
    "make_export_code": {"reader of all repos"},
    "open_report": {"reader of all repos"},
    "state_me": {"name of the user"},
    "set_petname": {"name of others"},
}
"""Endpoint -> what whoever calls it can be afterwards, without the token. The others give nothing that outlives it."""

GIVES_NOTHING: Final = {
    *("export_store", "draw_qr"),
    # Repos of the person: what they are named and hold is the member's, and ends with the member's right.
    *("create_repo", "fork_repo", "forget_repo", "start_epoch", "leave_repo", "cancel_request"),
    *("set_tag", "remove_tag", "create_branch", "edit_branch", "fork_branch", "compact_branch"),
    # What ends the powers of others.
    *("revoke_invitation", "close_ask_link", "revoke_token", "revoke_browser", "remove_device"),
    *("revoke_relay_account", "deny_peer", "remove_peer", "ban_peer", "unban_peer"),
    # Content, signed by the node's user.
    *(
        "write_post",
        "write_posts",
        "reply_to_post",
        "edit_post",
        "delete_post",
        "merge_branch",
        "merge_offer",
    ),
    *("write_comment", "edit_set", "snapshot_set", "edit_dict", "snapshot_dict"),
    *("open_text", "import_text", "push_text", "tell_presence"),
    *("add_file", "add_files", "remove_file", "import_commits", "mark_seen"),
    # Upkeep of the relay and of reports.
    *("pin_topic", "unpin_topic", "make_report"),
}
"""Other endpoints that are no GET: nothing that they do makes anybody more than the token does."""

LEADS_TO: Final[dict[str, set[str]]] = {
    "device": {"owner of repos", "owner of later repos"},
    "person": {"device", "browser", "name of the user", "name of others"},
    "browser": {"owner of repos"},
    "owner of repos": {"member", "judge"},
    "member": {"follower"},
}
"""What a role can make itself."""

BECOMES: Final[dict[Action, set[str]]] = {
    "read": set(),
    "write": set(),
    "manage": set(),
    "admin": {"member", "asker", "owner of repos", "follower", "judge", "address of the node"},
    "node": {"carrier", "account at the relay"},
    "metrics": set(),
}
"""Action -> all that a token which has it alone, for all repos, can make of its holder."""


def _closure(roles: set[str]) -> set[str]:
    found, rest = set[str](), set(roles)
    while rest:
        found |= rest
        rest = {further for role in rest for further in LEADS_TO.get(role, ())} - found
    return found


def _given(actions: set[Action]) -> set[str]:
    """What tokens of apps and paired browsers with these actions can become."""
    return _closure(
        {
            role
            for endpoint in ENDPOINTS
            if {need.action for need in endpoint.needs} <= actions
            and not {need.about for need in endpoint.needs} & {"person", "home"}
            for role in GIVES.get(endpoint.name, ())
        }
    )


def test_each_endpoint_that_does_something_was_looked_at() -> None:
    doing = {one.name for one in ENDPOINTS if one.method != "GET"}
    assert doing == GIVES.keys() | GIVES_NOTHING
    assert not GIVES.keys() & GIVES_NOTHING


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_alone_leads_to_what_is_written_down(action: Action) -> None:
    assert _given({action}) == BECOMES[action]


def test_all_actions_together_make_nobody_the_person() -> None:
    everything = _given(set(ACTIONS))
    assert everything == set[str]().union(*BECOMES.values())
    assert not everything & {"person", "device", "browser", "owner of later repos", "name of others"}


@pytest.mark.parametrize("kind", ["app", "browser"])
async def test_only_the_person_changes_who_is_in_the_repo_of_the_devices(tmp_path: Path, kind: str) -> None:
    """An invitation to that repo is a link for a device, whoever makes it."""
    async with served(tmp_path) as one:
        assert (await one.client.post("/api/v1/devices/invitations", json={})).is_success
        assert (await one.client.post("/api/v1/repos/devices/branches", json={"name": "main"})).is_success
        assert (await one.client.post("/api/v1/repos", json={"name": "notes"})).is_success
        async with _holder(one, kind) as holder, _holder(one, "page") as page:
            for endpoint in ENDPOINTS:
                if not any(
                    need.action in ("manage", "admin") and need.about in ("repo", "branch", "repo of branch")
                    for need in endpoint.needs
                ):
                    continue
                answer = await _call(holder, endpoint, "devices")
                if endpoint.name != "make_offer":  # its `source` is looked at
                    assert _code(answer) == "insufficient_scope", endpoint.name
                answer = await _call(holder, endpoint, "nope")
                assert _code(answer) in ("not_found", "bad_request"), endpoint.name
            offer = {"source": "devices:main"}
            answer = await holder.post("/api/v1/branches/notes:main/offers", json=offer)
            assert _code(answer) == "insufficient_scope"
            invite = {"reach": "machine"}
            assert (await holder.post("/api/v1/repos/notes/invitations", json=invite)).is_success
            assert (await page.post("/api/v1/repos/devices/invitations", json=invite)).is_success


def test_what_lets_others_in_is_written_down_with_the_token() -> None:
    kept = {one.name for one in ENDPOINTS if one.makes is not None}
    admits = {"member", "asker", "follower", "carrier", "account at the relay", "device", "person", "browser"}
    lasting = {name for name, roles in GIVES.items() if roles & admits}
    of_the_machine = {"make_page_code", "change_setting", "show_key_words", "start_backup"}
    others = {
        "join_as_device",  # the other person's device list has it
        "sync_devices",  # hands on to devices that are there
        "make_offer",  # a branch for who answers the offer: `share_branch` states the same link
        "change_relay_account",
    }
    assert kept == lasting - of_the_machine - others


async def test_what_was_made_with_a_token_is_listed_and_ends_with_it(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        notes = (await one.client.post("/api/v1/repos", json={"name": "notes"})).json()["repo"]
        async with _holder(one, "browser") as phone:
            for path in ("repos/notes/invitations", "repos/notes/lobbies"):
                assert (await phone.post(f"/api/v1/{path}", json={})).is_success, path
            grant = {"user": USER, "permission": "write"}
            assert (await phone.post("/api/v1/repos/notes/members", json=grant)).is_success
            assert (await phone.post("/api/v1/repos/notes/capability")).is_success
            assert (await phone.post("/api/v1/branches/main/capability")).is_success
        assert (await one.client.post("/api/v1/repos/notes/invitations", json={})).is_success
        (browser,) = (await one.client.get("/api/v1/browsers")).json()["browsers"]
        kinds = ["branch_link", "read_link", "member", "ask_link", "invitation"]
        assert [thing["kind"] for thing in browser["made"]] == kinds, "and nothing that the person made"
        assert {(thing["repo"], thing["repo_name"]) for thing in browser["made"]} == {(notes, "notes")}
        again = TokenFile(tmp_path, lambda: 0.0).tokens()
        assert [[made.kind for made in token.made] for token in again] == [kinds[::-1]], "it is durable"

        answer = await one.client.delete("/api/v1/browsers/phone", params={"made": 1})
        left = {thing["kind"]: thing["advice"] for thing in answer.json()["made"] if not thing["ended"]}
        assert left == {
            "branch_link": f"ravel repo renew {notes}",
            "read_link": f"ravel repo renew {notes}",
            "member": f"ravel member exclude {notes} {USER}",
        }
        listed = (await one.client.get("/api/v1/repos/notes/invitations")).json()["invitations"]
        assert [item["revoked"] for item in listed] == [True, False]
        assert (await one.client.get("/api/v1/repos/notes/lobbies")).json()["links"][0]["closed"]


async def test_a_token_is_revoked_without_what_was_made_unless_that_is_said(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with _holder(one, "app", "chat") as chat:
            made = (await chat.post("/api/v1/repos/notes/invitations", json={})).json()
            (listed,) = (await chat.get("/api/v1/token")).json()["made"]
            assert (listed["kind"], listed["what"]) == ("invitation", made["id"])
        (thing,) = (await one.client.delete("/api/v1/tokens/chat")).json()["made"]
        assert (thing["ended"], thing["advice"]) == (
            False,
            f"ravel member uninvite {thing['repo']} {made['id']}",
        )
        (invitation,) = (await one.client.get("/api/v1/repos/notes/invitations")).json()["invitations"]
        assert not invitation["revoked"]


async def test_what_a_page_made_that_makes_others_goes_with_it(tmp_path: Path) -> None:
    async with served(tmp_path, api=ApiConfig(tls="127.0.0.1:0")) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with _holder(one, "page") as page:
            request = {"name": "chat", "may": ["admin"]}
            token = (await page.post("/api/v1/tokens", json=request)).json()["token"]
            page.headers["Authorization"], own = f"Bearer {token}", page.headers["Authorization"]
            assert (await page.post("/api/v1/repos/notes/invitations", json={})).is_success
            page.headers["Authorization"] = own
            code = (await page.post("/api/v1/browsers/codes")).json()["code"]
            async with one.elsewhere() as phone:
                assert (await phone.post("/open", json={"code": code, "name": "phone"})).is_success
            name = (await page.get("/api/v1/token")).json()["name"]
        made = (await one.client.delete(f"/api/v1/tokens/{name}", params={"made": 1})).json()["made"]
        assert [(thing["kind"], thing["what"]) for thing in made[:2]] == [
            ("browser", "phone"),
            ("token", "chat"),
        ]
        assert made[2]["kind"] == "invitation", "of the token that the page made"
        assert all(thing["ended"] for thing in made)
        assert not (await one.client.get("/api/v1/tokens")).json()["tokens"]
        assert not (await one.client.get("/api/v1/browsers")).json()["browsers"]


async def test_who_joined_by_a_link_is_named_when_the_link_is_ended(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    with fail_after(120), open_nodes(tmp_path / "nodes", "alice", "bob") as (alice, bob):
        service = service_of(alice, tmp_path)
        repo, _ = alice.create_repo()
        await service.tokens.create("chat", ["admin"], [], [], 3600)
        caller = caller_of_token(service.tokens.file.tokens()[0])
        arguments: dict[str, Any] = {
            "repo": "repo",
            "permission": "write",
            "expires_seconds": 3600,
            "uses": 1,
        }
        invite = partial(service.invite, **arguments, reach="machine", renews=False)
        assert CREATE_INVITATION.makes is not None
        made = await service.revoking.make(CREATE_INVITATION.makes, caller, arguments, invite)
        await bob.joiner.begin(parse_invitation(made["invitation"]))
        async with connected(bob, alice):
            await trio.sleep(10)
        (thing,) = (await service.revoking.revoke_token("chat", made=True))["made"]
        assert thing["ended"]
        joined = id_text(bob.author.user)
        assert thing["advice"] == f"ravel member exclude {id_text(repo.repo_id)} {joined}"


async def test_a_token_that_made_too_much_makes_no_more_and_what_ended_makes_room(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, clock=lambda: now[0]) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with _holder(one, "app", "chat") as chat:
            file = one.service.tokens.file
            (token,) = file.tokens()
            thing = Made("invitation", "a" * 52, "b" * 52, 0, int(now[0]) + 60)
            things = (thing,) * (API_TOKEN_MADE_SIZE_MAX // size_of_made([thing]) + 1)
            file.replace([structs.replace(token, made=things)])
            answer = await chat.post("/api/v1/repos/notes/invitations", json={})
            assert _code(answer) == "too_large"
            assert not (await one.client.get("/api/v1/repos/notes/invitations")).json()["invitations"]
            now[0] += 60
            assert (await chat.post("/api/v1/repos/notes/invitations", json={})).is_success
            assert len(file.tokens()[0].made) == 1


def test_the_largest_file_of_tokens_is_within_its_bound() -> None:
    made = [Made("relay_account", f"{'a' * 52}:{'a' * 52}", "é" * NAME_SIZE_MAX, 10**10, 10**10)]
    while size_of_made(made) < API_TOKEN_MADE_SIZE_MAX:
        made.append(made[0])
    token = Token(
        *("n" * API_TOKEN_NAME_SIZE_MAX, "0" * 64, "browser", ACTIONS, 10**10, 10**10),
        *(("a" * 52,) * API_TOKEN_TARGETS_MAX, (), 10**10),
        ("o" * API_ORIGIN_SIZE_MAX,) * API_TOKEN_ORIGINS_MAX,
        tuple(made),
    )
    count = API_TOKENS_MAX + PAGE_TOKENS_MAX + BROWSERS_MAX
    assert len(encode_tokens([token])) * count < API_TOKENS_FILE_SIZE_MAX


@asynccontextmanager
async def _holder(one: Served, kind: str, name: str = "phone") -> AsyncIterator[httpx.AsyncClient]:
    """Who has a token of a kind, with all actions."""
    tokens = one.service.tokens
    if kind == "app":
        secret = (await tokens.create(name, [*ACTIONS], [], [], 3600))["token"]
    else:
        secret = await (tokens.make_for_page() if kind == "page" else tokens.make_for_browser(name))
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(
        base_url=one.client.base_url, headers=headers, event_hooks=CHECKED
    ) as client:
        yield client


async def _call(client: httpx.AsyncClient, endpoint: AnyEndpoint, repo: str) -> httpx.Response:
    parts = {part.name: "aaaa" for part in endpoint.path_parameters}
    path = endpoint.fill_path(parts | {"repo": repo, "branch": f"{repo}:main"})
    return await client.request(
        endpoint.method, f"/api/v1{path}", content=None if endpoint.request is None else b"{}"
    )


def _code(answer: httpx.Response) -> str:
    return str(answer.json().get("error", {}).get("code", "done"))
