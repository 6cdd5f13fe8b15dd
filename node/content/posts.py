"""Posts: one, or many by one request, each a commit on the heads of its branch; and what is said about posts.

A reply, an edit and a deletion are posts of the same branch (`verifier.posts`). Hiding is a commit of the root branch.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.writing import write_commit, write_commits, write_each
from node.content.mentions import resolve_mentions
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from node.timelines.commit_fields import author_fields, load_whole_blocks, stored_fields
from node.timelines.post_views import counts_for, find_mentions, show_attached
from node.timelines.views import show_opened, timeline_items
from node.timelines.why import find_commit
from protocol.formats.body import Hide, Permission, kind_name
from protocol.formats.commit import TanglePlace
from protocol.formats.content import Files, Post
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId, ObjectId
from protocol.limits.formats import FILE_COUNT_MAX
from protocol.limits.users import WRITE_GROUP_COMMITS_MAX
from ravel.types.commits import WrittenCommitView, WrittenPosts
from ravel.types.posts import HiddenPost, PostVersion, PostVersions, Thread, WrittenPost
from storage.commits.commits import TimelineRow, load_rows
from storage.commits.post_index import (
    NO_CHANGE,
    can_be_changed,
    iterate_posts,
    load_changes,
    load_replies,
    load_versions,
)
from storage.engine.errors import StorageError
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch
from verifier.posts import CHANGES, HIDDEN_KINDS, Relation, devices_of, make_attach_place, make_place

_FILES_KIND: Final = kind_name(Files)
_DELETION_TEXT: Final = "(deleted an earlier post)"
"""What older nodes show of a deletion."""
_LOOKED_AT_ONCE: Final = 256
"""Posts that are opened at a time to see which files they name: 1 MB where they are long."""


@dataclass(frozen=True, slots=True)
class _Target:
    """A commit that a request is about, as the store had it; of an edit that counts, the post."""

    branch: Branch
    row: TimelineRow
    is_own: bool
    is_deleted: bool


def check_said(text: str) -> None:
    """Refuse what says nothing. Raises ServiceError `bad_request`."""
    if not text.strip():
        raise ServiceError("bad_request", "the text is empty", "say what to write, in quotes")


class Posts:
    """Writes posts into branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch

    async def write(
        self, branch: str, text: str, resolve_mentions: bool = False, attachments: Sequence[str] = ()
    ) -> WrittenCommitView:
        """Write one post on the branch's heads, with the files that commits have added; durable when this returns."""
        target = self._find_branch(branch)
        body = await self._make_post(target, text, resolve_mentions, attachments)
        draft = Draft(body, tangles=await self._attachment_places(target, attachments))
        return _written_view(target, await write_commit(self._hub, self._author, target, draft))

    async def write_many(self, branch: str, texts: list[str]) -> WrittenPosts:
        """Write posts one after the other, some hundred in a transaction; all are durable when this returns.

        Raises ServiceError as `write`: its message then says how many are written, which are the first.
        """
        target = self._find_branch(branch)
        for text in texts:
            check_said(text)
        commits: list[WrittenCommit] = []
        for part in chunks(texts, WRITE_GROUP_COMMITS_MAX):
            try:
                commits += await write_commits(self._hub, self._author, target, _drafts(part))
            except (ServiceError, StorageError) as error:
                if not commits:
                    raise
                raise _with_progress(error, len(commits), len(texts)) from error
        return {
            "branch": id_text(target.branch_id),
            "commits": [id_text(one.commit_id) for one in commits],
            "rank": _rank_of(commits[-1]),
        }

    def resolve(self, branch: str) -> str:
        """Return the ids of a branch, which stay when it is renamed. Raises ServiceError if there is no such branch."""
        facts = self._find_branch(branch).facts
        return f"{id_text(facts.repo_id)}:{id_text(facts.branch_id)}"

    async def write_each(self, branch: str, texts: Sequence[str]) -> list[WrittenCommitView | Exception]:
        """Write posts; return each once it is durable, or its own error.

        Raises ServiceError where there is no such branch.
        """
        target = self._find_branch(branch)
        outcomes = await write_each(self._hub, self._author, target, [Post(text) for text in texts])
        return [one if isinstance(one, Exception) else _written_view(target, one) for one in outcomes]

    async def reply(
        self, commit: str, text: str, resolve_mentions: bool = False, attachments: Sequence[str] = ()
    ) -> WrittenPost:
        """Write a reply, as `write`. One to a reply is of the same thread, and one to an edit answers the post."""
        target = await self._find(commit)
        row = target.row
        first = row.about if row.relation == Relation.REPLY and row.about is not None else row.commit_id
        body = await self._make_post(target.branch, text, resolve_mentions, attachments)
        draft = Draft(body, tangles=await self._attachment_places(target.branch, attachments))
        return await self._write_about(target, draft, Relation.REPLY, first)

    async def edit(self, commit: str, text: str, resolve_mentions: bool = False) -> WrittenPost:
        """Give a post another text. Raises ServiceError where it is not this person's, or has no text to change."""
        target = await self._find_own(commit, "edit")
        files = () if text.strip() else await self._hub.run_blocking(self._load_attached, target.row)
        draft = Draft(await self._make_post(target.branch, text, resolve_mentions, files))
        return await self._write_about(target, draft, Relation.EDIT, target.row.commit_id)

    async def delete(self, commit: str) -> WrittenPost:
        """Delete a post for good, and remove its files from the branch, but those that another post of this person names.

        Costs O(this person's posts in the branch) where it has files. Raises ServiceError as `edit`.
        """
        target = await self._find_own(commit, "delete")
        files = await self._hub.run_blocking(self._load_attached, target.row)
        first, *others = [*chunks(files, FILE_COUNT_MAX)] or [()]
        for part in others:
            await write_commit(self._hub, self._author, target.branch, _draft_removal(Files(()), part))
        draft = _draft_removal(Post(_DELETION_TEXT), first)
        return await self._write_about(target, draft, Relation.DELETE, target.row.commit_id)

    async def hide(self, commit: str, hidden: bool) -> HiddenPost:
        """Hide a post from all views but its versions, or show it again. Writes nothing where it is so already."""
        target = await self._find(commit)
        branch, row = target.branch, target.row
        repo = self._hub.replica.repos[branch.repo_num]
        if row.body_kind not in HIDDEN_KINDS:
            raise ServiceError("bad_request", f"that is no post: its kind is {row.body_kind!r}")
        if not branch.facts.has_members:
            raise ServiceError(
                "not_permitted", "this node follows the branch by a link, and may read it only"
            )
        held = await self._hub.run_blocking(self._hub.replica.permission, repo, self._author.user)
        if (held or 0) < Permission.ADMIN:  # the rules accept it from any writer, and it would say nothing
            raise ServiceError(
                "not_permitted",
                "hiding needs admin",
                "ask an admin; your own posts you delete: ravel delete POST",
            )
        is_hidden = row.commit_id in self._hub.replica.hidden(repo.repo_id).get(branch.branch_id, {})
        written = None
        if is_hidden != hidden:
            root = self._hub.replica.root_branch(repo)
            body = Hide(branch.branch_id, (row.commit_id,), hidden)
            written = await write_commit(self._hub, self._author, root, body)
        return {
            "post": id_text(row.commit_id),
            "hidden": hidden,
            "commit": None if written is None else id_text(written.commit_id),
        }

    async def versions(self, commit: str, *, limit: int, before: str = "") -> PostVersions:
        """List the versions of a post: its last `limit`, or those before one of them."""
        return await show_opened(self._hub, partial(self._versions, commit, limit, before), "versions")

    async def thread(self, commit: str, *, limit: int, after: str = "") -> Thread:
        """List the thread that a post begins or is in: its first `limit` posts, or those after one of them."""
        return await show_opened(self._hub, partial(self._thread, commit, limit, after))

    # --- steps ---

    async def _make_post(self, branch: Branch, text: str, resolves: bool, files: Sequence[object]) -> Post:
        """Return the body of a post, which may say nothing where it has files. Raises ServiceError `bad_request`."""
        if not files:
            check_said(text)
        if resolves and "@" in text and branch.facts.has_members:
            repo = self._hub.replica.repos[branch.repo_num]
            text = await self._hub.run_blocking(resolve_mentions, self._hub.replica, repo, text)
        return Post(text)

    async def _attachment_places(self, branch: Branch, attachments: Sequence[str]) -> tuple[TanglePlace, ...]:
        """Return the place that names the files of a post, if it has any. Raises ServiceError."""
        if not attachments:
            return ()
        found = await self._hub.run_blocking(self._find_attached, branch, attachments)
        return (make_attach_place(found),)

    async def _write_about(
        self, target: _Target, draft: Draft, relation: Relation, about: CommitId
    ) -> WrittenPost:
        post = target.row.commit_id
        draft = replace(draft, tangles=(*draft.tangles, make_place(relation, about, post)))
        written = await write_commit(self._hub, self._author, target.branch, draft)
        return {**_written_view(target.branch, written), "post": id_text(post)}

    async def _find(self, text: str) -> _Target:
        return await self._hub.run_blocking(self._look_up, text)

    async def _find_own(self, text: str, verb: str) -> _Target:
        target = await self._find(text)
        row = target.row
        if not can_be_changed(row):
            is_edit = row.relation in CHANGES
            raise ServiceError(
                "bad_request",
                f"no post to {verb}: "
                + ("it edits or deletes another's" if is_edit else f"its kind is {row.body_kind!r}"),
                "`ravel log BRANCH` shows posts",
            )
        if not target.is_own:
            raise ServiceError(
                "not_permitted",
                f"only its author may {verb} a post",
                f"an admin may hide it: ravel post hide {text}",
            )
        if target.is_deleted:
            raise ServiceError(
                "bad_request", "its author has deleted it, which is final", "write a new post: ravel write"
            )
        return target

    def _look_up(self, text: str) -> _Target:
        with self._hub.replica.database.read() as connection:
            row = self._load_post(connection, text)
            branch = self._hub.replica.branches[row.branch_num]
            persons = self._hub.replica.persons(branch.facts.repo_id)
            change = load_changes(connection, [row], persons).get(row.num, NO_CHANGE)
        user = self._author.user
        is_own = persons.get(row.author, row.author) == persons.get(user, user)
        return _Target(branch, row, is_own, change.is_deleted)

    def _find_attached(self, branch: Branch, texts: Sequence[str]) -> tuple[CommitId, ...]:
        """Find the commits that added a post's files, each once. Raises ServiceError where others would not see them so."""
        with self._hub.replica.database.read() as connection:
            ids = dict.fromkeys(find_commit(connection, text, [branch]).commit_id for text in texts)
            rows = load_rows(connection, ids)
        persons, user = self._hub.replica.persons(branch.facts.repo_id), self._author.user
        for raw in ids:
            row = rows.get(raw)
            is_own = row is not None and persons.get(row.author, row.author) == persons.get(user, user)
            if row is None or row.is_void or row.body_kind != _FILES_KIND or not is_own:
                raise ServiceError(
                    "bad_request",
                    f"{id_text(raw)[:12]} is no commit by which you added files",
                    "name the `commit` that adding a file answered with",
                )
        return tuple(ids)

    def _load_attached(self, post: TimelineRow) -> list[tuple[CommitId, ObjectId]]:
        """Load the files that the branch has of a post alone, with the commits that added them."""
        replica = self._hub.replica
        with replica.database.read() as connection:
            fields = stored_fields(replica, post, load_whole_blocks(connection, [post]).get(post.num))
            show_attached(connection, replica, post, fields)
            named = {one["commit"] for one in fields.get("attachments", ()) if one["files"]}
            others = self._find_named_again(connection, post, named) if named else set()
        return [
            (CommitId(BlockId(parse_id(one["commit"]))), ObjectId(BlockId(parse_id(file["file"]))))
            for one in fields.get("attachments", ())
            if one["commit"] not in others
            for file in one["files"]
        ]

    def _find_named_again(
        self, connection: Connection, post: TimelineRow, named: AbstractSet[str]
    ) -> set[str]:
        """Find the commits among these that other posts of the person name. Hidden posts count: they may be shown again."""
        replica = self._hub.replica
        persons = replica.persons(replica.branches[post.branch_num].facts.repo_id)
        adders = load_rows(connection, [CommitId(BlockId(parse_id(one))) for one in named])
        users = devices_of(persons, [post.author])[post.author]
        first = min((row.num for row in adders.values()), default=0)
        posts = iterate_posts(connection, post.branch_num, users, first)
        found: set[str] = set()
        while part := list(islice(posts, _LOOKED_AT_ONCE)):
            blocks = load_whole_blocks(connection, part)
            for row in part:
                fields = stored_fields(replica, row, blocks.get(row.num))
                again = {one["commit"] for one in fields.get("attachments", ())} & named
                if again and row.num != post.num:
                    changes = load_changes(connection, [row], persons)
                    found |= set() if changes.get(row.num, NO_CHANGE).is_deleted else again
        return found

    def _load_post(self, connection: Connection, text: str) -> TimelineRow:
        """Find the commit of an id or prefix; for an edit or a deletion that counts, its post. Raises ServiceError."""
        found = find_commit(connection, text)
        row = load_rows(connection, [found.commit_id]).get(found.commit_id)
        if row is None or row.is_void:
            state = "void" if row is not None else found.state
            raise ServiceError("bad_request", f"that commit is {state}", f"`ravel why {text}` says why")
        branch = self._hub.replica.branches.get(row.branch_num)
        if branch is None or branch.facts.is_root_branch:
            raise ServiceError("bad_request", "that is no commit of a branch with posts")
        if row.relation in CHANGES and row.about is not None:
            post = load_rows(connection, [row.about]).get(row.about)
            if post is not None and counts_for(row, post, self._hub.replica.persons(branch.facts.repo_id)):
                return post
        return row

    def _versions(self, text: str, limit: int, before: str) -> PostVersions:
        replica = self._hub.replica
        with replica.database.read() as connection:
            row = self._load_post(connection, text)
            branch = replica.branches[row.branch_num]
            persons = replica.persons(branch.facts.repo_id)
            end = self._find_beside(connection, branch, before)
            is_deleted = load_changes(connection, [row], persons).get(row.num, NO_CHANGE).is_deleted
            found = load_versions(connection, row, persons, limit + 1, end)  # one more tells of the rest
            shown = [] if end is not None and end.commit_id == row.commit_id else [row, *found][-limit:]
            blocks = load_whole_blocks(connection, shown)
            versions: list[PostVersion] = []
            for one in shown:
                content = stored_fields(replica, one, blocks.get(one.num))
                content.pop("reply_to", None)  # these two are the post's
                content.pop("attachments", None)
                if one.relation == Relation.DELETE:
                    content["text"] = None
                if content["text"] and (
                    named := find_mentions(replica, branch.facts.repo_id, content["text"])
                ):
                    content["mentions"] = named
                kind = {Relation.EDIT: "edit", Relation.DELETE: "deletion"}
                version: PostVersion = {
                    **content,
                    **author_fields(replica, branch, one.author),
                    "commit": id_text(one.commit_id),
                    "version": "original" if one.num == row.num else kind[Relation(one.relation or "")],
                }
                versions.append(version)
        answer: PostVersions = {
            "post": id_text(row.commit_id),
            "branch": id_text(branch.branch_id),
            "deleted": is_deleted,
            "versions": versions,
            "previous": id_text(shown[0].commit_id) if shown and shown[0].num != row.num else None,
        }
        hider = replica.hidden(branch.facts.repo_id).get(branch.branch_id, {}).get(row.commit_id)
        if hider is not None:
            answer["hidden_by"] = id_text(hider)
        return answer

    def _thread(self, text: str, limit: int, after: str) -> Thread:
        replica = self._hub.replica
        with replica.database.read() as connection:
            row = self._load_post(connection, text)
            branch = replica.branches[row.branch_num]
            first_id = row.commit_id
            if row.relation == Relation.REPLY and row.about is not None:
                first_id = row.about
            begin = self._find_beside(connection, branch, after)
            replies = load_replies(connection, branch.num, first_id, limit + 1, begin)
            first = load_rows(connection, [first_id]).get(first_id) if begin is None else None
            if first is not None and first.branch_num == branch.num and not first.is_void:
                replies = [first, *replies]
            items = timeline_items(connection, replica, replies[:limit], 0)
        for item in items:
            del item["position"]
        return {
            "first": id_text(first_id),
            "branch": id_text(branch.branch_id),
            "items": items,
            "next": items[-1]["commit"] if len(replies) > limit else None,
        }

    def _find_beside(self, connection: Connection, branch: Branch, text: str) -> TimelineRow | None:
        """Find the commit of this branch beside which a window is; None where none is named. Raises ServiceError."""
        if not text:
            return None
        found = find_commit(connection, text, [branch])
        row = load_rows(connection, [found.commit_id]).get(found.commit_id)
        if row is None:
            raise ServiceError("bad_request", f"that commit is {found.state}", f"`ravel why {text}` says why")
        return row


def _draft_removal(body: Post | Files, files: Sequence[tuple[CommitId, ObjectId]]) -> Draft:
    """Draft a commit that removes files, given with the commits that added them: FILE_COUNT_MAX at most."""
    return Draft(
        body,
        deps=tuple(dict.fromkeys(adder for adder, _ in files)),
        removed_files=tuple(dict.fromkeys(file for _, file in files)),
    )


def _written_view(branch: Branch, written: WrittenCommit) -> WrittenCommitView:
    return {
        "commit": id_text(written.commit_id),
        "rank": _rank_of(written),
        "branch": id_text(branch.branch_id),
    }


def _rank_of(written: WrittenCommit) -> int:
    assert written.rank is not None, "it is stored"
    return written.rank


def _drafts(texts: Sequence[str]) -> list[Draft]:
    return [Draft(Post(text)) for text in texts]


def _with_progress(error: ServiceError | StorageError, done: int, count: int) -> ServiceError:
    """Return the error with the number of posts that are durable."""
    code, next_step = (
        (error.code, error.advice) if isinstance(error, ServiceError) else ("storage_failed", "")
    )
    return ServiceError(code, f"{error}; the first {done} of {count} posts are written", next_step)
