"""How services write: async, by way of the hub, so that requests share a transaction (`node.authoring.write_group`).

`Author` works in threads and knows no hub.
"""

from collections.abc import Sequence

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.write_group import AfterWrite, Plan, WriteRequest, as_draft, nothing_more
from node.sync.hub import Hub
from protocol.body import Body
from storage.repos.repos import Branch


async def write_commit(hub: Hub, author: Author, branch: Branch, draft: Draft | Body) -> WrittenCommit:
    """Write one commit on the branch's current topic; durable and told when it returns. A body alone goes on its heads.

    Raises ServiceError where the rules refuse it, or the secrets to write with are not here; StorageError.
    """
    [written] = await write_commits(hub, author, branch, [as_draft(draft)])
    return written


async def write_commits(
    hub: Hub,
    author: Author,
    branch: Branch,
    drafts: Sequence[Draft] | Plan,
    after: AfterWrite = nothing_more,
    *,
    files_in: int | None = None,
) -> list[WrittenCommit]:
    """Write several commits, all or none. Raises as `write_commit`, and as a plan raises. The rest is of WriteRequest."""
    return await hub.write_grouped(author.write_group, WriteRequest(branch, drafts, after, files_in))
