"""Feeds of Scuttlebutt messages: chains, gaps and forks, and logs of many feeds, imported again and again."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.importers import ssb_feeds, ssb_log
from node.importers.item import PackedItem
from node.importers.ssb_feeds import SsbFeeds
from node.importers.ssb_log import RefusedLine, SsbReport, branch_of, hmac_key_of, import_ssb_log, item_of
from node.runtime.errors import ServiceError
from node.scuttlebutt.messages import MessageRefused, Reason, digest_of, read_ssb_message
from protocol.limits.files import SSB_LINE_SIZE_MAX, SSB_REFUSALS_SHOWN_MAX
from protocol.limits.users import IMPORTED_SECONDS_MAX
from tests.support.ssb import Feed, key_of_line


def _nothing(_feed: str) -> Iterable[bytes]:
    return ()


def _judge(feeds: SsbFeeds, *lines: bytes) -> list[str]:
    """ "taken", "already", or the reason, of each line."""
    verdicts: list[str] = []
    for line in lines:
        try:
            verdicts.append("taken" if feeds.add_line(line) else "already")
        except MessageRefused as refused:
            verdicts.append(refused.reason)
    return verdicts


def _written(count: int, letter: str = "a") -> tuple[Feed, list[bytes]]:
    feed = Feed(letter)
    return feed, [feed.write(f"{letter} {number}") for number in range(count)]


def test_a_chain_is_taken_once() -> None:
    _, lines = _written(4)
    assert _judge(SsbFeeds(_nothing), *lines, *lines) == ["taken"] * 4 + ["already"] * 4


def test_what_was_imported_before_is_there_and_goes_on() -> None:
    _, lines = _written(4)
    known = [digest for line in lines[:2] if (digest := digest_of(key_of_line(line)))]
    assert _judge(SsbFeeds(lambda _: known), *lines) == ["already", "already", "taken", "taken"]
    assert _judge(SsbFeeds(lambda _: known), *lines[2:]) == ["taken", "taken"]


def test_gaps_are_refused_with_all_that_follows_until_they_are_filled() -> None:
    _, lines = _written(5)
    verdicts = _judge(
        SsbFeeds(_nothing), lines[0], lines[2], lines[3], lines[1], lines[2], lines[3], lines[4]
    )
    assert verdicts == ["taken", Reason.GAP, Reason.FOLLOWS_REFUSED, *["taken"] * 4]


def test_of_a_fork_the_first_stays_and_goes_on() -> None:
    feed, lines = _written(3)
    feed.back(lines[0])
    second, third = feed.write("another second"), feed.write("after it")
    feed.back(lines[2])
    fourth = feed.write()
    verdicts = _judge(SsbFeeds(_nothing), *lines, second, third, fourth)
    assert verdicts == [*["taken"] * 3, Reason.FORK, Reason.FORK, "taken"]
    verdicts = _judge(SsbFeeds(_nothing), *lines[:2], second, third, lines[2], fourth)
    assert verdicts == ["taken", "taken", Reason.FORK, Reason.FOLLOWS_REFUSED, "taken", "taken"]


def test_a_message_that_follows_another_than_the_last_is_a_fork() -> None:
    feed, lines = _written(2)
    other = _written(1, "b")[1][0]
    assert _judge(SsbFeeds(_nothing), lines[0], feed.write(sequence=2, previous=key_of_line(other))) == [
        "taken",
        Reason.FORK,
    ]


def test_the_first_message_and_no_other_follows_none() -> None:
    feed, lines = _written(1)
    assert _judge(SsbFeeds(_nothing), feed.write(sequence=1)) == [Reason.BAD_PREVIOUS]
    assert _judge(SsbFeeds(_nothing), lines[0], feed.write(sequence=2, previous=None)) == [
        "taken",
        Reason.BAD_PREVIOUS,
    ]


def test_a_bad_message_breaks_its_feed_and_no_other() -> None:
    feed, lines = _written(1)
    bad = feed.write(content={"type": "x"})
    late = feed.write()
    others = _written(2, "b")[1]
    verdicts = _judge(SsbFeeds(_nothing), lines[0], others[0], bad, late, others[1])
    assert verdicts == ["taken", "taken", Reason.BAD_CONTENT, Reason.FOLLOWS_REFUSED, "taken"]


def test_a_message_under_a_wrong_key_does_not_stand_in_the_way_of_the_right_one() -> None:
    feed, lines = _written(2)
    wrong = json.dumps(json.loads(lines[0]) | {"key": key_of_line(lines[1])}).encode()
    assert _judge(SsbFeeds(_nothing), wrong, *lines) == [Reason.WRONG_ID, "taken", "taken"]
    assert _judge(SsbFeeds(_nothing), lines[0], wrong, lines[1]) == ["taken", Reason.WRONG_ID, "taken"]
    feed.back(lines[0])
    fork = feed.write(sequence=3)
    verdicts = _judge(SsbFeeds(_nothing), wrong, *lines, fork)
    assert verdicts == [Reason.WRONG_ID, "taken", "taken", Reason.FORK], (
        "what it follows was taken in the end"
    )


def test_timestamps_may_go_back() -> None:
    feed = Feed("a")
    assert _judge(SsbFeeds(_nothing), feed.write(timestamp=5), feed.write(timestamp=-5)) == ["taken", "taken"]


def test_a_network_with_a_key_takes_its_own_messages_alone() -> None:
    key = b"n" * 32
    line = Feed("a", key).write()
    assert _judge(SsbFeeds(_nothing, key), line) == ["taken"]
    assert _judge(SsbFeeds(_nothing), line) == [Reason.BAD_SIGNATURE]
    assert _judge(SsbFeeds(_nothing, key), Feed("a").write()) == [Reason.BAD_SIGNATURE]


def test_feeds_are_bounded_one_over_and_unsigned_ones_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssb_feeds, "SSB_FEED_COUNT_MAX", 2)
    forged = [Feed(letter).write(author=Feed(letter.upper()).id) for letter in "xyz"]
    lines = [Feed(letter).write() for letter in "abc"]
    verdicts = _judge(SsbFeeds(_nothing), *forged, *lines, lines[0])
    assert verdicts == [Reason.BAD_SIGNATURE] * 3 + ["taken", "taken", Reason.TOO_MANY_FEEDS, "already"]


def test_refused_ids_are_bounded_one_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssb_feeds, "SSB_REFUSED_KEPT_MAX", 1)
    _, lines = _written(5)
    # The second refused id is not kept, so what follows it is a gap like any other.
    assert _judge(SsbFeeds(_nothing), lines[0], lines[2], lines[3], lines[4]) == [
        "taken",
        Reason.GAP,
        Reason.FOLLOWS_REFUSED,
        Reason.GAP,
    ]


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=6))
def test_in_any_order_what_is_taken_is_the_chain(order: list[int], more: list[int]) -> None:
    _, lines = _written(6)
    feeds = SsbFeeds(_nothing)
    taken = [number for number in [*order, *more] if _judge(feeds, lines[number]) == ["taken"]]
    assert taken == list(range(len(taken)))
    assert _judge(feeds, *lines)[len(taken) :] == ["taken"] * (6 - len(taken))


class Branches:
    """A repo's branches, as the API shows them, and how many batches were sent."""

    def __init__(self) -> None:
        self.items: dict[str, list[PackedItem]] = {}
        self.batches = 0
        self.batches_max = 1000

    def load(self, branch: str) -> Iterable[str]:
        return [item["id"] for item in self.items.get(branch, [])]

    def send(self, branch: str, batch: list[PackedItem]) -> None:
        if self.batches == self.batches_max:
            raise ServiceError("not_running", "the daemon stopped")
        self.batches += 1
        known = set(self.load(branch))
        for item in batch:
            assert set(item["parents"]) <= known, "parents stand before children"
            known.add(item["id"])
        self.items.setdefault(branch, []).extend(batch)


def _import(path: Path, target: Branches, key: bytes | None = None) -> SsbReport:
    return import_ssb_log(path, target, key, progress=lambda _: None, on_refusal=lambda _: None)


def test_a_log_of_interleaved_feeds_becomes_a_branch_each(tmp_path: Path) -> None:
    feeds = {letter: _written(3, letter) for letter in "abc"}
    lines = [lines[number] for number in range(3) for _, lines in feeds.values()]
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    target = Branches()
    report = _import(tmp_path / "log.jsonl.gz", target)
    assert (report.imported, report.already, report.refused.total()) == (9, 0, 0)
    for feed, written in feeds.values():
        items = target.items[branch_of(feed.id)]
        assert [item["id"] for item in items] == [key_of_line(line) for line in written]
        assert [json.loads(item["text"]) for item in items] == [json.loads(line)["value"] for line in written]
        assert {item["author"] for item in items} == {feed.id}
    assert report.as_json()["feeds"][0]["imported"] == 3


def test_a_second_run_adds_what_is_new_from_the_whole_log_or_the_rest(tmp_path: Path) -> None:
    path, target = tmp_path / "log.jsonl", Branches()
    _, lines = _written(5)
    path.write_bytes(b"".join(lines[:2]))
    _import(path, target)
    path.write_bytes(b"".join(lines[:4]))
    report = _import(path, target)
    assert (report.imported, report.already) == (2, 2)
    path.write_bytes(lines[4])
    report = _import(path, target)
    assert (report.imported, report.already, report.refused) == (1, 0, {})


def test_an_import_that_was_cut_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssb_log, "SSB_QUEUED_COUNT_MAX", 2)
    path, target = tmp_path / "log.jsonl", Branches()
    path.write_bytes(b"".join(_written(7)[1]))
    target.batches_max = 2
    with pytest.raises(ServiceError, match="stopped"):
        _import(path, target)
    target.batches_max = 1000
    report = _import(path, target)
    assert (report.imported, report.already) == (3, 4)


def test_a_fork_of_what_was_imported_earlier_is_refused(tmp_path: Path) -> None:
    path, target = tmp_path / "log.jsonl", Branches()
    feed, lines = _written(3)
    path.write_bytes(b"".join(lines))
    _import(path, target)
    feed.back(lines[0])
    path.write_bytes(lines[0] + feed.write("other") + feed.write("after"))
    report = _import(path, target)
    assert (report.imported, report.already, report.refused) == (0, 1, {Reason.FORK: 2})


def test_refused_lines_are_counted_listed_and_bounded(tmp_path: Path) -> None:
    path, told = tmp_path / "log.jsonl", list[RefusedLine]()
    good = _written(2)[1]
    long = b" " * (3 * SSB_LINE_SIZE_MAX) + b"\n"
    path.write_bytes(good[0] + b"\n" + long + b"{\n" * (SSB_REFUSALS_SHOWN_MAX + 1) + good[1][:-5])
    report = import_ssb_log(path, Branches(), None, progress=lambda _: None, on_refusal=told.append)
    assert report.as_json()["refused"] == {
        "line_too_long": 1,
        "not_a_message": SSB_REFUSALS_SHOWN_MAX + 2,
    }
    assert len(report.refusals) == SSB_REFUSALS_SHOWN_MAX
    assert len(told) == SSB_REFUSALS_SHOWN_MAX + 3
    assert (told[0]["line"], told[0]["reason"], told[0]["message"]) == (3, "line_too_long", None)
    assert told[-1]["line"] == SSB_REFUSALS_SHOWN_MAX + 5


@pytest.mark.parametrize(
    "timestamp, seconds",
    [
        (1999.9, 1),
        (-0.5, -1),
        (1e300, IMPORTED_SECONDS_MAX),
        (-1e300, -IMPORTED_SECONDS_MAX),
    ],
)
def test_times_of_any_size_fit_an_item(timestamp: float, seconds: int) -> None:
    assert item_of(read_ssb_message(Feed("a").write(timestamp=_number(timestamp)))).time == seconds


def _number(value: float) -> object:
    """As Python and JavaScript both write it."""
    return int(value) if value == int(value) and abs(value) < 1e20 else value


def test_items_of_the_source_that_are_no_messages_are_named(tmp_path: Path) -> None:
    path, target = tmp_path / "log.jsonl", Branches()
    feed, lines = _written(1)
    path.write_bytes(lines[0])
    target.items[branch_of(feed.id)] = [
        {"id": "something else", "parents": [], "author": "", "time": 0, "text": ""}
    ]
    with pytest.raises(ServiceError, match="something else"):
        _import(path, target)


def test_an_hmac_key_is_32_bytes_in_base64() -> None:
    assert hmac_key_of("bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5ubm4=") == b"n" * 32
    assert hmac_key_of("bm5u") is None
    assert hmac_key_of("not base64") is None
    assert hmac_key_of("") is None
    assert hmac_key_of("ü") is None
