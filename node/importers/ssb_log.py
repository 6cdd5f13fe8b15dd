"""Imports a log of classic Scuttlebutt messages, one branch per feed, and reports what was refused.

A log has the messages of many feeds in the order in which somebody received them. They are verified one by one
(`ssb_feeds`) and sent in batches by feed. What was imported before is asked of the node, so an import goes on where an
earlier one stopped, whether it is given the whole log again or only what came since.
"""

import base64
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypedDict

from node.importers.item import PackedItem, SourceItem, pack
from node.importers.jsonl import read_lines
from node.importers.ssb_feeds import SsbFeeds
from node.runtime.errors import ServiceError
from node.scuttlebutt.messages import MessageRefused, SsbMessage, digest_of, key_of
from protocol.limits.files import SSB_LINE_SIZE_MAX, SSB_QUEUED_COUNT_MAX, SSB_REFUSALS_SHOWN_MAX
from protocol.limits.users import IMPORTED_SECONDS_MAX

SSB_SOURCE: Final = "ssb"
_BRANCH_PREFIX: Final = "ssb/"
_SHORT_ID_SIZE: Final = 16


class RefusedLine(TypedDict):
    """A line of a log that was refused: its number from 1, the message's id where it has one, and why."""

    line: int
    message: str | None
    reason: str
    problem: str


class ImportedFeed(TypedDict):
    """A feed with new messages, its branch, and how many were imported."""

    feed: str
    branch: str
    imported: int


class SsbSummary(TypedDict):
    """Answer of `import ssb --json`."""

    imported: int
    already: int
    refused: dict[str, int]
    refusals: list[RefusedLine]
    feeds: list[ImportedFeed]


class SsbTarget(Protocol):
    """Destination of feeds: the branches of a repo."""

    def load(self, branch: str) -> Iterable[str]:
        """Yield the ids that were imported into a branch, in order; nothing if there is no such branch."""
        ...

    def send(self, branch: str, batch: list[PackedItem]) -> None:
        """Import a batch durably; the branch is made for its first."""
        ...


@dataclass(slots=True)
class SsbReport:
    """Counts of an imported log; `refusals` are the first of those in `refused`, `feeds` those with new messages."""

    imported: int = 0
    already: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[RefusedLine] = field(default_factory=list)
    feeds: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> SsbSummary:
        """Return the answer of `import ssb`."""
        feeds: list[ImportedFeed] = [
            {"feed": feed, "branch": branch_of(feed), "imported": count} for feed, count in self.feeds.items()
        ]
        return {
            "imported": self.imported,
            "already": self.already,
            "refused": dict(sorted(self.refused.items())),
            "refusals": self.refusals,
            "feeds": feeds,
        }


def import_ssb_log(
    path: Path,
    target: SsbTarget,
    hmac_key: bytes | None,
    *,
    progress: Callable[[int], None],
    on_refusal: Callable[[RefusedLine], None],
) -> SsbReport:
    """Import a log. `progress` notes how many messages are behind us, `on_refusal` each refused line.

    Raises ServiceError if the file cannot be read or the node refuses a batch; what was sent before stays.
    """
    report = SsbReport()
    feeds = SsbFeeds(lambda feed: _digests(target.load(branch_of(feed))), hmac_key)
    waiting: dict[str, list[SourceItem]] = {}
    count = 0
    for number, line in read_lines(path, SSB_LINE_SIZE_MAX):
        try:
            message = feeds.add_line(line)
        except MessageRefused as refused:
            entry = _entry(number, refused)
            on_refusal(entry)
            report.refused[refused.reason] += 1
            if len(report.refusals) < SSB_REFUSALS_SHOWN_MAX:
                report.refusals.append(entry)
            continue
        if message is None:
            report.already += 1
            continue
        waiting.setdefault(message.author, []).append(item_of(message))
        count += 1
        if count >= SSB_QUEUED_COUNT_MAX:
            _send(target, waiting, report, progress)
            count = 0
    _send(target, waiting, report, progress)
    return report


def branch_of(feed: str) -> str:
    """Return the name of a feed's branch: the first 80 bits of its key. Two keys of one name are both refused as forks."""
    key = key_of(feed)
    assert key is not None, "feeds of verified messages"
    return _BRANCH_PREFIX + base64.b32encode(key).decode().lower()[:_SHORT_ID_SIZE]


def item_of(message: SsbMessage) -> SourceItem:
    """Pack a message as the API takes it. Its text is the canonical one, so that anybody can verify it again."""
    seconds = min(max(message.timestamp // 1000, -IMPORTED_SECONDS_MAX), IMPORTED_SECONDS_MAX)
    parents = () if message.previous is None else (message.previous,)
    return SourceItem(message.id, parents, message.author, int(seconds), message.text)


def _digests(ids: Iterable[str]) -> Iterable[bytes]:
    for one in ids:
        digest = digest_of(one)
        if digest is None:
            raise ServiceError(
                "bad_input",
                f"the feed's branch has an item {one!r} of the source {SSB_SOURCE!r}, which is no message",
                "rename that branch; the feed gets a new one",
            )
        yield digest


def _entry(number: int, refused: MessageRefused) -> RefusedLine:
    return {
        "line": number,
        "message": refused.message_id or None,
        "reason": str(refused.reason),
        "problem": refused.problem,
    }


def _send(
    target: SsbTarget,
    waiting: dict[str, list[SourceItem]],
    report: SsbReport,
    progress: Callable[[int], None],
) -> None:
    for feed, items in waiting.items():
        for batch in pack(items):
            target.send(branch_of(feed), batch)
            report.imported += len(batch)
            report.feeds[feed] = report.feeds.get(feed, 0) + len(batch)
            progress(report.imported + report.already)
    waiting.clear()


def hmac_key_of(text: str) -> bytes | None:
    """Decode a network's key of 32 bytes in base64; return None if it is none."""
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return key if len(key) == 32 else None
