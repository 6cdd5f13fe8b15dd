"""User actions on a repo's secrets: list epochs, start a new one, state a fresh key of this user."""

from node.authoring.writing import write_job
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.prekeys import PrekeyKeeper
from node.membership.repo_actions import RepoActions
from node.runtime.errors import ServiceError
from protocol.formats.body import Permission
from protocol.formats.text import id_text
from protocol.ids import CommitId
from ravel.types.repos import EpochList, EpochView, FreshKey, NewEpoch
from storage.repos.repos import Repo
from verifier.epochs import box_holders, find_followed


class KeyRotation(RepoActions):
    """Lists and renews."""

    async def list_epochs(self, repo: str) -> EpochList:
        """List a repo's epochs, causes first."""
        target = self._find_repo(repo)
        return {"epochs": await self._hub.run_blocking(self._epochs, target)}

    async def renew(self, repo: str) -> NewEpoch:
        """Start an epoch though nobody was excluded: who follows by a link, and is no member, reads no further."""
        target = self._find_repo(repo)
        await write_job(self._hub, lambda stored: self._author.start_epoch(target, stored))
        _check_is_here(self._hub.replica, target)
        return {
            "epoch": id_text(self._hub.replica.writing_epoch(target).epoch_id),
            "repo": id_text(target.repo_id),
        }

    async def refresh(self, repo: str) -> FreshKey:
        """State a fresh key of this user, and start an epoch where this user may: a stolen copy opens none that follows."""
        target, replica = self._find_repo(repo), self._hub.replica
        is_admin = (replica.permission(target, self._author.user) or 0) >= Permission.ADMIN

        def state(stored: IngestResult) -> CommitId:
            commit_id = PrekeyKeeper(replica, self._author).state(target, stored)
            if is_admin:
                self._author.start_epoch(target, stored)
            return commit_id

        commit_id = await write_job(self._hub, state)
        _check_is_here(replica, target)
        epoch = id_text(replica.writing_epoch(target).epoch_id) if is_admin else None
        return {"commit": id_text(commit_id), "repo": id_text(target.repo_id), "epoch": epoch}

    def _epochs(self, repo: Repo) -> list[EpochView]:
        replica = self._hub.replica
        current = _check_is_here(replica, repo).epoch_num
        here = replica.tables.held_epochs(repo.num)
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now, operations = membership.now(), membership.operations
            tips = {tip.commit_id for tip in now.epoch_tips()}
            clean = {tip.commit_id for tip in membership.epochs.find_clean(now)}
            return [
                {
                    "epoch": id_text(one.commit_id),
                    "author": id_text(one.author),
                    "author_name": replica.people.name(repo.repo_id, one.author),
                    "follows": [id_text(other.commit_id) for other in find_followed(operations, one)],
                    "readers": len(box_holders(one)),
                    "counts": now.counts(one),
                    "tip": one.commit_id in tips,
                    "clean": one.commit_id in clean,
                    "open": one.started_epoch in here,
                    "current": one.started_epoch in here and here[one.started_epoch].num == current,
                }
                for one in operations.epochs
            ]


def _check_is_here(replica: Replica, repo: Repo) -> Repo:
    """Return a repo as it is now. Raises ServiceError `not_found` if it was deleted meanwhile."""
    current = replica.repos.get(repo.num)
    if current is None:
        raise ServiceError("not_found", "the repo was forgotten meanwhile")
    return current
