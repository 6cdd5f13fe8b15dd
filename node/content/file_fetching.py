"""Fetches contents of files before they are opened, in repos that keep all files: of branches and ages that are kept.

A file of which no connected peer has all is tried again. Where the disk is low, or the store near its bound, only what is
opened comes.
"""

import shutil
from collections import deque
from typing import Final

from node.content.files import FileService
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.sync.kept_parts import keep_looking
from protocol.ids import ObjectId
from storage.blobs.spared import load_new_files
from storage.repos.repos import Branch, posts_from

LOOK_SECONDS: Final = 30.0
"""Seconds between two looks: a look costs a query for each branch of such a repo, and what is tried again."""
FREE_SIZE_MIN: Final = 1 << 30
"""Bytes of the disk that stay free, for what this user writes: `ravel doctor` warns below it."""
RETRIED_MAX: Final = 64
"""Files of a branch that one look tries again: some 0.1 s where nobody has them."""
ABSENT_MAX: Final = 65_536
"""Files of a branch that nobody had and that are remembered, some 5 MB: of more, the first that were tried come
again at the next start."""
_LOADED_AT_ONCE: Final = 256


class FileFetcher:
    """Goes through the files of each branch once, in the order of their coming; again through those that it did not get."""

    def __init__(self, hub: Hub, files: FileService) -> None:
        self._hub = hub
        self._files = files
        self._upto: dict[int, int] = {}  # by branch: number of the last file that was tried
        self._absent: dict[int, deque[ObjectId]] = {}
        self._rules: dict[
            int, int
        ] = {}  # by branch: how often its repo's rule had changed when it was gone through

    async def run(self) -> None:
        """Look until cancelled: now and then, and after each change of what is kept."""
        await keep_looking(self._hub, self.look, LOOK_SECONDS)

    async def look(self) -> None:
        """Fetch what is new, and try some of the rest again, while anybody is there. Raises StorageError."""
        if not self._hub.sources:
            return
        replica, changed = self._hub.replica, self._hub.proofs.changed
        wanted = {
            branch.num: branch
            for repo in list(replica.repos.values())
            if repo.keeps_files
            for branch in replica.branches_in(repo.num)
            if branch.is_kept and not branch.facts.is_root_branch
        }
        for table in (self._upto, self._absent, self._rules):
            for num in table.keys() - wanted.keys():
                del table[num]
        for branch in wanted.values():
            # Files that were passed over may be kept now. Of other repos all would be opened again for nothing.
            if self._rules.get(branch.num, 0) != changed[branch.repo_num]:
                self._upto.pop(branch.num, None)
                self._rules[branch.num] = changed[branch.repo_num]
            absent = self._absent.setdefault(branch.num, deque(maxlen=ABSENT_MAX))
            if not self._upto.get(branch.num):
                absent.clear()  # all are tried
            for _ in range(min(len(absent), RETRIED_MAX)):
                await self._try(branch, absent.popleft())
            while self._hub.sources and (ids := await self._hub.run_blocking(self._load_next, branch)):
                for object_id in ids:
                    await self._try(branch, object_id)

    async def _try(self, branch: Branch, object_id: ObjectId) -> None:
        """Fetch a file, or note that it is absent. Raises StorageError."""
        repo = self._hub.replica.repos.get(branch.repo_num)
        if repo is None or not repo.keeps_files:
            return
        is_done = False
        try:
            has_room = await self._hub.run_blocking(self._has_room)
            if has_room and self._hub.sources:
                is_done = await self._files.fetch(branch, object_id, self._has_room)
        except ServiceError as error:
            is_done = error.code != "incomplete"  # nobody can read it, or it was removed meanwhile
        finally:
            if not is_done:
                self._absent[branch.num].append(object_id)

    # --- in threads ---

    def _has_room(self) -> bool:
        replica = self._hub.replica
        is_disk_low = shutil.disk_usage(replica.database.folder).free <= FREE_SIZE_MIN
        return not is_disk_low and self._hub.bound.has_room(replica)

    def _load_next(self, branch: Branch) -> list[ObjectId]:
        """Load the next contents that are to be here; none of a repo that was deleted meanwhile."""
        repo, after = self._hub.replica.repos.get(branch.repo_num), self._upto.get(branch.num, 0)
        since = 0 if repo is None else posts_from(repo.kept_days, self._hub.clock_ms())
        with self._hub.replica.database.read() as connection:
            rows = load_new_files(connection, branch.num, since, after, _LOADED_AT_ONCE)
        if rows:
            self._upto[branch.num] = rows[-1][0]
        return list(dict.fromkeys(object_id for _, object_id in rows))
