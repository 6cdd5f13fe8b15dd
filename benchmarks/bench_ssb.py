"""Validation of classic Scuttlebutt messages, against bare verification of their signatures; one thread.

python benchmarks/bench_ssb.py [messages]

- *Bare*: libsodium's check of each message's signature over its bytes, and nothing else.
- *Validate*: from a line of a log to a verified message that is the next of its feed: JSON, canonical text, id, shape, size,
  place in the feed, and the same check of the signature.
- *Odd*: the same of messages whose numbers take the long way to the canonical text.

Messages are those of ten interleaved feeds, replies with links and mentions, some in other scripts. Seconds are those of the
processor, so that what else the machine does counts little; runs take turns, and the best of five rounds counts for each.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable

from nacl import bindings

from benchmarks.common import figure
from node.importers.ssb_feeds import SsbFeeds
from node.runtime.blocking import tune_interpreter
from node.scuttlebutt.messages import SsbMessage, read_ssb_message
from tests.support.ssb import Feed, key_of_line

_ROUNDS = 5
_FEED_COUNT = 10
_TEXT = "A reply of a few sentences, as people write them. It has a [link](https://example.org/page?n=1) and a smile."


def _make(count: int, **fields: object) -> list[bytes]:
    """Return a log of replies in which each feed takes its turn."""
    feeds = [Feed(chr(ord("a") + number)) for number in range(_FEED_COUNT)]
    lines: list[bytes] = []
    for number in range(count):
        feed = feeds[number % _FEED_COUNT]
        root = key_of_line(lines[-1]) if lines else None
        content = {
            "type": "post",
            "text": f"{number}. {_TEXT}{' Schöne Grüße ✓' if number % 3 == 0 else ''}",
            "root": root,
            "branch": [root],
            "mentions": [{"link": feeds[(number + 1) % _FEED_COUNT].id, "name": "somebody"}],
        }
        # JSON on one line, as logs have it.
        whole = json.loads(feed.write(content=content, **fields))
        lines.append(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return lines


def _nothing(_feed: str) -> Iterable[bytes]:
    return ()


def _validate(lines: list[bytes]) -> None:
    feeds = SsbFeeds(_nothing)
    for line in lines:
        assert feeds.add_line(line) is not None, "each is the next of its feed"


def _verify(messages: list[SsbMessage]) -> None:
    for message in messages:
        bindings.crypto_sign_open(message.signature + message.signed, message.key)


def _rates(count: int, *runs: Callable[[], None]) -> list[float]:
    """Messages per second of runs that take turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(_ROUNDS):
        for taken, run in zip(seconds, runs, strict=True):
            began = time.process_time()
            run()
            taken.append(time.process_time() - began)
    return [count / min(taken) for taken in seconds]


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    lines, odd_lines = _make(count), _make(count, timestamp=1_500_000_000_000.5)
    messages = [read_ssb_message(line) for line in lines]
    bare, validated, odd = _rates(
        count, lambda: _verify(messages), lambda: _validate(lines), lambda: _validate(odd_lines)
    )
    size = sum(map(len, lines)) // count
    figure("ssb_bare_verification", bare, "messages/s", line_bytes=size)
    figure("ssb_validate", validated, "messages/s", line_bytes=size)
    figure("ssb_validate_to_bare", validated / bare, "ratio", goal=0.6)
    figure("ssb_validate_odd", odd, "messages/s", line_bytes=size)
    figure("ssb_validate_odd_to_bare", odd / bare, "ratio")


if __name__ == "__main__":
    main()
