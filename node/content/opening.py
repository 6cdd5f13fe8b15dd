"""Reads what needs bodies of branches that are not kept here: they come from a peer once they are opened."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

from node.content.lineage import lineage_nums
from node.runtime.errors import ServiceError
from node.sync.body_fetching import fetch_opened
from node.sync.hub import Hub
from protocol.formats.body import Body, kind_name
from protocol.ids import CommitId
from storage.commits.absent_bodies import load_spared
from storage.repos.repos import Branch

T = TypeVar("T")


async def read_opened(
    hub: Hub,
    branch: Branch,
    read: Callable[[], Awaitable[T]],
    kinds: Collection[type[Body]] = (),
    document: str | None = None,
) -> T:
    """Return the result of `read`. If it raises `incomplete`, fetch absent bodies and read once more.

    The bodies are of the kinds that the branch and those that it continues do not keep: of one document, of any (None), or
    of all kinds if none is named. Costs nothing if `read` succeeds, else O(absent bodies of these branches) and the wait of
    `fetch_opened`. Raises as `read` does.
    """
    try:
        return await read()
    except ServiceError as error:
        if error.code != "incomplete" or not await open_bodies(hub, [branch], kinds, document):
            raise
    return await read()


async def open_bodies(
    hub: Hub, branches: Sequence[Branch], kinds: Collection[type[Body]], document: str | None = None
) -> bool:
    """Fetch the absent bodies of several branches together, as `read_opened` does; return True if any may have come.

    Raises ServiceError `incomplete`.
    """
    names = set(map(kind_name, kinds))

    def find() -> list[CommitId]:
        with hub.replica.database.read() as connection:
            nums = {num for one in branches for num in lineage_nums(hub.replica, connection, one)}
            return load_spared(connection, sorted(nums), names, document)

    return await fetch_opened(hub, await hub.run_blocking(find))
