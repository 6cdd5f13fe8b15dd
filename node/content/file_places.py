"""Says where the content of files is, as far as this node knows: on this computer, elsewhere too, or not here yet."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from node.ingest.replica import Replica
from protocol.ids import ObjectId, ShortId
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.users import FILE_BLOCKS_LOOKED_MAX
from protocol.session.deposits import short_file
from storage.blobs.files import FileRow
from storage.blobs.relayed_files import Looks, TooManyPlaces, measure_file
from storage.blobs.unfetched import find_unfetched_rows

ONLY_HERE = "only_here"
HERE = "here"
AWAY = "away"
UNKNOWN = "unknown"


def find_places(
    connection: Connection, replica: Replica, rows: Sequence[FileRow], relayed: Collection[ShortId]
) -> dict[int, str]:
    """Find, by number, where the content of each file is; `relayed` are those that relays keep. Raises StorageError.

    Costs O(files, and places of blocks in different ones, at most FILE_BLOCKS_LOOKED_MAX). A file that has more than are
    left, or as its author states its size, is `unknown`.
    """
    unfetched = find_unfetched_rows(connection, [row.num for row in rows])
    looks = Looks(FILE_BLOCKS_LOOKED_MAX)
    folder, packs = replica.database.folder, replica.packs
    places: dict[int, str] = {}
    found: dict[ObjectId, str] = {}
    for row in rows:
        if row.object_id not in found:
            if 1 + (row.size or 0) // LEAF_SIZE > looks.left:
                places[row.num] = UNKNOWN  # another name of it may state less
                continue
            looks.left -= 1
            try:
                is_here = measure_file(connection, folder, packs, row.object_id, looks) is not None
                found[row.object_id] = HERE if is_here else AWAY
            except TooManyPlaces:
                found[row.object_id] = UNKNOWN
        places[row.num] = found[row.object_id]
        is_elsewhere = row.num not in unfetched or short_file(row.object_id) in relayed
        if places[row.num] == HERE and not is_elsewhere:
            places[row.num] = ONLY_HERE
    return places
