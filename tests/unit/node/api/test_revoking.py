"""Things that a token made: written down with it, listed, and ended with it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from node.api.callers import Caller, caller_of_token
from node.api.services import Services
from node.contract.access import ACTIONS
from node.contract.members import CREATE_INVITATION
from node.contract.peers import ADD_PEER
from node.contract.relay_accounts import INVITE_TO_RELAY
from node.contract.table import AnyEndpoint
from node.contract.tokens import CREATE_TOKEN
from node.home.config_sections import ApiConfig
from node.home.tokens import Made, Token, TokenFile, digest_of, encode_tokens, prune_revoked, size_of_made
from node.network.line import open_listener
from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.links import parse_invitation
from protocol.formats.text import id_text
from protocol.limits.formats import NAME_SIZE_MAX
from protocol.limits.users import (
    API_MAKE_SECONDS,
    API_ORIGIN_SIZE_MAX,
    API_TOKEN_MADE_SIZE_MAX,
    API_TOKEN_NAME_SIZE_MAX,
    API_TOKEN_ORIGINS_MAX,
    API_TOKEN_TARGETS_MAX,
    API_TOKENS_FILE_SIZE_MAX,
    API_TOKENS_MAX,
    BROWSER_SECONDS,
    BROWSERS_MAX,
    ENDED_TOKEN_SECONDS,
    ENDED_TOKENS_MAX,
    PAGE_TOKEN_SECONDS,
    PAGE_TOKENS_MAX,
)
from storage.engine.database import StorageError
from tests.support.machine import fail_after
from tests.support.nodes import connected, open_nodes
from tests.support.relays import open_relay
from tests.support.served import code_of, holder, served, service_of

USER: Final = id_text(key_pair(UserSeed(bytes([7]) * 32))[0])
OTHER: Final = id_text(key_pair(UserSeed(bytes([8]) * 32))[0])
Act = Callable[[], Awaitable[Mapping[str, Any]]]


async def test_what_was_made_with_a_token_is_listed_and_ends_with_it(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        notes = (await one.client.post("/api/v1/repos", json={"name": "notes"})).json()["repo"]
        async with holder(one, "browser") as phone:
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
        async with holder(one, "app", "chat") as chat:
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
        assert (
            await one.client.delete(f"/api/v1/repos/notes/invitations/{invitation['invitation']}")
        ).is_success
        (thing,) = (await one.client.delete("/api/v1/tokens/chat")).json()["made"]
        assert (thing["ended"], thing["advice"]) == (True, ""), "a person has ended it"
        assert not (await one.client.get("/api/v1/tokens")).json()["tokens"]


async def test_what_a_page_made_that_makes_others_goes_with_it(tmp_path: Path) -> None:
    async with served(tmp_path, api=ApiConfig(tls="127.0.0.1:0")) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with holder(one, "page") as page:
            request = {"name": "chat", "actions": ["admin"]}
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
        await service.node.tokens.create("chat", ["admin"], [], [], 3600)
        caller = caller_of_token(service.node.tokens.file.tokens()[0])
        arguments: dict[str, Any] = {
            "repo": "repo",
            "permission": "write",
            "expires_seconds": 3600,
            "uses": 1,
        }
        invite = partial(service.people.invite, **arguments, reach="machine", renews=False)
        assert CREATE_INVITATION.makes is not None
        made = await service.node.revoking.make(CREATE_INVITATION.makes, caller, arguments, invite)
        await bob.joiner.begin(parse_invitation(made["invitation"]))
        async with connected(bob, alice):
            await trio.sleep(10)
        (thing,) = (await service.node.revoking.revoke_token("chat", made=True))["made"]
        assert thing["ended"]
        joined = id_text(bob.author.user)
        assert thing["advice"] == f"ravel member exclude {id_text(repo.repo_id)} {joined}"


async def test_what_a_revoked_token_made_stays_listed_until_it_ends_and_revoking_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with holder(one, "app", "chat") as chat:
            for _ in range(3):
                assert (await chat.post("/api/v1/repos/notes/invitations", json={})).is_success
            assert len((await one.client.delete("/api/v1/tokens/chat")).json()["made"]) == 3
            assert (await chat.get("/api/v1/token")).status_code == 401
        (kept,) = (await one.client.get("/api/v1/tokens")).json()["tokens"]
        assert (kept["revoked"], len(kept["made"])) == (True, 3), "revoked without what was made"
        end, ended = one.service.people.members.revoke_invitation, list[str]()

        async def fail_at_the_second(repo: str, invitation: str) -> object:
            if len(ended) == 1:
                raise StorageError("the disk is full")
            ended.append(invitation)
            return await end(repo, invitation)

        with monkeypatch.context() as patch:
            patch.setattr(one.service.people.members, "revoke_invitation", fail_at_the_second)
            assert not (await one.client.delete("/api/v1/tokens/chat", params={"made": 1})).is_success
        (kept,) = (await one.client.get("/api/v1/tokens")).json()["tokens"]
        assert [thing["what"] in ended for thing in kept["made"]] == [False, False]
        answer = await one.client.delete("/api/v1/tokens/chat", params={"made": 1})
        assert [thing["ended"] for thing in answer.json()["made"]] == [True, True]
        listed = (await one.client.get("/api/v1/repos/notes/invitations")).json()["invitations"]
        assert all(item["revoked"] for item in listed)
        assert not (await one.client.get("/api/v1/tokens")).json()["tokens"], "nothing is left"
        assert code_of(await one.client.delete("/api/v1/tokens/chat")) == "not_found"


async def test_a_caller_that_leaves_does_not_part_the_deed_from_the_list(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        await one.client.post("/api/v1/repos", json={"name": "repo"})
        make, caller = await _maker(one.service, CREATE_INVITATION, {"repo": "repo"})
        has_begun, may_go_on = trio.Event(), trio.Event()

        async def act() -> dict[str, Any]:
            has_begun.set()
            await may_go_on.wait()
            return {"id": "b" * 52, "expires_at": 1_800_000_000}

        async with trio.open_nursery() as nursery:
            nursery.start_soon(make, act)
            await has_begun.wait()
            (begun,) = (await one.service.node.tokens.show(caller))["made"]
            assert (begun["what"], begun["advice"][:24]) == ("", "ravel member invitations")
            nursery.cancel_scope.cancel()
            may_go_on.set()
        (made,) = (await one.service.node.tokens.show(caller))["made"]
        assert (made["what"], made["expires_at"]) == ("b" * 52, 1_800_000_000)


async def test_what_failed_is_on_no_list_and_what_is_not_known_stays_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as one:
        await one.client.post("/api/v1/repos", json={"name": "repo"})
        make, caller = await _maker(one.service, CREATE_INVITATION, {"repo": "repo"})
        tokens = one.service.node.tokens

        async def refuse() -> dict[str, Any]:
            await trio.lowlevel.checkpoint()
            raise ServiceError("not_permitted", "no")

        with pytest.raises(ServiceError, match="no"):
            await make(refuse)
        assert not (await tokens.show(caller))["made"]

        async def act() -> dict[str, Any]:
            await trio.lowlevel.checkpoint()
            monkeypatch.setattr(tokens.file, "replace", _fail)
            return {"id": "b" * 52, "expires_at": 1_800_000_000}

        assert (await make(act))["id"] == "b" * 52, "it is done: who repeats the request would make another"
        monkeypatch.undo()
        (begun,) = (await tokens.show(caller))["made"]
        assert (begun["kind"], begun["what"], begun["begun"]) == ("invitation", "", True)
        (left,) = (await one.service.node.revoking.revoke_token("chat", made=True))["made"]
        assert (left["ended"], left["advice"][:24]) == (False, "ravel member invitations")


async def test_a_deed_that_takes_too_long_is_given_up_and_stays_on_the_list(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(120), open_nodes(tmp_path / "nodes", "alice") as (alice,):
        alice.create_repo()
        service = service_of(alice, tmp_path)
        make, caller = await _maker(service, CREATE_INVITATION, {"repo": "repo"})

        async def never() -> dict[str, Any]:
            await trio.sleep_forever()
            raise AssertionError

        start = trio.current_time()
        with pytest.raises(ServiceError) as caught:
            await make(never)
        assert (caught.value.code, trio.current_time() - start) == ("storage_failed", API_MAKE_SECONDS)
        assert [thing["what"] for thing in (await service.node.tokens.show(caller))["made"]] == [""]


async def test_what_is_made_while_the_token_is_revoked_is_kept_from_the_caller_and_listed(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as one:
        await one.client.post("/api/v1/repos", json={"name": "repo"})
        make, _ = await _maker(one.service, CREATE_INVITATION, {"repo": "repo"})

        async def act() -> dict[str, Any]:
            await one.service.node.revoking.revoke_token("chat", made=True)
            return {"id": "b" * 52, "expires_at": 1_800_000_000}

        with pytest.raises(ServiceError, match="revoked"):
            await make(act)
        (kept,) = (await one.service.node.tokens.list_all())["tokens"]
        assert [thing["what"] for thing in kept["made"]] == ["b" * 52]
        with pytest.raises(ServiceError, match="revoked"):
            await make(act)
        assert (await one.service.node.tokens.list_all())["tokens"] == [kept], "nothing was begun"


@pytest.mark.parametrize("is_revoked", [True, False])
async def test_a_pairing_code_is_good_no_longer_than_the_page_that_made_it(
    tmp_path: Path, is_revoked: bool
) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, clock=lambda: now[0], api=ApiConfig(tls="127.0.0.1:0")) as one:
        async with holder(one, "page") as page:
            code = (await page.post("/api/v1/browsers/codes")).json()["code"]
            name = (await page.get("/api/v1/token")).json()["name"]
        if is_revoked:
            assert (await one.client.delete(f"/api/v1/tokens/{name}")).is_success
        else:
            now[0] += PAGE_TOKEN_SECONDS
        async with one.elsewhere() as phone:
            answer = await phone.post("/open", json={"code": code, "name": "phone"})
        assert (answer.status_code, code_of(answer)) == (401, "unauthorized")
        assert not (await one.client.get("/api/v1/browsers")).json()["browsers"]


async def test_what_an_expired_token_made_stays_listed_when_its_place_is_taken(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, clock=lambda: now[0]) as one:
        tokens = one.service.node.tokens
        await tokens.create("chat", ["admin"], [], [], 60)
        await tokens.make_for_page()
        await tokens.make_for_browser("phone")
        link = Made("read_link", "a" * 52, "", int(now[0]))
        tokens.file.replace([structs.replace(token, made=(link,)) for token in tokens.file.tokens()])
        now[0] += BROWSER_SECONDS
        await tokens.create("chat", ["admin"], [], [], 60)
        await tokens.make_for_page()
        await tokens.make_for_browser("phone")
        for views in ((await tokens.list_all())["tokens"], await tokens.list_browsers()):
            ended = [view for view in views if view["revoked"]]
            assert len(views) == 2 * len(ended), "beside those that are good"
            assert all(thing["kind"] == "read_link" for view in ended for thing in view["made"])
        chats = [view for view in (await tokens.list_all())["tokens"] if view["name"] == "chat"]
        assert [view["revoked"] for view in chats] == [True, False]
        assert not (await one.service.node.revoking.revoke_token("chat", made=False))["made"], (
            "of the one that is good"
        )
        assert (await one.service.node.revoking.revoke_token("chat", made=False))["made"], (
            "then of the one before"
        )


def test_ended_tokens_are_few_and_kept_for_a_month() -> None:
    made = (Made("read_link", "a" * 52, "", 0),)
    token = Token("chat", "0" * 64, "app", ("admin",), 0, 60, made=made)
    ended = [
        structs.replace(token, digest=f"{number:064}", revoked_at=number)
        for number in range(ENDED_TOKENS_MAX + 1)
    ]
    assert prune_revoked([*ended, token], ENDED_TOKENS_MAX) == [*ended[1:], token]
    assert prune_revoked([*ended, token], ENDED_TOKENS_MAX + ENDED_TOKEN_SECONDS - 1) == [ended[-1], token]
    link = Made("invitation", "a" * 52, "b", 0, 60)
    assert prune_revoked([structs.replace(ended[0], made=(link,))], 60) == []


async def test_a_later_thing_of_the_same_name_is_not_ended(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, clock=lambda: now[0]) as one:
        revoking, tokens = one.service.node.revoking, one.service.node.tokens
        maker = await tokens.make_for_page()
        caller = caller_of_token(tokens.file.tokens()[0])
        create = partial(tokens.create, "chat", ["admin"], [], [], 60)
        assert CREATE_TOKEN.makes is not None
        await revoking.make(CREATE_TOKEN.makes, caller, {}, create)
        await tokens.make_for_browser("phone", digest_of(maker))
        await revoking.revoke_token("chat", made=False)
        await revoking.revoke_browser("phone", made=False)
        await create()
        await tokens.make_for_browser("phone")
        made = (await revoking.revoke_token(caller.name, made=True))["made"]
        assert [(thing["kind"], thing["ended"]) for thing in made] == [("browser", True), ("token", True)]
        assert [view["name"] for view in (await tokens.list_all())["tokens"]] == ["chat"]
        assert [view["name"] for view in await tokens.list_browsers()] == ["phone"]


async def test_an_account_that_was_there_before_or_came_later_is_left_to_a_person(tmp_path: Path) -> None:
    now = [1_700_000_000]
    with fail_after(60), open_relay(tmp_path / "node") as node:
        service = service_of(node, tmp_path, clock=lambda: now[0])
        accounts = service.peers.accounts
        accounts._clock = lambda: now[0]
        make, _ = await _maker(service, INVITE_TO_RELAY, {})
        await accounts.invite("old", 5, expires_seconds=60)
        now[0] += 1
        for name in ("old", "again", "ann"):
            await make(partial(accounts.invite, name, 5, expires_seconds=60))
        await accounts.revoke("again")
        now[0] += 1
        await accounts.invite("again", 5, expires_seconds=60)
        made = (await service.node.revoking.revoke_token("chat", made=True))["made"]
        assert {thing["what"]: thing["ended"] for thing in made} == {
            "ann": True,
            "again": False,
            "old": False,
        }
        assert [one["name"] for one in (await accounts.list_all())["accounts"]] == ["again", "old"]


async def test_a_peer_that_was_added_again_at_another_address_is_left_to_a_person(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path / "nodes", "alice") as (alice,):
        service = service_of(alice, tmp_path)
        make, _ = await _maker(service, ADD_PEER, {})
        async with trio.open_nursery() as nursery:
            await nursery.start(service.node._network.run, await open_listener("127.0.0.1:0"))
            for peer in (USER, OTHER):
                await make(partial(service.peers.peers.add, "127.0.0.1:1", peer, relay=None))
            await service.peers.peers.remove(OTHER)
            await service.peers.peers.add("127.0.0.1:2", OTHER, relay=None)
            made = (await service.node.revoking.revoke_token("chat", made=True))["made"]
            assert {thing["what"]: thing["ended"] for thing in made} == {USER: True, OTHER: False}
            assert [one["peer"] for one in await service.peers.peers.views()] == [OTHER]
            nursery.cancel_scope.cancel()


async def test_the_reason_why_a_link_was_not_ended_stands_beside_who_joined_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with holder(one, "app", "chat") as chat:
            for _ in range(2):
                assert (await chat.post("/api/v1/repos/notes/invitations", json={})).is_success
        members, loads = one.service.people.members, list[str]()
        load = members.invitations

        async def load_joined(repo: str) -> object:
            loads.append(repo)
            return {"invitations": [item | {"joined": [USER]} for item in (await load(repo))["invitations"]]}

        async def refuse(_repo: str, _invitation: str) -> object:
            await trio.lowlevel.checkpoint()
            raise ServiceError("not_permitted", "you are no member")

        monkeypatch.setattr(members, "invitations", load_joined)
        monkeypatch.setattr(members, "revoke_invitation", refuse)
        made = (await one.client.delete("/api/v1/tokens/chat", params={"made": 1})).json()["made"]
        for thing in made:
            end = f"ravel member uninvite {thing['repo']} {thing['what']} (you are no member)"
            assert thing["advice"] == f"{end}; ravel member exclude {thing['repo']} {USER}"
        assert len(loads) == 1, "a repo's invitations are loaded once"


async def test_a_token_that_made_too_much_makes_no_more_and_what_ended_makes_room(tmp_path: Path) -> None:
    now = [1_700_000_000.0]
    async with served(tmp_path, clock=lambda: now[0]) as one:
        await one.client.post("/api/v1/repos", json={"name": "notes"})
        async with holder(one, "app", "chat") as chat:
            file = one.service.node.tokens.file
            (token,) = file.tokens()
            thing = Made("invitation", "a" * 52, "b" * 52, 0, int(now[0]) + 60)
            things = (thing,) * (API_TOKEN_MADE_SIZE_MAX // size_of_made([thing]) + 2)
            file.replace([structs.replace(token, made=things)])
            answer = await chat.post("/api/v1/repos/notes/invitations", json={})
            assert code_of(answer) == "too_large"
            assert not (await one.client.get("/api/v1/repos/notes/invitations")).json()["invitations"]
            now[0] += 60
            assert (await chat.post("/api/v1/repos/notes/invitations", json={})).is_success
            assert len(file.tokens()[0].made) == 1


def test_the_largest_file_of_tokens_is_within_its_bound() -> None:
    made = [Made("relay_account", f"{'a' * 52}:{'a' * 52}", "é" * NAME_SIZE_MAX, 10**10, 10**10, "0" * 16)]
    while size_of_made(made) < API_TOKEN_MADE_SIZE_MAX:
        made.append(made[0])
    token = Token(
        *("n" * API_TOKEN_NAME_SIZE_MAX, "0" * 64, "browser", ACTIONS, 10**10, 10**10),
        *(("a" * 52,) * API_TOKEN_TARGETS_MAX, (), 10**10),
        ("o" * API_ORIGIN_SIZE_MAX,) * API_TOKEN_ORIGINS_MAX,
        tuple(made),
        10**10,
    )
    count = API_TOKENS_MAX + PAGE_TOKENS_MAX + BROWSERS_MAX + ENDED_TOKENS_MAX
    assert len(encode_tokens([token])) * count < API_TOKENS_FILE_SIZE_MAX


async def _maker(
    service: Services, endpoint: AnyEndpoint, arguments: Mapping[str, str]
) -> tuple[Callable[[Act], Awaitable[Mapping[str, Any]]], Caller]:
    """Something that does any deed as if it were an endpoint's, with the token `chat`."""
    await service.node.tokens.create("chat", ["admin", "node"], [], [], 3600)
    caller = caller_of_token(service.node.tokens.file.tokens()[0])
    assert endpoint.makes is not None
    return partial(service.node.revoking.make, endpoint.makes, caller, arguments), caller


def _fail(_tokens: object) -> None:
    raise ServiceError("storage_failed", "the disk is full")
