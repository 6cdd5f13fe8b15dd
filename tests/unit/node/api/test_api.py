"""The HTTP API against a whole node: who may call, what is refused, and what answers look like."""

from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from node.api.node_service import NodeService
from node.content import files as files_module
from node.runtime.errors import ERROR_KINDS
from protocol.formats.links import parse_invitation
from protocol.formats.text import id_text
from protocol.ids import AnyId
from protocol.limits.formats import TEXT_SIZE_MAX
from protocol.limits.users import (
    IMPORT_BATCH_COUNT_MAX,
    IMPORTED_WINDOW_MAX,
)
from ravel.types.node import NodeStatus
from tests.support.answers import CHECKED
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes
from tests.support.served import AUTH, TOKEN, app_of, service_of

ITEM = {"id": "a", "parents": [], "author": "me", "time": 1, "text": "hello"}


@asynccontextmanager
async def _api(
    folder: Path, *, listen: str = "127.0.0.1:7474", advertise: str = ""
) -> AsyncIterator[httpx.AsyncClient]:
    with fail_after(300), open_nodes(folder, "alice") as (node,):
        app = app_of(service_of(node, folder, listen, advertise))
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:7475", headers=AUTH, event_hooks=CHECKED
        ) as client:
            yield client


async def _post(client: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:  # noqa: ANN401  # any JSON
    return await client.post(f"/api/v1{path}", json=body)


REFUSED: dict[str, tuple[str, str, Any, str]] = {
    "unknown_repo": ("GET", "/repos/nope/branches", None, "not_found"),
    "unknown_branch": ("GET", "/branches/nope/digest", None, "not_found"),
    "short_prefix": ("GET", "/branches/ab/digest", None, "not_found"),
    "unknown_endpoint": ("GET", "/nothing", None, "not_found"),
    "wrong_method": ("DELETE", "/status", None, "method_not_allowed"),
    "not_json": ("POST", "/repos", b"{", "bad_request"),
    "deep_json": ("POST", "/repos", b"[" * 100_000, "bad_request"),
    "missing_field": ("POST", "/repos", {}, "bad_request"),
    "a_key_twice": ("POST", "/repos", b'{"name": "x", "name": "y"}', "bad_request"),
    "a_key_twice_below": (
        "POST",
        "/branches/main/commits/batch",
        b'{"posts": [{"text": "x"}, {"text": "y", "text": "z"}]}',
        "bad_request",
    ),
    "a_key_twice_by_an_escape": ("POST", "/repos", b'{"name": "x", "n\\u0061me": "y"}', "bad_request"),
    "a_value_twice": ("GET", "/branches/main/timeline?limit=1&limit=2", None, "bad_request"),
    "surplus_field": ("POST", "/repos", {"name": "x", "y": 1}, "bad_request"),
    "empty_name": ("POST", "/repos", {"name": ""}, "bad_request"),
    "unprintable_name": ("POST", "/repos", {"name": "a\x1b[31m"}, "bad_request"),
    "name_with_a_colon": ("POST", "/repos", {"name": "a:b"}, "bad_request"),
    "name_that_is_a_folder": ("POST", "/repos", {"name": ".."}, "bad_request"),
    "name_that_is_an_option": ("POST", "/repos", {"name": "-x"}, "bad_request"),
    "name_with_a_space_at_its_end": ("POST", "/repos", {"name": "x "}, "bad_request"),
    "text_over_its_bound": (
        "POST",
        "/branches/main/commits",
        {"text": "x" * (TEXT_SIZE_MAX + 1)},
        "bad_request",
    ),
    "lone_surrogate": ("POST", "/branches/main/commits", b'{"text": "\\ud800"}', "bad_request"),
    "limit_over_its_bound": ("GET", "/branches/main/timeline?limit=1001", None, "bad_request"),
    "imported_over_its_bound": (
        "GET",
        f"/branches/main/imported?source=x&limit={IMPORTED_WINDOW_MAX + 1}",
        None,
        "bad_request",
    ),
    "two_sides_of_a_timeline": (
        "GET",
        "/branches/main/timeline?after_position=1&before_position=9",
        None,
        "bad_request",
    ),
    "a_commit_as_a_position": ("GET", "/branches/main/timeline?after=abcdef", None, "bad_request"),
    "a_position_by_time": ("GET", "/branches/main/timeline?order=time&after_position=1", None, "bad_request"),
    "an_order_of_its_own": ("GET", "/branches/main/timeline?order=size", None, "bad_request"),
    "a_commit_that_is_not_here": (
        "GET",
        "/branches/main/timeline?order=time&before=abcdef",
        None,
        "not_found",
    ),
    "limit_not_a_number": ("GET", "/branches/main/timeline?limit=x", None, "bad_request"),
    "limit_of_two_signs": ("GET", "/branches/main/timeline?limit=--5", None, "bad_request"),
    "limit_of_5000_digits": ("GET", "/branches/main/timeline?limit=" + "9" * 5000, None, "bad_request"),
    "too_many_items": (
        "POST",
        "/branches/main/import",
        {"items": [ITEM] * (IMPORT_BATCH_COUNT_MAX + 1), "source": "x"},
        "bad_request",
    ),
    "unknown_parent": (
        "POST",
        "/branches/main/import",
        {"items": [ITEM | {"parents": ["b"]}], "source": "x"},
        "unknown_parent",
    ),
    "unknown_permission": ("POST", "/repos/notes/invitations", {"permission": "owner"}, "bad_request"),
    "expiry_in_the_past": ("POST", "/repos/notes/invitations", {"expires_seconds": 0}, "bad_request"),
    "no_link": ("POST", "/join", {"invitation": "hello"}, "bad_link"),
    "an_invitation_is_no_capability": ("POST", "/follow", {"capability": "ravel:invite:aa"}, "bad_link"),
    "a_capability_is_no_invitation": ("POST", "/join", {"invitation": "ravel:read:aa"}, "bad_link"),
    "link_over_its_bound": ("POST", "/follow", {"capability": "ravel:read:" + "a" * 4086}, "bad_link"),
    "peer_without_port": (
        "POST",
        "/peers",
        {"address": "host", "peer": id_text(AnyId(b"p" * 32))},
        "bad_request",
    ),
    "peer_on_every_interface": (
        "POST",
        "/peers",
        {"address": "0.0.0.0:1", "peer": id_text(AnyId(b"p" * 32))},
        "bad_request",
    ),
    "peer_of_a_bad_id": ("POST", "/peers", {"address": "host:1", "peer": "abc"}, "bad_request"),
    "unknown_file": ("GET", "/branches/main/files/nothing", None, "not_found"),
    "file_without_a_name": ("POST", "/branches/main/files", b"content", "bad_request"),
    "files_without_names": ("POST", "/branches/main/files/batch", b"content\n", "bad_request"),
    "too_many_files_asked_for": ("GET", "/branches/main/files?limit=1001", None, "bad_request"),
    "too_many_set_items": ("POST", "/branches/main/set", {"add": ["x"] * 1025}, "bad_request"),
    "set_item_over_its_bound": ("POST", "/branches/main/set", {"remove": ["x" * 1025]}, "bad_request"),
    "too_much_of_a_set_asked_for": ("GET", "/branches/main/set?limit=1001", None, "bad_request"),
    "dict_value_not_a_text": ("POST", "/branches/main/dict", {"put": {"k": 1}}, "bad_request"),
    "dict_key_over_its_bound": ("POST", "/branches/main/dict", {"put": {"k" * 1025: ""}}, "bad_request"),
    "unknown_key": ("GET", "/branches/main/dict/entry?key=nothing", None, "not_found"),
    "update_not_in_base64": ("POST", "/branches/main/text", {"update": "?"}, "bad_request"),
    "update_that_is_none": ("POST", "/branches/main/text", {"update": "AQID"}, "bad_input"),
    "unknown_peer": ("DELETE", "/peers/abcdefgh", None, "not_found"),
}


@pytest.mark.slow
async def test_a_byte_order_mark_before_a_body_and_marks_around_a_link_are_passed_over(
    tmp_path: Path,
) -> None:
    async with _api(tmp_path) as client:
        body = BOM_UTF8 + b'{"name": "notes"}'
        assert (await client.post("/api/v1/repos", content=body)).is_success
        for made_at, way, field, taken_at in (
            ("/repos/notes/invitations", {"permission": "write"}, "invitation", "/join"),
            ("/repos/notes/capability", {}, "capability", "/follow"),
        ):
            made = (await _post(client, made_at, way)).json()
            plain = await _post(client, taken_at, {field: made[field]})
            link = f"\ufeff {made[field][:50]}\u200b\n{made[field][50:]}\u200b"
            pasted = await _post(client, taken_at, {field: link})
            assert (pasted.status_code, pasted.json()["repo"]) == (200, plain.json()["repo"])


@pytest.mark.slow
async def test_bad_requests_are_refused_with_their_codes_and_change_nothing(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        await _post(client, "/repos", {"name": "notes"})
        before = (await client.get("/api/v1/branches/main/digest")).json()
        meant, found = {}, {}
        for defect, (method, path, body, code) in REFUSED.items():
            content = {"content": body} if isinstance(body, bytes) else {"json": body}
            answer = await client.request(method, f"/api/v1{path}", **(content if body is not None else {}))
            error = answer.json()["error"]
            meant[defect] = (ERROR_KINDS[code].http_status, code, True)
            found[defect] = (answer.status_code, error["code"], error["message"] != "")
        assert found == meant
        assert (await client.get("/api/v1/branches/main/digest")).json() == before


async def test_names_that_fit_more_than_one_are_ambiguous(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        for name in ("one", "two"):
            await _post(client, "/repos", {"name": name})
        answer = await client.get("/api/v1/branches/main/digest")
        assert answer.json()["error"]["code"] == "ambiguous"
        assert "REPO:NAME" in answer.json()["error"]["next"]
        assert answer.status_code == 409
        assert (await client.get("/api/v1/branches/two:main/digest")).status_code == 200


async def test_a_preferred_repo_has_its_branches_meant_first_and_others_found(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        repos = [(await _post(client, "/repos", {"name": name})).json()["repo"] for name in ("one", "two")]
        await _post(client, "/repos/one/branches", {"name": "draft"})
        prefer = {"Ravel-Repo": repos[1]}
        written = await client.post("/api/v1/branches/main/commits", json={"text": "x"}, headers=prefer)
        there = (await client.get("/api/v1/repos/two/branches")).json()["branches"]
        assert written.json()["branch"] == there[0]["branch"]
        for text in ("one:main", "draft"):
            assert (await client.get(f"/api/v1/branches/{text}/digest", headers=prefer)).status_code == 200
        gone = await client.get("/api/v1/branches/main/digest", headers={"Ravel-Repo": "a" * 52})
        assert gone.json()["error"]["code"] == "ambiguous"
        blamed = (await client.get("/api/v1/branches/nosuch:main/digest")).json()["error"]
        assert blamed["message"] == "no repo is called 'nosuch'"


@pytest.mark.slow
@pytest.mark.parametrize(
    "query, said, advice",
    [
        ("order=size", "there is no order 'size'", "say canonical or time"),
        ("order=time&since=1.5", "since is a whole number, not '1.5'", ""),
    ],
)
async def test_a_timeline_that_is_asked_for_wrongly_names_what_is_wrong(
    tmp_path: Path, query: str, said: str, advice: str
) -> None:
    async with _api(tmp_path) as client:
        await _post(client, "/repos", {"name": "notes"})
        error = (await client.get(f"/api/v1/branches/main/timeline?{query}")).json()["error"]
        assert (error["message"], error["next"]) == (said, advice)


async def test_a_timeline_is_read_in_both_directions(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        await _post(client, "/repos", {"name": "notes"})
        commits = [(await client.get("/api/v1/branches/main/timeline")).json()["items"][0]["commit"]]
        for number in range(4):
            written = await _post(client, "/branches/main/commits", {"text": str(number)})
            commits.append(written.json()["commit"])

        async def ask(query: str) -> tuple[list[int], Any, Any]:
            answer = (await client.get(f"/api/v1/branches/main/timeline?{query}")).json()
            assert answer["total"] == 5
            return (
                [commits.index(item["commit"]) for item in answer["items"]],
                answer["previous"],
                answer["next"],
            )

        assert await ask("limit=2") == ([0, 1], None, 1)
        assert await ask("after_position=1&limit=2") == ([2, 3], 2, 3)
        assert await ask("after_position=3&limit=2") == ([4], 4, None)
        assert await ask("before_position=99&limit=2") == ([3, 4], 3, None)
        assert await ask("before_position=3&limit=2") == ([1, 2], 1, 2)
        assert await ask("before_position=1&limit=2") == ([0], None, 0)
        assert await ask("before_position=0&limit=2") == ([], None, None)
        assert await ask("after_position=7") == ([], None, None)
        by_time = "order=time&limit=2"
        assert await ask(by_time) == ([3, 4], commits[3], None)
        assert await ask(f"{by_time}&before={commits[3]}") == ([1, 2], commits[1], commits[2])
        assert await ask(f"{by_time}&before={commits[2]}") == ([0, 1], None, commits[1])
        assert await ask(f"{by_time}&after={commits[0]}") == ([1, 2], commits[1], commits[2])
        assert await ask(f"{by_time}&after={commits[2]}") == ([3, 4], commits[3], None)
        assert await ask(f"{by_time}&after={commits[4]}") == ([], None, None)
        for position, commit in enumerate(commits):
            assert (await client.get(f"/api/v1/commits/{commit}")).json()["position"] == position


@pytest.mark.parametrize("name", ["feature/x", "a/timeline", "/", "%2F", "what?", "#1", "é ß", "a/../b"])
async def test_names_of_any_printable_characters_can_be_asked_for(tmp_path: Path, name: str) -> None:
    async with _api(tmp_path) as client:
        assert (await _post(client, "/repos", {"name": name})).status_code == 200
        part = quote(name, safe="")
        assert (await _post(client, f"/repos/{part}/branches", {"name": name})).status_code == 200
        timeline = await client.get(f"/api/v1/branches/{part}:{part}/timeline")
        assert timeline.json()["total"] == 1


async def test_a_name_is_given_once(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        for path, status in (
            ("/repos", 200),
            ("/repos", 409),
            ("/repos/x/branches", 200),
            ("/repos/x/branches", 409),
        ):
            answer = await _post(client, path, {"name": "x"})
            assert answer.status_code == status
        assert answer.json()["error"]["code"] == "already_exists"


@pytest.mark.slow
async def test_a_link_names_only_addresses_that_can_be_dialed(tmp_path: Path) -> None:
    for listen, advertise, expected in (
        ("127.0.0.1:7474", "", ["127.0.0.1:7474"]),
        ("0.0.0.0:7474", "relay.example:1", ["relay.example:1"]),
        ("0.0.0.0:7474", "", None),
        ("[::]:7474", "", None),
    ):
        folder = tmp_path / f"{listen} {advertise}"
        async with _api(folder, listen=listen, advertise=advertise) as client:
            await _post(client, "/repos", {"name": "notes"})
            answer = (await _post(client, "/repos/notes/invitations", {})).json()
            if expected is None:
                assert answer["error"]["code"] == "bad_config"
                assert "advertise" in answer["error"]["next"]
                continue
            assert answer["addresses"] == expected
            link = parse_invitation(answer["invitation"])
            assert [peer.address for peer in link.peers] == expected


@pytest.mark.slow
async def test_a_link_that_does_not_reach_as_far_as_demanded_is_not_made(tmp_path: Path) -> None:
    for listen, reach, advice in (
        ("127.0.0.1:7474", "machine", "network.listen '*:7474'"),
        ("192.168.1.7:7474", "network", "relay"),
        ("93.184.216.34:7474", "anywhere", ""),
    ):
        async with _api(tmp_path / listen, listen=listen) as client:
            await _post(client, "/repos", {"name": "notes"})
            assert (await client.get("/api/v1/status")).json()["addresses"] == [
                {"address": listen, "reach": reach, "found_by": "listen"}
            ]
            for demanded, works in (
                ("machine", True),
                ("network", reach != "machine"),
                ("anywhere", reach == "anywhere"),
            ):
                for path in ("/repos/notes/invitations", "/devices/invitations"):
                    answer = (await _post(client, path, {"reach": demanded})).json()
                    if works:
                        assert answer["reach"] == reach
                        continue
                    assert answer["error"]["code"] == "bad_config"
                    assert advice in answer["error"]["next"]
            made = (await client.get("/api/v1/repos/notes/invitations")).json()["invitations"]
            assert len(made) == ("machine", "network", "anywhere").index(reach) + 1
            assert (await _post(client, "/repos/notes/invitations", {"reach": "far"})).status_code == 400


async def test_a_node_that_tells_no_address_makes_links_by_others_alone(tmp_path: Path) -> None:
    async with _api(tmp_path, advertise="nothing") as client:
        await _post(client, "/repos", {"name": "notes"})
        error = (await _post(client, "/repos/notes/invitations", {})).json()["error"]
        assert error["code"] == "bad_config"
        assert "relay" in error["next"]


@pytest.mark.slow
async def test_a_file_over_the_api_whole_by_range_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytes(range(256)) * 20_000
    async with _api(tmp_path) as client:
        await _post(client, "/repos", {"name": "notes"})
        base = "/api/v1/branches/main/files"
        added = await client.post(base, params={"name": "a/b ü.bin"}, content=data)
        assert added.status_code == 200, added.text
        path = f"{base}/{added.json()['file']}"
        whole = await client.get(path)
        assert (whole.status_code, whole.content) == (200, data)
        assert whole.headers["etag"] == f'"{added.json()["file"]}"'
        assert whole.headers["x-content-type-options"] == "nosniff"
        assert whole.headers["content-disposition"] == "attachment; filename*=UTF-8''a%2Fb%20%C3%BC.bin"
        with monkeypatch.context() as unread:
            unread.setattr(files_module, "_read", None)  # it would fail
            head = await client.head(path)
        assert (head.status_code, head.headers, head.content) == (200, whole.headers, b"")
        for text, expected in (
            ("bytes=0-0", data[:1]),
            ("bytes=1048543-1048545", data[1048543:1048546]),
            ("bytes=5119990-", data[5119990:]),
            ("bytes=5119990-99999999", data[5119990:]),
            ("bytes=-10", data[-10:]),
        ):
            part = await client.get(path, headers={"Range": text})
            assert (part.status_code, part.content) == (206, expected)
            assert part.headers["content-range"].endswith(f"/{len(data)}")
        for text in (
            "bytes=5-3",
            "bytes=a-b",
            "bytes=-",
            "lines=1-2",
            "bytes=0-1,4-5",
            "bytes=" + "9" * 5000 + "-",
        ):
            assert (await client.get(path, headers={"Range": text})).status_code == 200
        for text in (f"bytes={len(data)}-", "bytes=-0"):
            behind = await client.get(path, headers={"Range": text})
            assert (behind.status_code, behind.headers["content-range"]) == (416, f"bytes */{len(data)}")
        other = await client.get(path, headers={"Range": "bytes=0-0", "If-Range": '"another"'})
        assert other.status_code == 200
        timeline = (await client.get("/api/v1/branches/main/timeline")).json()["items"]
        assert timeline[-1]["files"] == ["a/b ü.bin"]
        assert (await client.delete(path)).json()["names"] == ["a/b ü.bin"]
        assert (await client.get(path)).status_code == 404
        assert (await client.get(base)).json() == {
            "files": [],
            "next": None,
            "uses_relays": False,
            "refusals": [],
        }


STRANGERS: dict[str, tuple[dict[str, str], int]] = {
    "no_token": ({"Authorization": ""}, 401),
    "wrong_token": ({"Authorization": "Bearer " + "u" * 64}, 401),
    "prefix_of_the_token": ({"Authorization": "Bearer " + "t" * 63}, 401),
    "other_scheme": ({"Authorization": f"Basic {TOKEN}"}, 401),
    "foreign_host": ({"Host": "evil.example"}, 403),
    "host_that_begins_like_ours": ({"Host": "127.0.0.1.evil.example"}, 403),
    "host_that_ends_like_ours": ({"Host": "evil.localhost:7475"}, 403),
    "host_with_a_bad_port": ({"Host": "localhost:evil"}, 403),
    "foreign_origin": ({"Origin": "https://evil.example"}, 403),
    "null_origin": ({"Origin": "null"}, 403),
    "origin_of_another_port": ({"Origin": "http://127.0.0.1:1"}, 403),
}


async def test_strangers_and_foreign_pages_are_refused(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        for stranger, (headers, status) in STRANGERS.items():
            answer = await client.post("/api/v1/repos", json={"name": "x"}, headers=headers)
            assert answer.status_code == status, stranger
            assert (await client.get("/api/v1/repos")).json()["repos"] == [], stranger


async def test_a_token_in_the_address_is_no_token(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        answer = await client.get(f"/api/v1/status?token={TOKEN}", headers={"Authorization": ""})
        assert answer.status_code == 401


async def test_loopback_names_and_our_own_origin_are_served(tmp_path: Path) -> None:
    async with _api(tmp_path) as client:
        for host in ("localhost:7475", "LOCALHOST:7475", "127.0.0.1", "[::1]:7475"):
            headers = {"Host": host, "Origin": f"http://{host.lower()}"}  # as browsers write it
            assert (await client.get("/api/v1/status", headers=headers)).status_code == 200, host
        assert (await client.get("/healthz", headers={"Authorization": ""})).json() == {"status": "ok"}


@pytest.mark.slow
async def test_a_defect_answers_without_inner_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_service: NodeService) -> NodeStatus:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(NodeService, "show_status", fail)
    async with _api(tmp_path) as client:
        answer = await client.get("/api/v1/status")
        assert answer.status_code == 500
        assert "secret detail" not in answer.text
