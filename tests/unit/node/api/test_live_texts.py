"""Texts that editors follow: what is lacking, what is new, who else is here, and many keys in one commit."""

import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
import trio
from pycrdt import Doc, Text

from node.api import event_streams
from node.api.event_streams import Event, pause_of
from node.api.live_texts import TextSource
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text, parse_id
from protocol.limits.peers import PRESENCES_PER_SECOND_MAX
from protocol.limits.users import (
    TEXT_POSITION_SIZE_MAX,
    TEXT_STREAMS_MAX,
    TEXT_TYPED_SIZE_MAX,
    TEXT_VECTOR_SIZE_MAX,
)
from protocol.session.presence import Presence
from storage.commits.void_marks import load_judged, mark_void
from tests.support.answers import check_event
from tests.support.editors import client_of
from tests.support.ids import as_commit_id
from tests.support.served import Served, served

WEB = Path(__file__).parents[4] / "node" / "web"
TEXT = "/api/v1/branches/main/text"
OWN = b"12345678"
OTHER = b"abcdefgh"
pytestmark = pytest.mark.slow  # each merge starts a process


class Editor:
    """A Yjs document with one text."""

    def __init__(self, client_id: int) -> None:
        self.document: Doc[Text] = Doc(client_id=client_id)
        self.text = self.document.get("text", type=Text)

    def write(self, text: str) -> str:
        """The update that this is, for a request."""
        before = self.document.get_state()
        self.text += text
        return b64encode(self.document.get_update(before)).decode()

    def take(self, update: str) -> str:
        self.document.apply_update(b64decode(update))
        return str(self.text)

    @property
    def vector(self) -> str:
        return urlsafe_b64encode(self.document.get_state()).decode().rstrip("=")


async def _push(one: Served, update: str, *, gather: bool = False) -> dict[str, Any]:
    answer = await one.client.post(TEXT, json={"update": update, "gather": gather})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _tell(one: Served, session: bytes, root: str = "text", **fields: bytes | str | int) -> int:
    told: dict[str, bytes | str | int] = {"session": session, "root": root, **fields}
    body = {name: b64encode(one).decode() if isinstance(one, bytes) else one for name, one in told.items()}
    return (await one.client.put(f"{TEXT}/presence", json=body)).status_code


async def _next(source: TextSource, name: str) -> Event:
    while True:
        for event in await source.next():
            check_event(event.name, event.data)
            if event.name == name:
                return event


async def test_an_editor_asks_for_what_it_lacks_and_for_who_else_is_here(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        writer, reader = Editor(client_of(one.node)), Editor(2)
        await _push(one, writer.write("one "))
        first = (await one.client.get(f"{TEXT}/changes")).json()
        assert (reader.take(first["update"]), first["others"]) == ("one ", [])
        await _push(one, writer.write("two"))
        assert await _tell(one, OTHER, anchor=b"a", head=b"h", typed="ke", client=7, clock=3) == 200
        assert await _tell(one, OWN) == 200
        query = {"vector": reader.vector, "session": urlsafe_b64encode(OWN).decode()}
        rest = (await one.client.get(f"{TEXT}/changes", params=query)).json()
        assert len(rest["update"]) < len(first["update"]) + 8, "what is new alone"
        assert reader.take(rest["update"]) == "one two"
        (there,) = rest["others"]
        assert there == {
            "session": b64encode(OTHER).decode(),
            "user": id_text(one.node.author.user),
            "root": "text",
            "anchor": b64encode(b"a").decode(),
            "head": b64encode(b"h").decode(),
            "typed": "ke",
            "client": 7,
            "clock": 3,
        }
        assert await _tell(one, OTHER, root="") == 200
        assert (await one.client.get(f"{TEXT}/changes", params=query)).json()["others"] == []
        bad = [{"vector": "!"}, {"session": "AAAA"}, {"vector": "A" * (TEXT_VECTOR_SIZE_MAX * 4 // 3 + 8)}]
        for params in bad:
            refused = await one.client.get(f"{TEXT}/changes", params=params)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
        refused = await one.client.get(f"{TEXT}/changes", params={"vector": "____"})
        assert refused.json()["error"]["code"] == "bad_input"
        assert await _tell(one, b"short") == 400
        assert await _tell(one, OWN, head=b"x" * (TEXT_POSITION_SIZE_MAX + 1)) == 400
        assert await _tell(one, OWN, typed="x" * (TEXT_TYPED_SIZE_MAX + 1)) == 400
        assert await _tell(one, OWN, root="x" * 65) == 400


async def test_a_stream_brings_what_is_new_and_begins_anew_where_something_counts_no_more(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        writer, reader = Editor(client_of(one.node)), Editor(2)
        await _push(one, writer.write("one "))
        source = one.service.branches.live_texts.follow("main", "", urlsafe_b64encode(OWN).decode())
        source.start()
        assert reader.take((await _next(source, "update")).data["update"]) == "one "  # type: ignore[arg-type]  # a str
        await _tell(one, OWN)
        await _tell(one, OTHER)
        others: Any = (await _next(source, "presence")).data["others"]
        assert [view["session"] for view in others] == [b64encode(OTHER).decode()]
        pushed = await _push(one, writer.write("two"))
        update: Any = (await _next(source, "update")).data["update"]
        assert reader.take(update) == "one two"
        branch, database = one.node.branch(), one.node.replica.database
        with database.write() as connection:
            found = as_commit_id(parse_id(pushed["commit"]))
            (judged,) = load_judged(connection, branch.num, [found])
            mark_void(database, connection, branch.num, [judged.num], is_void=True)
        one.node.hub.topics_changed()
        whole: Any = (await _next(source, "whole")).data["update"]
        assert Editor(3).take(whole) == "one "
        source.stop()
        assert [view.presence.session for view in one.node.hub.presences.editors(branch.num)] == [OTHER]


async def test_others_who_move_all_the_time_are_looked_at_at_a_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = 0.05
    monkeypatch.setattr(event_streams, "EVENT_PAUSE_SECONDS_MIN", pause)
    async with served(tmp_path) as one:
        one.node.create_repo()
        source = one.service.branches.live_texts.follow("main", "", urlsafe_b64encode(OWN).decode())
        source.start()
        await _next(source, "update")
        began = trio.current_time()
        for number in range(4):
            branch = one.node.branch()
            moved = Presence(OTHER, branch.branch_id, "text", b"", bytes([number]))
            one.node.hub.presences.announce_presence(branch, moved)
            await _next(source, "presence")
        assert trio.current_time() - began >= 3 * pause
        source.stop()


def test_what_waits_between_a_key_and_anothers_page_is_under_two_tenths_of_a_second() -> None:
    """A key goes with the next statement of presence, which this node tells streams of texts at their pace."""
    script = (WEB / "state/live_text.js").read_text(encoding="utf-8")
    (told,) = re.findall(r"const TELL_MS = (\d+);", script)
    milliseconds = int(told)
    assert milliseconds / 1000 + pause_of(TEXT_STREAMS_MAX) < 0.2, "with all streams that there may be"
    assert 1000 / milliseconds <= PRESENCES_PER_SECOND_MAX, "none of a steady hand is dropped"


async def test_updates_of_a_moment_become_one_commit_and_each_push_is_durable(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        await _tell(one, OWN)
        await _tell(one, OTHER)
        editors = [Editor(client_of(one.node, session=number)) for number in (1, 2, 3)]
        await _push(one, Editor(client_of(one.node, session=9)).write("."), gather=True)
        answers: list[dict[str, Any]] = []

        async def push(editor: Editor) -> None:
            answers.append(await _push(one, editor.write("x"), gather=True))

        async with trio.open_nursery() as nursery:
            for editor in editors:
                nursery.start_soon(push, editor)
        assert len({answer["commit"] for answer in answers}) == 1
        refused = await one.client.post(TEXT, json={"update": b64encode(b"junk").decode(), "gather": True})
        assert refused.json()["error"]["code"] == "bad_input"
        shown = (await one.client.get(TEXT, params={"root": "text"})).json()
        assert (shown["updates"], sorted(shown["text"])) == (2, [".", "x", "x", "x"])
        state = (await one.client.get("/api/v1/branches/main/state", params={"kind": "text"})).json()
        assert [item["kind"] for item in state["items"]] == ["text", "text"]


async def test_only_so_many_texts_are_followed(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        one.node.create_repo()
        sources = [one.service.branches.live_texts.follow("main", "", "") for _ in range(TEXT_STREAMS_MAX)]
        sources[0].start()
        with pytest.raises(ServiceError, match="texts are followed") as caught:
            one.service.branches.live_texts.follow("main", "", "")
        assert caught.value.code == "busy"
        sources[0].stop()
        again = one.service.branches.live_texts.follow("main", "", "")
        assert len(one.service.branches.live_texts._open) == TEXT_STREAMS_MAX
        again.start()
        again.stop()
