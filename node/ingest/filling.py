"""Bodies of commits that are here without them: taken from publications that come again. What these are is `inbound`'s."""

from collections.abc import Sequence

from sqlalchemy import Connection

from node.ingest.intake import Intake
from node.ingest.opening import Opened
from protocol.block import Block
from storage.commits.erasing import fill_bodies, is_any_missing
from storage.engine.database import Database
from storage.repos.repos import Branch


def fill_missing(
    database: Database, connection: Connection, branch: Branch, again: Sequence[Opened], intake: Intake
) -> None:
    """Keep what is missing of the bodies of these commits, which are known here; say in `intake` what came of it.

    Each body is what its commit names, whoever sent it: the way in has looked at that.
    """
    if not again or not is_any_missing(connection, branch.num):
        return
    bodies: dict[bytes, Block] = {}
    for opened in again:
        publication = opened.publication
        if publication.body_id is None and len(publication.blocks) == 2:
            bodies[publication.commit_id] = publication.blocks[1]
    intake.filled |= fill_bodies(database, connection, bodies)
