"""Views of commits whose contents come from a peer once they are opened."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from node.sync.body_fetching import fetch_opened
from node.sync.hub import Hub
from protocol.formats.text import parse_id
from protocol.ids import BlockId, CommitId

T = TypeVar("T", bound=Mapping[str, Any])


async def show_opened(hub: Hub, read: Callable[[], T], parts: str = "items") -> T:
    """Return a view that `read` makes of a commit or of its `parts`: again once contents have come that are not kept here.

    Costs what `read` does, twice where something comes, and the wait of `fetch_opened`. Raises as `read` does.
    """
    view = await hub.run_blocking(read)
    items = view.get(parts, [view])
    absent = [CommitId(BlockId(parse_id(one["commit"]))) for one in items if one.get("not_kept")]
    return await hub.run_blocking(read) if await fetch_opened(hub, absent) else view
