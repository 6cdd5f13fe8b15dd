"""`OwnOpener`: gives what this node has just made to the rules, without decoding it and verifying its signatures again.

Making a commit parses it as a stranger's (`create_commit`, `encode_body`), and the rules judge every commit. What reading
it back would add is to notice a fault of this program or machine before anyone else sees the commit. Two checks do that:

- The id of each block is computed again, of every commit. A bit that flips while the bytes wait in memory changes one.
- One commit of READ_AGAIN_EACH, the first one included, is read as a peer reads it, with both signatures. It must give what
  was made. A fault that is there each time, as in a library that was exchanged, is met by the first write of a run. After a
  damaged commit each one is read, until one is whole: a client that tries again meets the fault again.

A bit that flips inside one signature or one encryption passes, but for one time in READ_AGAIN_EACH. Peers then refuse that
commit. A commit whose verdict rests on its body, as those of a root branch, is always read: there are few of these.
"""

import threading
from collections.abc import Sequence
from typing import Final

from node.authoring.drafting import WrittenCommit
from node.ingest.publication_parsing import Opened, OpenedBatch, open_batch
from node.runtime.errors import ServiceError
from protocol.crypto.hashing import block_id
from storage.repos.epochs import Topic

READ_AGAIN_EACH: Final = 32
"""Commits of which one is read again: some 110 us, so that each costs 3.5 us more."""


class OwnOpener:
    """Opener of one user's commits. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen_count = 0
        self._doubts = False  # the last commit that was read was damaged

    def open(self, topic: Topic, written: Sequence[WrittenCommit]) -> OpenedBatch:
        """Open commits that this node made on a topic, in order. Costs O(bytes); one in READ_AGAIN_EACH is also parsed.

        Raises ServiceError: `bad_request` if one is no legal commit, `internal` if one differs from what was made.
        """
        with self._lock:
            first = self._seen_count
            self._seen_count += len(written)
        batch = OpenedBatch()
        for place, one in enumerate(written, first):
            reads = self._doubts or place % READ_AGAIN_EACH == 0
            try:
                batch.opened.append(_open(topic, one, reads=reads))
            except ServiceError as error:
                self._doubts |= error.code == "internal"
                raise
            if reads:
                self._doubts = False
        return batch


def _open(topic: Topic, written: WrittenCommit, *, reads: bool) -> Opened:
    made = written.made
    if made is None or reads:
        read = _read(topic, written)
        if made is None:
            return read
        if (read.signed, read.publication) != (made.signed, made.publication):
            raise _not_as_made("it reads otherwise than it was made")
    if made.signed.commit.commit_id != written.commit_id or any(
        block_id(block.encoded) != block.block_id for block in made.publication.blocks
    ):
        raise _not_as_made("its bytes have another id")
    return made


def _read(topic: Topic, written: WrittenCommit) -> Opened:
    """Read it as a peer does. Raises ServiceError."""
    batch = open_batch(topic, [written.encoded], checks_topics=True)
    if batch.opened:
        return batch.opened[0]
    reasons = [*batch.dropped, *(item.code for item in batch.rejected)]
    if written.made is not None:
        raise _not_as_made(", ".join(reasons))
    raise ServiceError("bad_request", f"the commit is not a legal one: {', '.join(reasons)}")


def _not_as_made(reason: str) -> ServiceError:
    return ServiceError(
        "internal",
        f"a commit was damaged while it was made, and nothing of it was kept: {reason}",
        "try again; if that recurs, test this machine's memory",
    )
