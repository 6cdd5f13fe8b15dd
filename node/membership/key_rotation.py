"""User actions on a repo's keys: list epochs, start a new epoch, renew a branch's keys, re-send keys."""

from node.authoring.epoch_setup import topic_in
from node.contract.branches import BranchRenewal
from node.contract.repos import EpochList, EpochView, NewEpoch, RekeyedMember
from node.ingest.ingest_result import IngestResult
from node.membership.epoch_secrets import EpochKeeper
from node.membership.members import find_user
from node.membership.repo_actions import RepoActions
from node.runtime.errors import READ_ONLY_ADVICE, ServiceError
from protocol.body import BranchRenew
from protocol.epochs import EpochInit
from protocol.text import id_text
from storage.repos.repos import Branch, Repo
from verifier.epochs import find_readers


class KeyRotation(RepoActions):
    """Lists and renews."""

    async def list_epochs(self, repo: str) -> EpochList:
        """A repo's epochs, causes first."""
        target = self._find_repo(repo)
        return {"epochs": await self._hub.run_blocking(self._epochs, target)}

    async def renew(self, repo: str) -> NewEpoch:
        """Start an epoch though nobody was excluded: who follows by a link, and is no member, reads no further."""
        target = self._find_repo(repo)
        self._hub.announce(await self._hub.write(self._author.start_epoch, target))
        return {
            "epoch": id_text(self._hub.replica.writing_epoch(target).epoch_id),
            "repo": id_text(target.repo_id),
        }

    async def renew_branch(self, branch: str) -> BranchRenewal:
        """Give a branch new secrets: a link to it opens the past and nothing new."""
        target = self._find_branch(branch)
        ingested = await self._hub.write(self._renew_branch, target)
        self._hub.announce(ingested)
        current = self._hub.replica.branches[target.num]
        return {"branch": id_text(target.branch_id), "generation": current.generation}

    async def rekey(self, repo: str, user: str) -> RekeyedMember:
        """Seal the current epoch's secrets for a member again, who could not open what was sealed before."""
        target = self._find_repo(repo)
        key = await self._hub.run_blocking(find_user, user, self._hub.replica, target)
        keeper = EpochKeeper(self._hub.replica, self._author)
        self._hub.announce(await self._hub.write(keeper.hand_to, target, key))
        return {"user": id_text(key), "repo": id_text(target.repo_id)}

    def _renew_branch(self, branch: Branch) -> IngestResult:
        replica = self._hub.replica
        repo = replica.repos[branch.repo_num]
        self._author.begin(repo)
        epoch = replica.writing_epoch(repo)
        if epoch.write_secret is None:
            raise ServiceError(
                "not_permitted", "this node may read the branch and not write to it", READ_ONLY_ADVICE
            )
        with replica.membership_lock:
            said = [
                one.body.generation
                for one in replica.membership(repo.repo_id).operations.renewals_of(branch.branch_id)
                if isinstance(one.body, BranchRenew) and one.epoch == epoch.epoch_id
            ]
        generation = 1 + max(said, default=0)
        topic = topic_in(repo, epoch.read_secret, epoch.write_secret, branch.branch_id, generation)
        body = BranchRenew(branch.branch_id, generation, topic)
        return self._author.write(replica.root_branch(repo), body)[1]

    def _epochs(self, repo: Repo) -> list[EpochView]:
        replica = self._hub.replica
        current = replica.repos[repo.num].epoch_num
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            here = replica.tables.epochs_of(replica.repos[repo.num], membership)
            now, operations = membership.now(), membership.operations
            readers = find_readers(operations)
            tips = {tip.commit_id for tip in now.epoch_tips()}
            return [
                {
                    "epoch": id_text(one.commit_id),
                    "author": id_text(one.author),
                    "author_name": replica.people.name(repo.repo_id, one.author),
                    "follows": [
                        id_text(raw) for raw in (one.body.previous if isinstance(one.body, EpochInit) else ())
                    ],
                    "readers": len(readers[one.started_epoch]),
                    "counts": now.counts(one),
                    "tip": one.commit_id in tips,
                    "open": one.started_epoch in here,
                    "current": one.started_epoch in here and here[one.started_epoch].num == current,
                }
                for one in operations.epochs
            ]
