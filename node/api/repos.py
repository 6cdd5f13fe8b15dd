"""`Repos`: creates, joins, follows, forks and deletes whole repos."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from node.api.targets import Targets
from node.authoring.author import Author
from node.authoring.writing import create_repo
from node.care.last_copies import LastCopies
from node.content.merging import Merging
from node.contract.repos import ALL_FILES, FILES_ON_DEMAND
from node.membership.lobbies import find_repo
from node.membership.names import check_name
from node.membership.sharing import Sharing
from node.network.network import Network
from node.observe.repo_list import ListedRepos
from node.observe.standing import Standings
from node.observe.standing_view import Outlook, view_holder
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.sync.kept_parts import change_keeping, find_keepers, keep_contents
from protocol.codec import DecodeError
from protocol.crypto.signing import BadSignature, verify_public_key
from protocol.formats.links import find_kept_ask
from protocol.formats.text import id_text, parse_id
from protocol.ids import PeerId, UserId
from ravel.types.repos import HolderList, RepoFork, RepoKeeping, RepoView
from ravel.types.values import Empty
from storage.blobs.spared import count_old_files
from storage.commits.absent_bodies import OldPosts, count_erased, count_old_posts
from storage.commits.blocks import DamagedBlock
from storage.commits.own_commits import load_author_num
from storage.repos.repos import Repo, posts_from


class Repos:
    """Operations on whole repos. Those that answer with a repo show it as `repo_list` does."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        author: Author,
        targets: Targets,
        sharing: Sharing,
        merging: Merging,
        standings: Standings,
        repo_list: ListedRepos,
    ) -> None:
        self._hub = hub
        self._network = network
        self._author = author
        self._targets = targets
        self._sharing = sharing
        self._merging = merging
        self._standings = standings
        self._list = repo_list
        self._last_copies = LastCopies(hub, standings)

    async def create(self, name: str, founders: Sequence[str] = (), council: int | None = None) -> RepoView:
        """Create a repo with a first branch called `main`, which the users of these ids found too."""
        checked, me = check_name(name), self._author.user
        others = [user for user in dict.fromkeys(map(self._read_user, founders)) if user != me]
        count = 1 + len(others)
        if council is not None and not count < 2 * council <= 2 * count:
            raise ServiceError(
                "bad_request",
                f"{council} of {count} founders are no council: it is more than half of them, and at most all",
                "name the others with their ids: `ravel id` on their node prints it",
            )
        repo = await create_repo(
            self._hub, self._author, checked, "main", is_unique=True, others=others, council=council
        )
        return await self._list.show(repo)

    async def fork(self, repo: str, name: str) -> RepoFork:
        """Create a repo of this user's own that continues another."""
        checked = check_name(name)
        return await self._merging.fork_repo(self._targets.repo(repo), checked)

    async def join(self, invitation: str, follow: bool = False) -> RepoView:
        """Join a repo by an invitation link, or ask to be let in by a link that asks."""
        joined = await self._sharing.join(invitation, follow=follow)
        ask = find_kept_ask(joined.invitation)  # accepted meanwhile, the repo itself is here
        target = None if ask is None else find_repo(self._hub.replica, ask.repo)
        return await self._list.show(target or joined)

    async def follow(self, capability: str) -> RepoView:
        """Read and replicate a repo, or one of its branches, by a read capability."""
        return await self._list.show(await self._sharing.follow(capability))

    async def list_holders(self, repo: str) -> HolderList:
        """List peers that follow a repo, or were seen to hold all of it."""
        target, called = self._targets.repo(repo), self._hub.owners.called
        members = await self._hub.run_blocking(self._find_members, target)
        found = self._standings.holders(target)
        return {"holders": [view_holder(one, called(one.peer), members) for one in found]}

    def _find_members(self, repo: Repo) -> set[str] | None:
        """Return the users who are members; None: that cannot be told."""
        try:
            return {id_text(user) for user in self._hub.replica.members(repo)} or None
        except DamagedBlock:
            return None

    async def show_keeping(self, repo: str, last_days: int | None = None) -> RepoKeeping:
        """Tell which contents of a repo this node keeps, and count older posts: than `last_days`, where these are given.

        Costs O(commits) where posts are counted.
        """
        target = self._targets.repo(repo)
        topics = self._hub.replica.tables.topics_in(target.num)
        keepers = {source.peer: user for topic in topics for source, user in find_keepers(self._hub, topic)}
        return await self._hub.run_blocking(self._keeping, target, last_days, keepers)

    async def set_keeping(
        self,
        repo: str,
        branches: list[str] | None,
        last_days: int | None = None,
        files: Literal["on_demand", "all"] = FILES_ON_DEMAND,
    ) -> RepoKeeping:
        """Keep contents of these branches of a repo alone, or of all, posts of some days, and files. Raises ServiceError."""
        target = self._targets.repo_with_members(repo)
        repo_text, kept = id_text(target.repo_id), None
        if branches is not None:
            kept = {self._targets.branch(f"{repo_text}:{one}").num for one in branches}
        keep = partial(keep_contents, keeps_files=files == ALL_FILES)
        store = partial(keep, self._hub.replica, target, kept, last_days or 0, self._hub.clock_ms())
        await change_keeping(self._hub, [target.num], store)
        return await self.show_keeping(repo_text)

    def _keeping(self, repo: Repo, last_days: int | None, keepers: Mapping[PeerId, UserId]) -> RepoKeeping:
        replica = self._hub.replica
        current = replica.repos.get(repo.num, repo)
        there = [one for one in replica.branches_in(repo.num) if not one.facts.is_root_branch]
        with replica.database.read() as connection:
            absent = sum(count_erased(connection, one.num) for one in there if not one.is_kept)
            before = posts_from(last_days or current.kept_days, self._hub.clock_ms())
            own = load_author_num(connection, self._author.user)
            old = [OldPosts(one.num, own, before) for one in there] if before else []
            counts = [count_old_posts(connection, one) for one in old]
            counts += [count_old_files(connection, replica.packs, one) for one in old]
        members = self._find_members(current) or set()
        kept = [id_text(one.branch_id) for one in there if one.is_kept]
        return {
            "repo": id_text(repo.repo_id),
            "branches": None if current.keeps_all else kept,
            "not_kept": sum(not one.is_kept for one in there),
            "absent": absent,
            "last_days": current.chosen_days or None,
            "bound_days": current.bound_days or None,
            "files": ALL_FILES if current.keeps_files else FILES_ON_DEMAND,
            "older_here": sum(here for here, _ in counts),
            "older_absent": sum(absent for _, absent in counts),
            "keepers": sum(id_text(user) in members for user in keepers.values()),
        }

    async def forget(self, repo: str, accept_loss: bool = False) -> Empty:
        """Delete a repo from this node.

        Raises ServiceError `last_copy` where it may be the last copy, unless `accept_loss`.
        """
        target = self._targets.repo(repo)
        if not target.has_members or accept_loss:
            await self._sharing.forget(target)
            return {}
        outlook = self._standings.outlook(target)
        await self._hub.run_blocking(self._check_elsewhere, target, outlook)
        async with self._last_copies.leaving(target):
            # Once more: it may have been deleted meanwhile, and its number be another's.
            await self._sharing.forget(self._targets.repo(id_text(target.repo_id)))
        return {}

    def _check_elsewhere(self, repo: Repo, outlook: Outlook) -> None:
        """Raise ServiceError `last_copy` if commits or this user's files may be on this node alone."""
        unheld = self._standings.count_unheld(self._author.user, {repo.num: outlook})[repo.num]
        if not self._standings.is_held(repo, outlook):
            raise ServiceError(
                "last_copy",
                "no other node is known to hold all of the repo",
                "`ravel repo sync REPO` waits until one does, and `ravel backup` keeps a copy; "
                "`ravel repo forget REPO --accept-loss` deletes it all the same",
            )
        if unheld.files:
            raise ServiceError(
                "last_copy",
                f"no peer has fetched and no relay keeps {unheld.files} of your files, as far as this node knows",
                "peers fetch a file when they read it (`ravel file get`), relays when they have room "
                "(`ravel peer add --relay HOST:PORT PEER-ID`), and `ravel backup` keeps a copy; "
                "`ravel repo forget REPO --accept-loss` deletes it all the same",
            )

    def _read_user(self, text: str) -> UserId:
        try:
            user = UserId(parse_id(text))
            verify_public_key(user)
        except (DecodeError, BadSignature):
            raise ServiceError(
                "bad_request", f"{text!r} is no user's id", "`ravel id` on their node prints it"
            ) from None
        # Both ids are keys that look alike, and founders stay for good.
        network, peer = self._network, PeerId(user)
        if (
            peer == network.own_key
            or peer in network.known_keys
            or any(peer == one.peer for one in network.peers)
        ):
            raise ServiceError(
                "bad_request",
                "that is the id of a computer, and of no user",
                "`ravel id` there prints the user's, too",
            )
        return user
