"""Cost of a topic's summary to a relay: its sketch in memory, left memory and come back, or made anew from rows.

python benchmarks/bench_sketches.py [commits ...]

The second is what every topic costs that is asked for after more others than fit in memory; before sketches were written as
they left it, that was the third. CPU seconds of this thread, the median of nine.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sqlalchemy import insert

from benchmarks.common import figure
from protocol.ids import TopicKey
from storage.engine.database import Database
from storage.relay.relay import RELAY
from storage.schema.relay_schema import relay_commits, relay_topics
from storage.topics.sketches import Sketches
from storage.topics.topic_sets import TopicSet

_ROUNDS = 9
_PUBLICATION = bytes(500)


def _keep(database: Database, count: int) -> TopicSet:
    """Return a topic of so many publications, of which nothing but their ids is looked at."""
    topic = TopicKey(os.urandom(32))
    with database.write() as connection:
        (num,) = database.next_nums(connection, relay_topics, 1)
        values = {"num": num, "topic": topic, "is_pinned": False, "commit_count": count}
        connection.execute(insert(relay_topics).values(**values, size=0, touched_at=0))
        rows = [
            {
                "num": commit_num,
                "id_key": commit_num,
                "commit_id": os.urandom(32),
                "topic_num": num,
                "rank": 0,
                "acks": b"",
                "publication": _PUBLICATION,
                "publication_id": os.urandom(32),
                "publication_key": commit_num,
            }
            for commit_num in database.next_nums(connection, relay_commits, count)
        ]
        connection.execute(insert(relay_commits), rows)
    return TopicSet(RELAY, num, topic, of_publications=True)


def _milliseconds(database: Database, kept: TopicSet, sketches: Callable[[], Sketches]) -> float:
    taken = []
    for _ in range(_ROUNDS):
        of_round = sketches()
        with database.read() as connection:
            began = time.thread_time()
            of_round.digest(connection, kept)
            taken.append((time.thread_time() - began) * 1000)
    return statistics.median(taken)


def _same(sketches: Sketches) -> Sketches:
    return sketches


def main() -> None:
    """Print the figures."""
    counts = [int(text) for text in sys.argv[1:]] or [100, 1_000, 19_999]
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder))
        other = _keep(database, 1)
        for count in counts:
            kept = _keep(database, count)
            anew = _milliseconds(database, kept, lambda: Sketches(database))
            warm = Sketches(database)
            with database.read() as connection:
                warm.digest(connection, kept)
            in_memory = _milliseconds(database, kept, partial(_same, warm))
            leaving = Sketches(database, size_max=1)
            with database.read() as connection:
                for one in (kept, other):
                    leaving.digest(connection, one)
            leaving.write()
            written = _milliseconds(database, kept, lambda: Sketches(database))
            figure("summary, sketch in memory", in_memory, "ms", commits=count)
            figure("summary, sketch as written", written, "ms", commits=count)
            figure("summary, sketch made anew", anew, "ms", commits=count)
        database.close()


if __name__ == "__main__":
    main()
