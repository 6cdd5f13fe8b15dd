"""Inbox of a repo: comments by non-writers, and offered branches (pull requests).

An offer is a root branch commit with a link to a branch of the offerer's own. Once an admin has accepted it, every node
that follows the repo follows that branch too, from whichever peer has it; addresses in the link are not dialed. Comments
are shown beside the document; commits are merged by a member who may write (`node.content.merging`).
"""

from collections.abc import Callable, Mapping
from hmac import compare_digest
from typing import Final

from msgspec.structs import replace

from node.authoring.author import Author
from node.authoring.writing import create_branch, create_repo, write_commit
from node.content.merging import MergePlan, run_merge
from node.contract.branches import MergeResult
from node.contract.commits import ContentFields
from node.contract.inbox import CommentList, CommentView, OfferAnswer, OfferList, OfferMade, OfferView
from node.ingest.replica import load_blocks_of, open_stored
from node.membership.offers import COMMENTS_REPO, decode_link, name_offered
from node.membership.repo_actions import RepoActions
from node.membership.sharing import Sharing
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.sync.hub import Hub
from node.timelines.commit_fields import stored_fields
from node.timelines.post_views import show_changes
from protocol.codec import encode
from protocol.crypto.hashing import branch_read_key, branch_secret
from protocol.crypto.keys import ReadKey
from protocol.formats.body import Answer, Merge, Offer, Permission, kind_name
from protocol.formats.content import Post
from protocol.formats.text import id_text
from protocol.ids import BranchId, CommitId, TopicKey, UserId
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.limits.peers import OFFERS_FOLLOWED_MAX
from protocol.limits.users import MERGES_LOOKED_MAX
from storage.commits.commits import TimelineRow, load_last_of_kinds, load_timeline
from storage.commits.heads import load_heads
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo, load_topic_counts
from verifier.offers import FoundOffer

_STATUS: Final = {None: "open", True: "accepted", False: "refused"}


class Inbox(RepoActions):
    """Offers, lists and answers."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        sharing: Sharing,
        find_repo: Callable[[str], Repo],
        find_branch: Callable[[str], Branch],
    ) -> None:
        super().__init__(hub, author, find_repo, find_branch)
        self._sharing = sharing

    async def offer(self, source: str, branch: str, note: str, *, pulls: bool) -> OfferMade:
        """Offer a branch of this user, `source`, to the inbox of the repo of `branch`."""
        own, target = self._find_branch(source), self._find_branch(branch)
        if own.repo_num == target.repo_num:
            raise ServiceError(
                "bad_request", "both are branches of one repo", "`ravel branch merge` merges within a repo"
            )
        return await self._offer(own, target, note, pulls=pulls)

    async def comment(self, branch: str, text: str) -> OfferAnswer:
        """Write a comment on a document in a branch of one's own, and offer that branch if it was not yet."""
        target = self._find_branch(branch)
        repo = self._hub.replica.repos[target.repo_num]
        if await self._hub.run_blocking(self._hub.replica.permission, repo, self._author.user) is None:
            raise ServiceError("not_permitted", "only members comment", "ask for an invitation to read")
        own = await self._own_branch(target)
        await self._sharing.state_link(own)
        self._sharing.capability_of(own)  # before anything is written
        written = await write_commit(self._hub, self._author, own, Post(text))
        offers = await self._hub.run_blocking(self._offers, repo)
        mine = [one for one in offers if one.operation.author == self._author.user and not one.body.pulls]
        topic = self._link_topic(own)
        known = [one for one in mine if _opens(one.body, topic) and one.is_accepted is not False]
        offer: OfferMade = (
            {"offer": id_text(known[-1].operation.commit_id), "status": _STATUS[known[-1].is_accepted]}
            if known
            else await self._offer(own, target, "", pulls=False)
        )
        return {**offer, "commit": id_text(written.commit_id)}

    async def list_offers(self, repo: str) -> OfferList:
        """List the offers to a repo, and their answers."""
        target = self._find_repo(repo)
        return {"offers": await self._hub.run_blocking(self._views, target)}

    def count_waiting(self, repo: Repo) -> int:
        """Count the offers that wait for an answer of this user."""
        me = self._author.user
        if (self._hub.replica.permission(repo, me) or 0) < Permission.ADMIN:
            return 0
        return sum(one.is_accepted is None and one.operation.author != me for one in self._offers(repo))

    async def answer(self, repo: str, offer: str, *, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it."""
        target = self._find_repo(repo)
        found = await self._find_offer(target, offer)
        root = self._hub.replica.root_branch(target)
        body = Answer(found.operation.commit_id, accepts)
        written = await write_commit(self._hub, self._author, root, body)
        return {
            "commit": id_text(written.commit_id),
            "offer": id_text(found.operation.commit_id),
            "status": _STATUS[accepts],
        }

    async def merge(self, repo: str, offer: str) -> MergeResult:
        """Write again, as this user, what an accepted offer has and its document has not."""
        of_repo = self._find_repo(repo)
        found = await self._find_offer(of_repo, offer)
        if not found.body.pulls or found.is_accepted is not True:
            raise ServiceError(
                "bad_request", "that offer is not one of commits that was accepted", "`ravel inbox accept`"
            )
        source = await self._hub.run_blocking(self._offered_branch, found.body)
        if source is None or not source.commit_count:
            raise ServiceError(
                "incomplete",
                "nothing of the offered branch is here yet",
                "it comes from peers that follow it",
            )
        here = self._hub.replica.branches_in(of_repo.num)
        targets = [one for one in here if one.branch_id == found.body.branch]
        if not targets:
            raise ServiceError("incomplete", "the branch that the offer is for is not here yet")
        target = targets[0]
        return await run_merge(self._hub, self._author, MergePlan(self._hub.replica, source, target))

    async def comments(self, branch: str, limit: int) -> CommentList:
        """List the latest accepted comments on a document, by the times that their authors state."""
        target = self._find_branch(branch)
        return {"items": await self._hub.run_blocking(self._comments, target, limit)}

    # --- steps ---

    async def _offer(self, own: Branch, target: Branch, note: str, *, pulls: bool) -> OfferMade:
        await self._sharing.state_link(own)
        capability = self._sharing.capability_of(own)
        if pulls:
            fork = self._hub.replica.repos[own.repo_num].name
            capability = replace(capability, name=name_offered(fork, own.name))
        link = encode(capability)
        root = self._hub.replica.root_branch(self._hub.replica.repos[target.repo_num])
        body = Offer(target.branch_id, pulls, note, link)
        written = await write_commit(self._hub, self._author, root, body)
        return {"offer": id_text(written.commit_id), "status": _STATUS[None]}

    async def _own_branch(self, target: Branch) -> Branch:
        """Return this user's branch of comments on a document, made when first needed."""
        replica, run = self._hub.replica, self._hub.run_blocking
        name = f"on {id_text(target.branch_id)}"
        owned = []
        for one in replica.repos.values():
            if one.name == COMMENTS_REPO and one.has_members:
                # Nobody else's, and shared with nobody: a comment is for those who read the document.
                members = await run(replica.members, one)
                owned += [one] if members == {self._author.user: Permission.OWNER} else []
        if not owned:
            owned = [await create_repo(self._hub, self._author, COMMENTS_REPO)]
        for branch in replica.branches_in(owned[0].num):
            if branch.name == name:
                return branch
        return await create_branch(self._hub, self._author, owned[0], name)

    async def _find_offer(self, repo: Repo, text: str) -> FoundOffer:
        offers = await self._hub.run_blocking(self._offers, repo)
        return resolve("offer", text, [(one.operation.commit_id, "", one) for one in offers])

    def _offers(self, repo: Repo) -> list[FoundOffer]:
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            return membership.offers.find(membership.operations, membership.now())

    def _offered_branch(self, offer: Offer) -> Branch | None:
        """Find the branch that an offer opens, where this node follows it: with the very secrets of the link, all of it."""
        capability, tables = decode_link(offer), self._hub.replica.read_tables()
        opened = (
            []
            if capability is None
            else [
                topic
                for channel in capability.channels
                if (topic := tables.by_topic.get(channel.topic)) is not None
                and topic.branch_num is not None
                and topic.branch_id == capability.branch
                and compare_digest(_read_key(topic), branch_read_key(channel.branch_secret))
            ]
        )
        if not opened or opened[0].branch_num is None:
            return None
        links = {one.num for one in tables.links_of(opened[0].branch_num)}
        with self._hub.replica.database.read() as connection:
            used = {num for num, count in load_topic_counts(connection, links).items() if count}
        is_whole = used <= {one.num for one in opened}
        return tables.branches[opened[0].branch_num] if is_whole else None

    def _link_topic(self, branch: Branch) -> TopicKey | None:
        """Return the topic by which a branch of this user is followed by itself now."""
        tables = self._hub.replica.tables
        epoch_num = tables.repos[branch.repo_num].epoch_num
        links = tables.links_of(branch.num)
        return next((one.topic for one in links if epoch_num in [epoch.num for epoch in one.epochs]), None)

    def _views(self, repo: Repo) -> list[OfferView]:
        views: list[OfferView] = []
        merged: dict[BranchId, Mapping[BranchId, set[CommitId]]] = {}  # by document
        for offer in self._offers(repo):
            one, body = offer.operation, offer.body
            branch = self._offered_branch(body)
            heads: set[CommitId] = set()
            if branch is not None and body.pulls and offer.is_accepted:
                heads = self._heads(branch)
                if body.branch not in merged:
                    merged[body.branch] = self._merged(repo, body.branch)
            views.append(
                {
                    "offer": id_text(one.commit_id),
                    "author": id_text(one.author),
                    "author_name": self._hub.replica.people.name(repo.repo_id, one.author),
                    "branch": id_text(body.branch),
                    "kind": "pull" if body.pulls else "comment",
                    "note": body.note,
                    "status": _STATUS[offer.is_accepted],
                    "readable": decode_link(body) is not None,
                    "commits": 0 if branch is None else max(branch.commit_count - 1, 0),
                    "merged": bool(heads)
                    and branch is not None
                    and heads <= merged[body.branch].get(branch.branch_id, set()),
                }
            )
        return views

    def _heads(self, branch: Branch) -> set[CommitId]:
        with self._hub.replica.database.read() as connection:
            return {raw for raw, _ in load_heads(connection, branch.num, ACK_COUNT_MAX)}

    def _merged(self, repo: Repo, document: BranchId) -> dict[BranchId, set[CommitId]]:
        """Map branches to the commits up to which the last merges of a document took them."""
        replica = self._hub.replica
        here = replica.branches_in(repo.num)
        found: dict[BranchId, set[CommitId]] = {}
        for target in [one for one in here if one.branch_id == document]:
            with replica.database.read() as connection:
                rows = load_last_of_kinds(connection, target.num, [kind_name(Merge)], MERGES_LOOKED_MAX)
                blocks = load_blocks_of(connection, rows)
            for row in rows:
                _, body = open_stored(replica, row, blocks[row.num])
                if isinstance(body, Merge):
                    found.setdefault(body.branch, set()).update(body.commits)
        return found

    def _comments(self, branch: Branch, limit: int) -> list[CommentView]:
        replica = self._hub.replica
        accepted = [
            one
            for one in self._offers(replica.repos[branch.repo_num])
            if one.is_accepted and not one.body.pulls and one.body.branch == branch.branch_id
        ]
        items: list[tuple[int, int, CommitId, CommentView]] = []  # by time, then rank
        # An author may have offered one branch in several epochs of it.
        shown: set[tuple[int, UserId]] = set()
        for offer in accepted[-OFFERS_FOLLOWED_MAX:]:
            source = self._offered_branch(offer.body)
            if source is None or (source.num, offer.operation.author) in shown:
                continue
            shown.add((source.num, offer.operation.author))
            with replica.database.read() as connection:
                last = max(source.commit_count - source.void_count - limit, 0)
                rows = load_timeline(connection, source.num, last, limit)
                blocks = load_blocks_of(connection, rows)
                pairs: list[tuple[TimelineRow, ContentFields]] = []
                for row in rows:
                    if row.body_kind == "branch-root" or row.author != offer.operation.author:
                        continue
                    item: CommentView = {
                        "commit": id_text(row.commit_id),
                        "offer": id_text(offer.operation.commit_id),
                        "author": id_text(row.author),
                        "author_name": replica.people.name(branch.facts.repo_id, row.author),
                        "kind": row.body_kind,
                        **stored_fields(replica, row, blocks[row.num]),
                    }
                    items.append((row.timestamp, row.rank, row.commit_id, item))
                    pairs.append((row, item))
                show_changes(connection, replica, pairs)
        return [item for *_, item in sorted(items, key=lambda one: one[:3])[-limit:]]


def _read_key(link: Topic) -> ReadKey:
    """Return the key that hides the keys of commits on a link topic."""
    if link.channel is not None:
        return branch_read_key(link.channel.branch_secret)
    assert link.branch_id is not None, "it carries one branch"
    return branch_read_key(branch_secret(link.epochs[0].key, link.branch_id))


def _opens(offer: Offer, topic: TopicKey | None) -> bool:
    """Return True if an offer's link opens a branch as it is written now, on this topic."""
    capability = decode_link(offer)
    return capability is not None and any(one.topic == topic for one in capability.channels)
