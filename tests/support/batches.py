"""Takes batches in as a node does, to the end: what a batch releases is judged, too."""

from node.ingest.acceptance import accept_batch, release_more
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch
from node.ingest.replica import Replica
from storage.repos.epochs import Topic


def accept_whole(replica: Replica, topic: Topic, batch: OpenedBatch, now_ms: int) -> IngestResult:
    """Judge and store a batch, then all that waited for it."""
    ingested = accept_batch(replica, topic, batch, now_ms)
    while ingested.is_unfinished:
        ingested.add(release_more(replica, now_ms))
    return ingested
