"""Async writes for services: through the hub, so that requests share a transaction (`node.authoring.write_queue`).

`Author` works in threads and knows no hub. Everything that was stored is announced, even if a later step failed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.write_queue import AfterWrite, Plan, WriteRequest, as_draft, nothing_more
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.body import Body, BranchFork
from protocol.ids import UserId
from storage.repos.repos import Branch, Repo

T = TypeVar("T")


async def write_commit(hub: Hub, author: Author, branch: Branch, draft: Draft | Body) -> WrittenCommit:
    """Write one commit on the branch's current topic; durable and announced when it returns. A body alone goes on its heads.

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
    files_epoch: int | None = None,
) -> list[WrittenCommit]:
    """Write several commits, all or none. Raises as `write_commit`, and as a plan raises. The rest is of WriteRequest."""
    return await hub.write_grouped(author.queue.write_group, WriteRequest(branch, drafts, after, files_epoch))


async def write_each(
    hub: Hub, author: Author, branch: Branch, bodies: Sequence[Body]
) -> list[WrittenCommit | Exception]:
    """Write commits one after the other, each whole or not at all; returns each, or the error that `write_commit` raises.

    They are one request, which takes a tenth less than one for each, unless one of them is refused: then nothing of it was
    written. Raises StorageError.
    """
    drafts = [as_draft(body) for body in bodies]
    try:
        return [*await write_commits(hub, author, branch, drafts)]
    except ServiceError as error:
        if len(drafts) == 1:
            return [error]
    requests = [WriteRequest(branch, [draft]) for draft in drafts]
    outcomes = await hub.write_each(author.queue.write_group, requests)
    return [outcome if isinstance(outcome, Exception) else outcome[0] for outcome in outcomes]


async def write_job(hub: Hub, job: Callable[[IngestResult], T]) -> T:
    """Run a writing job in a thread, and announce what it added to its argument, even if it raises."""
    stored = IngestResult()
    try:
        return await hub.write(job, stored)
    finally:
        hub.announce(stored)


async def create_repo(
    hub: Hub,
    author: Author,
    name: str,
    branch: str = "",
    *,
    is_unique: bool = False,
    others: Sequence[UserId] = (),
    council: int | None = None,
) -> Repo:
    """Create a repo and announce it. Arguments and exceptions are those of `Author.create_repo`."""
    create = partial(
        author.founding.create_repo, name, branch, is_unique=is_unique, others=others, council=council
    )
    repo, ingested = await hub.write(create)
    hub.announce(ingested)
    return repo


async def create_branch(
    hub: Hub,
    author: Author,
    repo: Repo,
    name: str,
    first: BranchFork | None = None,
    *,
    is_unique: bool = False,
) -> Branch:
    """Add a branch and announce it. Arguments and exceptions are those of `Author.create_branch`."""
    return await write_job(
        hub,
        lambda stored: author.founding.create_branch(repo, name, first, is_unique=is_unique, stored=stored)[
            0
        ],
    )
