"""Comments on documents: each is a branch of its author's own, and is shown as it was read by who accepted it.

The note of a comment's offer is its text, so an admin reads it before deciding, and no branch of a stranger is followed for
that. All nodes show an accepted comment as the last note that was accepted: an edit is offered again, and what else its
author writes into the branch shows nothing. Deleting needs nobody: it withdraws the offers. An offer without a note asks for
*trust*: once it is accepted, all that its author posts in that branch is shown at once.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from node.authoring.author import Author
from node.authoring.writing import create_branch, create_repo, write_commit
from node.content.documents import UNREADABLE, Documents
from node.content.posts import Posts, check_said
from node.ingest.replica import Replica, load_blocks_of
from node.membership.devices import find_person
from node.membership.inbox import STATUS, Inbox, opens
from node.membership.offers import (
    COMMENTS_REPO,
    STATED_COMMENTS,
    AcceptedOffer,
    decode_link,
    find_accepted,
    find_stated,
    follow_offers,
    split_answer,
)
from node.membership.repo_actions import RepoActions
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.timelines.commit_fields import stored_fields
from node.timelines.post_views import show_changes
from protocol.formats.body import Answer, Permission, kind_name
from protocol.formats.content import Post
from protocol.formats.document_kinds import DICT
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, BranchId, CommitId, RepoId, UserId
from protocol.limits.peers import OFFERS_FOLLOWED_MAX
from protocol.limits.users import COMMENT_QUOTE_SIZE_MAX, COMMENT_SIZE_MAX, COMMENTS_LOOKED_MAX
from ravel.types.commits import ContentFields
from ravel.types.inbox import CommentList, CommentView, OfferAnswer, OfferMade
from storage.commits.commits import TimelineRow, load_first_of_kinds, load_rows, load_timeline
from storage.repos.repos import Branch, Repo
from verifier.offers import FoundOffer

_LOOKED_MAX: Final = 8
"""Posts of an offered branch that are looked at for the one of the offer's author."""


def is_own_comments(replica: Replica, repo: Repo, user: UserId, now_ms: int) -> bool:
    """Return True if a repo has what a user comments.

    It is shared with nobody but this person's devices: a comment is for those who read the document.
    """
    if repo.name != COMMENTS_REPO or not repo.has_members:
        return False
    members = replica.members(repo)
    return members.get(user) == Permission.OWNER and members.keys() <= find_person(replica, user, now_ms)


class Comments(RepoActions):
    """Comments on the documents of branches, which are named as `find_branch` takes them."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        inbox: Inbox,
        posts: Posts,
        documents: Documents,
        find_repo: Callable[[str], Repo],
        find_branch: Callable[[str], Branch],
    ) -> None:
        super().__init__(hub, author, find_repo, find_branch)
        self._inbox = inbox
        self._posts = posts
        self._documents = documents
        self._looked_for: set[CommitId] = set()
        """Offers that were looked for since the start, or the last OFFERS_FOLLOWED_MAX: links that lie lead nowhere."""

    async def write(self, branch: str, text: str, answers: str = "") -> OfferAnswer:
        """Write a comment on a document in a branch of its own, and offer that.

        Where this user is trusted in the document, it is a post of the branch for that, and needs no answer.
        """
        target = await self._find_document(branch)
        said = _join(text, answers)
        channel = await self._hub.run_blocking(self._find_channel, target)
        if channel is not None:
            own, offer = channel
            written = await write_commit(self._hub, self._author, own, Post(said))
            made: OfferMade = {"offer": id_text(offer.operation.commit_id), "status": STATUS[True]}
        else:
            repo = await self._own_repo()
            name = f"on {id_text(target.branch_id)}"
            used = {one.name for one in self._hub.replica.branches_in(repo.num)}
            number = next(number for number in range(1, len(used) + 2) if f"{name} {number}" not in used)
            own = await create_branch(self._hub, self._author, repo, f"{name} {number}")
            written = await write_commit(self._hub, self._author, own, Post(said))
            made = await self._inbox.offer_branch(own, target, said, pulls=False)
        return {**made, "commit": id_text(written.commit_id)}

    async def edit(self, branch: str, comment: str, text: str) -> OfferAnswer:
        """Give a comment of this user another text, and offer that; until it is accepted, the earlier one is shown."""
        target = await self._find_document(branch)
        own, before = await self._hub.run_blocking(self._find_own_comment, target, comment)
        said = _join(text, split_answer(before)[1])
        written = await self._posts.edit(comment, said)
        channel = await self._hub.run_blocking(self._find_channel, target)
        if channel is not None and channel[0].num == own.num:
            made: OfferMade = {
                "offer": id_text(channel[1].operation.commit_id),
                "status": STATUS[True],
            }
        else:
            await self._withdraw(target, own, is_open=True)
            made = await self._inbox.offer_branch(own, target, said, pulls=False)
        return {**made, "commit": written["commit"]}

    async def delete(self, branch: str, comment: str) -> OfferAnswer:
        """Delete a comment of this user: its text, and what was offered of it."""
        target = await self._find_document(branch)
        own, _ = await self._hub.run_blocking(self._find_own_comment, target, comment)
        written = await self._posts.delete(comment)
        channel = await self._hub.run_blocking(self._find_channel, target)
        if channel is not None and channel[0].num == own.num:
            offer = id_text(channel[1].operation.commit_id)
        else:
            offer = await self._withdraw(target, own, is_open=False)
        return {"offer": offer, "status": STATUS[False], "commit": written["commit"]}

    async def ask_trust(self, branch: str) -> OfferMade:
        """Ask that what this user comments on a document is shown at once from now on."""
        target = await self._find_document(branch)
        repo = await self._own_repo()
        name = f"on {id_text(target.branch_id)}"
        own = next((one for one in self._hub.replica.branches_in(repo.num) if one.name == name), None)
        if own is None:
            own = await create_branch(self._hub, self._author, repo, name)
        for one in reversed(await self._hub.run_blocking(self._find_mine, target, own)):
            if not one.body.note and one.is_accepted is not False:
                return {"offer": id_text(one.operation.commit_id), "status": STATUS[one.is_accepted]}
        return await self._inbox.offer_branch(own, target, "", pulls=False)

    async def show(self, branch: str, limit: int, cursor: str = "") -> CommentList:
        """List the latest accepted comments on a document before a cursor, by the times that their authors state.

        Comments that were accepted later come first. Branches of these comments that are not followed yet are from now on:
        members follow the last OFFERS_FOLLOWED_MAX anyway, and who has the document by a link alone none. Costs O(offers of
        the repo, or that the document states), and reading COMMENTS_LOOKED_MAX of them, and up to `limit` comments.
        """
        target = self._find_branch(branch)
        run = self._hub.run_blocking
        accepted = await (
            run(self._accepted, target) if target.facts.has_members else self._find_stated(target, branch)
        )
        shown, away = await run(self._show, target, accepted, limit, cursor)
        new = [one for one in away if one.offer_id not in self._looked_for]
        repo = self._hub.replica.repos[target.repo_num]
        if new:
            has_more = await self._hub.write(follow_offers, self._hub.replica, repo, new)
            if len(self._looked_for) > OFFERS_FOLLOWED_MAX:
                self._looked_for.clear()
            self._looked_for.update(one.offer_id for one in new)
            if has_more:
                self._hub.topics_changed()
        return shown

    async def _find_stated(self, target: Branch, branch: str) -> list[list[AcceptedOffer]]:
        """Find the comments that a branch states which is followed by itself, by branch and author, the last ones first."""
        try:
            _, found = await self._documents.read(
                DICT, branch, STATED_COMMENTS, partial(find_stated, target.branch_id)
            )
        except ServiceError as error:
            if error.code not in UNREADABLE:
                raise
            return []
        return _by_branch(found)

    # --- steps ---

    async def _find_document(self, branch: str) -> Branch:
        target = self._find_branch(branch)
        repo = self._hub.replica.repos[target.repo_num]
        if await self._hub.run_blocking(self._hub.replica.permission, repo, self._author.user) is None:
            raise ServiceError("not_permitted", "only members comment", "ask for an invitation to read")
        return target

    async def _own_repo(self) -> Repo:
        """Return this user's repo of comments, made when first needed."""
        owned = await self._hub.run_blocking(self._find_own_comment_repo)
        return owned or await create_repo(self._hub, self._author, COMMENTS_REPO)

    async def _withdraw(self, target: Branch, own: Branch, *, is_open: bool) -> str:
        """Take back the offers of a branch, or of those only the unanswered ones; return the last one's id."""
        root = self._hub.replica.root_branch(self._hub.replica.repos[target.repo_num])
        last = ""
        for one in await self._hub.run_blocking(self._find_mine, target, own):
            last = id_text(one.operation.commit_id)
            if one.is_accepted is False or (is_open and one.is_accepted is not None):
                continue
            await write_commit(self._hub, self._author, root, Answer(one.operation.commit_id, False))
        return last

    # --- in threads ---

    def _find_own_comment_repo(self) -> Repo | None:
        replica, me = self._hub.replica, self._author.user
        now_ms = self._hub.clock_ms()
        return next(
            (one for one in replica.repos.values() if is_own_comments(replica, one, me, now_ms)), None
        )

    def _find_mine(self, target: Branch, own: Branch) -> list[FoundOffer]:
        """Find what this user offered of one of its branches to a document."""
        repo = self._hub.replica.repos[target.repo_num]
        topic = self._inbox.link_topic(own)
        return [
            one
            for one in self._inbox.find_offers(repo)
            if one.operation.author == self._author.user
            and not one.body.pulls
            and one.body.branch == target.branch_id
            and opens(one.body, topic)
        ]

    def _find_channel(self, target: Branch) -> tuple[Branch, FoundOffer] | None:
        """Return this user's branch of comments that are shown at once, and its offer; None where it is not trusted."""
        repo = self._find_own_comment_repo()
        name = f"on {id_text(target.branch_id)}"
        for own in () if repo is None else self._hub.replica.branches_in(repo.num):
            if own.name == name:
                accepted = [
                    one for one in self._find_mine(target, own) if one.is_accepted and not one.body.note
                ]
                return (own, accepted[-1]) if accepted else None
        return None

    def _find_own_comment(self, target: Branch, comment: str) -> tuple[Branch, str]:
        """Find the branch of a comment of this user, and its text."""
        replica = self._hub.replica
        try:
            commit_id = CommitId(BlockId(parse_id(comment)))
        except ValueError:
            raise ServiceError(
                "bad_request", "a comment is named by its whole id", "`ravel inbox show`"
            ) from None
        with replica.database.read() as connection:
            row = load_rows(connection, [commit_id]).get(commit_id)
            own = None if row is None else replica.branches.get(row.branch_num)
            repo = None if own is None else replica.repos.get(own.repo_num)
            # Also where that repo was shared with others since: what was said must stay in its author's hands.
            is_own = row is not None and row.author == self._author.user
            if row is None or own is None or repo is None or not is_own or repo.name != COMMENTS_REPO:
                raise ServiceError("not_found", "that is no comment of yours", "`ravel inbox show`")
            name = f"on {id_text(target.branch_id)}"
            if own.name != name and not own.name.startswith(f"{name} "):
                raise ServiceError("not_found", "that comment is on another document", "`ravel inbox show`")
            fields = stored_fields(replica, row, load_blocks_of(connection, [row])[row.num])
        return own, fields["text"] or ""

    def _show(
        self, target: Branch, accepted: list[list[AcceptedOffer]], limit: int, cursor: str
    ) -> tuple[CommentList, list[AcceptedOffer]]:
        """Return some comments, and the offers whose branches are not here."""
        waiting, end = _go_on(accepted, cursor)
        away: list[AcceptedOffer] = []
        found: list[tuple[TimelineRow, CommentView]] = []
        following: str | None = None
        looked = place = 0
        while place < len(waiting):
            if len(found) >= limit or looked >= COMMENTS_LOOKED_MAX:
                break
            some = waiting[place]
            # The first that opens a branch is the comment as it was read last.
            opened = ((self._inbox.offered_branch(one.body), one) for one in some)
            source, offer = next(
                ((source, one) for source, one in opened if source is not None), (None, some[0])
            )
            start = 0
            if source is not None:
                more, start, read = self._comments_in(
                    target.facts.repo_id, source, offer, limit - len(found), end
                )
                found += more
                looked += read - len(more)
            else:
                away.append(offer)
            looked += len(some)
            following = f"{some[0].key}.{start}"
            end = start or None
            place += not start  # else there is more in this branch
        else:
            following = None
        found.sort(key=lambda one: (one[0].timestamp, one[0].rank, one[0].commit_id))
        texts = {item["commit"]: item["text"] or "" for _, item in found}
        for _, item in found:
            item["quote"] = texts.get(item["answers"], "")[:COMMENT_QUOTE_SIZE_MAX]
        return {"items": [item for _, item in found], "cursor": following}, away

    def _accepted(self, target: Branch) -> list[list[AcceptedOffer]]:
        """Find accepted offers of comments on a document by branch and author, the last ones first."""
        return _by_branch(
            one
            for one in find_accepted(self._hub.replica, self._hub.replica.repos[target.repo_num])
            if not one.body.pulls and one.body.branch == target.branch_id
        )

    def _comments_in(
        self, repo_id: RepoId, source: Branch, offer: AcceptedOffer, limit: int, end: int | None
    ) -> tuple[list[tuple[TimelineRow, CommentView]], int, int]:
        """Read the comment of an accepted offer; of a trusted author, the latest comments before a position.

        Return also the position before which there are more, and how many commits were read.
        """
        replica, author = self._hub.replica, offer.author
        found: list[tuple[TimelineRow, CommentView]] = []
        pairs: list[tuple[TimelineRow, ContentFields]] = []
        start = 0
        with replica.database.read() as connection:
            if offer.body.note:
                rows = load_first_of_kinds(connection, source.num, {kind_name(Post)}, _LOOKED_MAX)
                rows = [row for row in rows if row.author == author][:1]
            else:
                end = source.commit_count - source.void_count if end is None else end
                start = max(end - limit, 0)
                rows = load_timeline(connection, source.num, start, end - start)
            blocks = load_blocks_of(connection, rows)
            for row in rows:
                if row.body_kind == "branch-root" or row.author != author:
                    continue
                item: CommentView = {
                    "commit": id_text(row.commit_id),
                    "offer": offer.key,
                    "author": id_text(author),
                    "author_name": replica.people.name(repo_id, author),
                    "kind": row.body_kind,
                    "answers": "",
                    "quote": "",
                    **stored_fields(replica, row, blocks[row.num]),
                }
                found.append((row, item))
                pairs.append((row, item))
            show_changes(connection, replica, pairs)
        for _, item in found:
            said = offer.body.note or item["text"] or ""
            if said != item["text"]:  # its edit is to be accepted yet
                item.pop("edited_at", None)
            if item["text"] is not None:
                item["text"], item["answers"] = split_answer(said)
        shown = [(row, item) for row, item in found if item["text"] is not None or not offer.body.note]
        return shown, start, len(rows)


def _by_branch(offers: Iterable[AcceptedOffer]) -> list[list[AcceptedOffer]]:
    """Divide offers by branch and author, the last ones first."""
    found: dict[tuple[BranchId, UserId], list[AcceptedOffer]] = {}
    for one in reversed(list(offers)):
        capability = decode_link(one.body)
        if capability is not None:
            found.setdefault((capability.branch, one.author), []).append(one)
    return list(found.values())


def _go_on(offers: list[list[AcceptedOffer]], cursor: str) -> tuple[list[list[AcceptedOffer]], int | None]:
    """Return the offers that follow a cursor, and the position before which the first one's comments are wanted.

    A cursor is the id of an offer, and the position before which its branch has more comments; 0 if it has no more.
    """
    if not cursor:
        return offers, None
    offer, _, position = cursor.partition(".")
    places = {some[0].key: place for place, some in enumerate(offers)}
    if offer not in places or not (position.isascii() and position.isdecimal() and len(position) < 16):
        raise ServiceError(
            "bad_request", "no list of comments has that cursor now", "list them from the start"
        )
    end = int(position)
    return (offers[places[offer] :], end) if end else (offers[places[offer] + 1 :], None)


def _join(text: str, answers: str) -> str:
    """Return what a comment says, with the one that it answers. Raises ServiceError `bad_request`.

    Without words it would be offered with an empty note, which asks for trust.
    """
    check_said(text)
    if len(text) > COMMENT_SIZE_MAX:
        raise ServiceError(
            "too_large",
            f"a comment has at most {COMMENT_SIZE_MAX} characters",
            "say it in several, or fork the repo and offer what you wrote",
        )
    if not answers:
        return text
    said = f">>{answers}\n{text}"
    if not split_answer(said)[1]:
        raise ServiceError(
            "bad_request", "what a comment answers is named by its whole id", "`ravel inbox show`"
        )
    return said
