"""Has a node judge the vectors of verdicts, one history after the other, until it differs."""

import gzip
import json
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog

from tests.support.stores import use_memory_for_files
from tests.support.verdict_replica import differing_in_replica
from tests.verdicts.histories import VECTORS


def judge_vectors() -> int:
    """Judge them in two orders of arrival each, and print a line of what came of it. Return 1 where one differs."""
    use_memory_for_files()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    histories = json.loads(gzip.decompress(VECTORS.read_bytes()))["histories"]
    judged = 0

    def count() -> Iterator[dict[str, Any]]:
        nonlocal judged
        for judged, history in enumerate(histories, 1):  # noqa: B007  # how many the judge has asked for
            yield history

    with TemporaryDirectory() as folder, closing(differing_in_replica(count(), Path(folder))) as said:
        try:
            first = next(said, None)
        except Exception as error:  # whatever a node without a rule runs into
            first = repr(error)
    print(f"vector {judged}: {'holds' if first is None else first}")
    return int(first is not None)
