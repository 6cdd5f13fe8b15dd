"""Inbox of a repo: offered branches, with commits (pull requests) or comments (`comments`).

An offer is a root branch commit with a link to a branch of the offerer's own. Once an admin has accepted it, every node
that follows the repo follows that branch too, from whichever peer has it; addresses in the link are not dialed. Offered
commits are merged by a member who may write (`node.content.merging`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from hmac import compare_digest
from typing import Final

from msgspec.structs import replace

from node.authoring.author import Author
from node.authoring.writing import write_commit
from node.content.merge_changes import MergeChanges
from node.content.merging import MergePlan, run_merge
from node.contract.inbox import OFFERED_AUTHORS_SHOWN_MAX, OFFERED_POSTS_SHOWN_MAX
from node.ingest.replica import load_blocks_of, open_stored
from node.membership.offers import (
    AcceptedOffer,
    decode_link,
    follow_offers,
    load_stripped,
    name_offered,
    split_answer,
)
from node.membership.repo_actions import RepoActions
from node.membership.sharing import Sharing
from node.membership.stated_comments import StatedComments
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.sync.hub import Hub
from protocol.codec import encode
from protocol.crypto.hashing import branch_read_key, branch_secret
from protocol.crypto.keys import ReadKey
from protocol.formats.body import Answer, Merge, Offer, Permission, UnknownBody, content_of, kind_name
from protocol.formats.content import Post
from protocol.formats.text import id_text
from protocol.ids import BranchId, CommitId, TopicKey, UserId
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.limits.users import MERGES_LOOKED_MAX
from ravel.types.branches import MergeResult
from ravel.types.inbox import (
    OfferAnswer,
    OfferedDocument,
    OfferedPost,
    OfferList,
    OfferMade,
    OfferPreview,
    OfferView,
)
from ravel.types.values import Empty
from storage.commits.commits import load_last_of_kinds
from storage.commits.heads import load_heads
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo, load_topic_counts
from verifier.offers import FoundOffer

STATUS: Final = {None: "open", True: "accepted", False: "refused"}


class Inbox(RepoActions):
    """Offers, lists and answers."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        sharing: Sharing,
        stated: StatedComments,
        changes: MergeChanges,
        find_repo: Callable[[str], Repo],
        find_branch: Callable[[str], Branch],
    ) -> None:
        super().__init__(hub, author, find_repo, find_branch)
        self._sharing = sharing
        self._stated = stated
        self._changes = changes

    async def offer(self, source: str, branch: str, note: str, *, pulls: bool) -> OfferMade:
        """Offer a branch of this user, `source`, to the inbox of the repo of `branch`."""
        own, target = self._find_branch(source), self._find_branch(branch)
        if own.repo_num == target.repo_num:
            raise ServiceError(
                "bad_request", "both are branches of one repo", "`ravel branch merge` merges within a repo"
            )
        return await self.offer_branch(own, target, note, pulls=pulls)

    async def list_offers(self, repo: str, limit: int, status: str) -> OfferList:
        """List the latest offers to a repo, and their answers. Costs O(offers of the repo)."""
        target = self._find_repo(repo)
        if status and status not in STATUS.values():
            raise ServiceError("bad_request", f"no status of offers: {status!r}", "open, accepted or refused")
        return {"offers": await self._hub.run_blocking(self._views, target, limit, status)}

    def count_waiting(self, repo: Repo) -> int:
        """Count the offers that wait for an answer of this user."""
        me = self._author.user
        if (self._hub.replica.permission(repo, me) or 0) < Permission.ADMIN:
            return 0
        return sum(one.is_accepted is None and one.operation.author != me for one in self.find_offers(repo))

    async def answer(self, repo: str, offer: str, *, accepts: bool) -> OfferAnswer:
        """Accept an offer, refuse it, or withdraw it. Where that is so already, nothing more is written."""
        target = self._find_repo(repo)
        found = await self._find_offer(target, offer)
        answer = found.decided_by if found.is_accepted is accepts else None
        if answer is None:
            root = self._hub.replica.root_branch(target)
            body = Answer(found.operation.commit_id, accepts)
            answer = (await write_commit(self._hub, self._author, root, body)).commit_id
        if not found.body.pulls:
            await self._stated.keep_level(target, AcceptedOffer.of(found))
        return {
            "commit": id_text(answer),
            "offer": id_text(found.operation.commit_id),
            "status": STATUS[accepts],
        }

    async def fetch(self, repo: str, offer: str) -> Empty:
        """Have this node alone follow a branch with offered commits, to look at it before it is answered. Costs O(1)."""
        of_repo = self._find_repo(repo)
        found = await self._find_pull(of_repo, offer)
        if await self._hub.write(follow_offers, self._hub.replica, of_repo, [AcceptedOffer.of(found)]):
            self._hub.topics_changed()
        return {}

    async def preview(self, repo: str, offer: str) -> OfferPreview:
        """Show what `merge` would write now, or would once it is accepted. Costs O(commits of both branches)."""
        of_repo = self._find_repo(repo)
        found, merge = await self._plan(of_repo, await self._find_pull(of_repo, offer))
        await self._hub.run_blocking(self._plan_only, merge)
        documents = await self._changes.find(merge)
        return await self._hub.run_blocking(self._look, found, merge, documents)

    async def merge(self, repo: str, offer: str) -> MergeResult:
        """Write again, as this user, what an accepted offer has and its document has not."""
        of_repo = self._find_repo(repo)
        found = await self._find_pull(of_repo, offer)
        if found.is_accepted is not True:
            ids = f"{id_text(of_repo.repo_id)[:12]} {id_text(found.operation.commit_id)[:12]}"
            raise ServiceError(
                "bad_request",
                f"the offer is {STATUS[found.is_accepted]}: it is merged once an admin has accepted it",
                f"an admin runs `ravel inbox accept {ids}`",
            )
        _, merge = await self._plan(of_repo, found)
        return await run_merge(self._hub, self._author, merge)

    # --- for comments ---

    async def offer_branch(self, own: Branch, target: Branch, note: str, *, pulls: bool) -> OfferMade:
        """Offer a branch of this user to the readers of a document."""
        await self._sharing.state_link(own)
        capability = self._sharing.capability_of(own)
        if pulls:
            fork = self._hub.replica.repos[own.repo_num].name
            capability = replace(capability, name=name_offered(fork, own.name))
        link = encode(capability)
        root = self._hub.replica.root_branch(self._hub.replica.repos[target.repo_num])
        body = Offer(target.branch_id, pulls, note, link)
        written = await write_commit(self._hub, self._author, root, body)
        return {"offer": id_text(written.commit_id), "status": STATUS[None]}

    def find_offers(self, repo: Repo) -> list[FoundOffer]:
        """Find the offers that count, in canonical order: the same on all nodes."""
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            found = membership.offers.find(membership.operations, membership.now())
        return load_stripped(self._hub.replica, found)

    def offered_branch(self, offer: Offer) -> Branch | None:
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

    def link_topic(self, branch: Branch) -> TopicKey | None:
        """Return the topic by which a branch of this user is followed by itself now."""
        tables = self._hub.replica.tables
        epoch_num = tables.repos[branch.repo_num].epoch_num
        links = tables.links_of(branch.num)
        return next((one.topic for one in links if epoch_num in [epoch.num for epoch in one.epochs]), None)

    # --- steps ---

    async def _find_pull(self, of_repo: Repo, offer: str) -> FoundOffer:
        """Find an offer of commits. Raises ServiceError."""
        found = await self._find_offer(of_repo, offer)
        if not found.body.pulls:
            raise ServiceError(
                "bad_request",
                "that offer is a comment, and only commits are merged",
                "it is shown below its document once it is accepted",
            )
        return found

    async def _plan(self, of_repo: Repo, found: FoundOffer) -> tuple[FoundOffer, MergePlan]:
        """Plan the merge of an offer of commits. Raises ServiceError."""
        source = await self._hub.run_blocking(self.offered_branch, found.body)
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
        return found, MergePlan(self._hub.replica, source, targets[0])

    def _plan_only(self, merge: MergePlan) -> None:
        with self._hub.replica.database.read() as connection:
            merge.plan(connection)

    def _look(self, found: FoundOffer, merge: MergePlan, documents: list[OfferedDocument]) -> OfferPreview:
        posts: list[OfferedPost] = []
        kinds: Counter[str] = Counter()
        authors: Counter[UserId] = Counter()
        name = partial(self._hub.replica.people.name, self._hub.replica.repos[merge.target.repo_num].repo_id)
        for _, carried in merge.carried_bodies:
            body = content_of(carried)
            authors[carried.author] += 1
            kinds["unknown" if isinstance(body, UnknownBody) else kind_name(type(body))] += 1
            if isinstance(body, Post) and len(posts) < OFFERED_POSTS_SHOWN_MAX:
                posts.append(
                    {
                        "author": id_text(carried.author),
                        "author_name": name(carried.author),
                        "time": carried.time // 1000,
                        "text": body.text,
                    }
                )
        return {
            "offer": id_text(found.operation.commit_id),
            "carried": merge.carried,
            "kinds": [{"kind": kind, "count": count} for kind, count in sorted(kinds.items())],
            "authors": [
                {"author": id_text(author), "author_name": name(author), "count": count}
                for author, count in authors.most_common(OFFERED_AUTHORS_SHOWN_MAX)
            ],
            "posts": posts,
            "documents": documents,
            "left": merge.left,
            "files_left": merge.files_left,
        }

    async def _find_offer(self, repo: Repo, text: str) -> FoundOffer:
        offers = await self._hub.run_blocking(self.find_offers, repo)
        return resolve("offer", text, [(one.operation.commit_id, "", one) for one in offers])

    def _views(self, repo: Repo, limit: int, status: str) -> list[OfferView]:
        me = self._author.user
        is_admin = (self._hub.replica.permission(repo, me) or 0) >= Permission.ADMIN
        found = [one for one in self.find_offers(repo) if not status or STATUS[one.is_accepted] == status]
        views: list[OfferView] = []
        merged: dict[BranchId, Mapping[BranchId, set[CommitId]]] = {}  # by document
        for offer in found[-limit:]:
            one, body = offer.operation, offer.body
            branch = self.offered_branch(body)
            heads: set[CommitId] = set()
            # A comment that nobody accepted is for those who decide, and for its author.
            is_shown = body.pulls or offer.is_accepted or is_admin or one.author == me
            note, answers = (body.note, "") if body.pulls else split_answer(body.note)
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
                    "kind": "pull" if body.pulls else "comment" if body.note else "trust",
                    "note": note if is_shown else "",
                    "answers": answers if is_shown else "",
                    "status": STATUS[offer.is_accepted],
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


def _read_key(link: Topic) -> ReadKey:
    """Return the key that hides the keys of commits on a link topic."""
    if link.channel is not None:
        return branch_read_key(link.channel.branch_secret)
    assert link.branch_id is not None, "it carries one branch"
    return branch_read_key(branch_secret(link.epochs[0].key, link.branch_id))


def opens(offer: Offer, topic: TopicKey | None) -> bool:
    """Return True if an offer's link opens a branch as it is written now, on this topic."""
    capability = decode_link(offer)
    return capability is not None and any(one.topic == topic for one in capability.channels)
