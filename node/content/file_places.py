"""Says where the content of files is, as far as this node knows: on this computer, elsewhere too, or not here yet."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from node.ingest.replica import Replica
from protocol.ids import ShortId
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.users import FILE_BLOCKS_LOOKED_MAX
from protocol.session.deposits import short_file
from storage.blobs.files import FileRow
from storage.blobs.relayed_files import measure_file
from storage.blobs.unfetched import find_unfetched_rows

ONLY_HERE = "only_here"
HERE = "here"
AWAY = "away"
UNKNOWN = "unknown"


def find_places(
    connection: Connection, replica: Replica, rows: Sequence[FileRow], relayed: Collection[ShortId]
) -> dict[int, str]:
    """Find, by number, where the content of each file is; `relayed` are those that relays keep. Raises StorageError.

    Costs O(blocks), at most FILE_BLOCKS_LOOKED_MAX as their authors state sizes. Files beyond these are `unknown`.
    """
    unfetched = find_unfetched_rows(connection, [row.num for row in rows])
    places: dict[int, str] = {}
    left = FILE_BLOCKS_LOOKED_MAX
    for row in rows:
        left -= 1 + (row.size or 0) // LEAF_SIZE
        if left < 0:
            places[row.num] = UNKNOWN
        elif measure_file(connection, replica.database.folder, replica.packs, row.object_id) is None:
            places[row.num] = AWAY
        elif row.num in unfetched and short_file(row.object_id) not in relayed:
            places[row.num] = ONLY_HERE
        else:
            places[row.num] = HERE
    return places
