"""A write that comes again by its idempotency key is done once, and gets the first answer; another request is refused."""

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from starlette.requests import Request
from starlette.responses import Response
from trio.testing import MockClock, wait_all_tasks_blocked

from node.api import repeats as repeats_module
from node.api.callers import HOME
from node.api.repeats import Repeats
from node.contract.table import ENDPOINTS
from node.runtime.errors import ServiceError
from protocol.limits.users import IDEMPOTENCY_KEY_SIZE_MAX, IDEMPOTENCY_SECONDS
from tests.support.served import AUTH, Served, served

POSTS: Final = "/api/v1/branches/main/commits"
KEY: Final = {"Idempotency-Key": "k1"}


async def _texts(one: Served) -> list[str]:
    items = (await one.client.get("/api/v1/branches/main/timeline")).json()["items"]
    return [item["text"] for item in items if item["kind"] == "post"]


async def test_a_repeated_write_is_done_once(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        first = await one.client.post(POSTS, json={"text": "hello"}, headers=KEY)
        again = await one.client.post(POSTS, json={"text": "hello"}, headers=KEY)
        assert first.status_code == again.status_code == 200
        assert first.json() == again.json()
        assert again.headers["content-type"] == "application/json"
        other = await one.client.post(POSTS, json={"text": "hello"}, headers={"Idempotency-Key": "k2"})
        assert other.json()["commit"] != first.json()["commit"]
        assert await _texts(one) == ["hello", "hello"]


async def test_requests_at_the_same_time_are_one(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        answers = []

        async def write() -> None:
            answers.append((await one.client.post(POSTS, json={"text": "hello"}, headers=KEY)).json())

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(write)
        assert len({answer["commit"] for answer in answers}) == 1
        assert await _texts(one) == ["hello"]


async def test_a_key_is_good_for_one_request_of_one_token(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        await one.client.post(POSTS, json={"text": "hello"}, headers=KEY)
        for path, body, more in (
            (POSTS, {"text": "other"}, {}),
            ("/api/v1/branches/main/comments", {"text": "hello"}, {}),
            (POSTS, {"text": "hello"}, {"Ravel-Repo": "a" * 52}),
        ):
            refused = await one.client.post(path, json=body, headers={**KEY, **more})
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "key_reused"), path
        made = await one.client.post("/api/v1/tokens", json={"name": "app", "actions": ["write"]})
        mine = {"Authorization": f"Bearer {made.json()['token']}"}
        other = await one.client.post(POSTS, json={"text": "hello"}, headers={**KEY, **mine})
        assert other.status_code == 200, "another caller has keys of its own"
        assert await _texts(one) == ["hello", "hello"]


async def test_a_refusal_is_repeated_and_a_wrong_body_is_none_to_keep(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        repos, second = "/api/v1/repos", {"Idempotency-Key": "k2"}
        gone = await one.client.post("/api/v1/branches/notes:main/commits", json={"text": "x"}, headers=KEY)
        assert (await one.client.post(repos, json={"name": ""}, headers=second)).status_code == 400
        assert (await one.client.post(repos, json={"name": "notes"}, headers=second)).status_code == 200
        again = await one.client.post("/api/v1/branches/notes:main/commits", json={"text": "x"}, headers=KEY)
        assert gone.json() == again.json()
        assert gone.status_code == again.status_code == 404


async def test_a_repetition_for_another_run_of_the_daemon_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        run = (await one.client.get("/healthz")).headers["ravel-run"]
        first = await one.client.post(POSTS, json={"text": "hello"}, headers={**KEY, "Ravel-Run": run})
        assert first.headers["ravel-run"] == run
        assert first.status_code == 200
        refused = await one.client.post(
            POSTS, json={"text": "hello"}, headers={**KEY, "Ravel-Run": "another"}
        )
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "answer_lost")


@pytest.mark.parametrize("key", ["", "a b", "k" * (IDEMPOTENCY_KEY_SIZE_MAX + 1), "\u00e9"])
async def test_what_is_no_key_is_refused(tmp_path: Path, key: str) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        headers = {b"Idempotency-Key": key.encode("latin-1")}
        refused = await one.client.post(POSTS, json={"text": "x"}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
        longest = {"Idempotency-Key": "k" * IDEMPOTENCY_KEY_SIZE_MAX}
        assert (await one.client.post(POSTS, json={"text": "x"}, headers=longest)).status_code == 200
        twice = [*AUTH.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
        assert (await one.client.post(POSTS, json={"text": "x"}, headers=twice)).status_code == 400


async def test_an_upload_takes_no_key(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        refused = await one.client.post("/api/v1/branches/main/files?name=a", content=b"x", headers=KEY)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")


def test_every_write_takes_a_key_but_uploads_streams_codes_presences_and_what_is_the_same_twice() -> None:
    without = {one.name for one in ENDPOINTS if one.method != "GET" and not one.takes_key}
    codes = {"make_export_code", "make_page_code", "make_pairing_code", "open_report"}
    assert without == {
        "add_file",
        "add_files",
        "declare_json_index",
        "keep_browser",
        "read_bundle",
        "stream_posts",
        "tell_presence",
        *codes,
    }


def _request(key: str) -> Request:
    return Request({"type": "http", "headers": [(b"idempotency-key", key.encode())]})


class _Acts:
    """Counts how often it is done."""

    def __init__(self, size: int = 0) -> None:
        self.count = 0
        self.size = size

    async def __call__(self) -> object:
        self.count += 1
        return {"count": self.count, "filling": "x" * self.size}


async def _count(repeats: Repeats, key: str, act: Callable[[], Awaitable[object]]) -> int:
    answer: Response = await repeats.answer(HOME, _request(key), lambda: b"f", act)
    count: int = json.loads(bytes(answer.body))["count"]
    return count


async def test_answers_are_kept_for_a_while(autojump_clock: MockClock) -> None:
    repeats, act = Repeats("run"), _Acts()
    assert await _count(repeats, "a", act) == 1
    await trio.sleep(IDEMPOTENCY_SECONDS - 1)
    assert await _count(repeats, "a", act) == 1
    await trio.sleep(1)
    assert await _count(repeats, "a", act) == 2


async def test_answers_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats_module, "IDEMPOTENCY_COUNT_MAX", 3)
    repeats, act = Repeats("run"), _Acts()
    for number, key in enumerate("abc", start=1):
        assert await _count(repeats, key, act) == number
    assert len(repeats._kept) == 3
    assert await _count(repeats, "d", act) == 4
    assert [key for _, key in repeats._kept] == ["b", "c", "d"]


async def test_answers_are_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    repeats, act = Repeats("run"), _Acts(size=1000)
    await _count(repeats, "a", act)
    monkeypatch.setattr(repeats_module, "IDEMPOTENCY_SIZE_MAX", repeats._size)
    await _count(repeats, "b", act)
    assert [key for _, key in repeats._kept] == ["a", "b"], "what has come is kept"
    await _count(repeats, "c", act)
    assert [key for _, key in repeats._kept] == ["b", "c"]


async def test_a_request_that_was_cut_short_is_not_done_again() -> None:
    repeats, act = Repeats("run"), _Acts()

    async def hang() -> object:
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await repeats.answer(HOME, _request("b"), lambda: b"f", hang)
    with pytest.raises(ServiceError, match="cut short") as caught:
        await _count(repeats, "b", act)
    assert caught.value.code == "answer_lost"


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()


async def test_where_the_store_failed_a_repetition_tries_again() -> None:
    repeats, act = Repeats("run"), _Acts()

    async def fail() -> object:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await repeats.answer(HOME, _request("a"), lambda: b"f", fail)
    assert await _count(repeats, "a", act) == 1


@pytest.mark.parametrize(
    "code, is_kept",
    [
        ("busy", False),
        ("interrupted", False),
        ("storage_failed", False),
        ("damaged", False),
        ("incomplete", False),
        ("feed_uncertain", False),
        ("not_permitted", True),
        ("already_exists", True),
    ],
)
async def test_what_ends_by_itself_is_tried_again_and_a_refusal_is_repeated(code: str, is_kept: bool) -> None:
    repeats, act = Repeats("run"), _Acts()

    async def refuse() -> object:
        raise ServiceError(code, "for now")

    with pytest.raises(ServiceError, match="for now"):
        await repeats.answer(HOME, _request("a"), lambda: b"f", refuse)
    if is_kept:
        with pytest.raises(ServiceError, match="for now"):
            await _count(repeats, "a", act)
    else:
        assert await _count(repeats, "a", act) == 1
        assert await _count(repeats, "a", act) == 1


class _Looked(OrderedDict[tuple[str, str], Any]):
    """A dict that counts the values that were looked at."""

    count = 0

    def values(self) -> Any:  # noqa: ANN401  # as the one of the base
        for value in super().values():
            self.count += 1
            yield value


async def test_a_write_looks_at_what_it_forgets_and_at_no_other_answer() -> None:
    repeats, act = Repeats("run"), _Acts()
    for number in range(50):
        await _count(repeats, f"k{number}", act)
    looked = repeats._kept = _Looked(repeats._kept)
    looked.count = 0
    await _count(repeats, "another", act)
    assert looked.count == 1
