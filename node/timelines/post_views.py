"""Completes shown commits by what others say of them: edits, deletions, hiding, what a reply answers, files of posts,
names of people.

An edit or a deletion that counts changes its post, wherever that is shown, and is itself shown as one. Any other is shown
as the plain post that it is to older nodes.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final, cast

from sqlalchemy import Connection

from node.ingest.replica import Replica
from node.timelines.commit_fields import find_origins, keeps_all, load_whole_blocks, stored_fields
from protocol.formats.body import kind_name
from protocol.formats.content import Files
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId, RepoId, UserId
from protocol.limits.users import ATTACHED_COUNT_MAX, MENTIONS_MAX, QUOTE_LENGTH_MAX
from ravel.types.commits import Attachment, ContentFields, Mention, Origin, ReplyTo
from storage.blobs.files import load_added
from storage.commits.commits import TimelineRow, load_rows
from storage.commits.post_index import NO_CHANGE, PostChange, can_be_changed, load_changes
from verifier.posts import CHANGES, HIDDEN_KINDS, Relation

MENTION: Final = re.compile(r"(?<!\w)@([a-z2-7]{51}[aq])(?!\w)")
"""How a text names a user: by id, so that everybody sees the name that they know."""
_ID_SHOWN: Final = 12
_QUOTED_SIZE: Final = 53 * QUOTE_LENGTH_MAX
"""Characters of a line that are looked at: no more can be quoted, if all of it are ids that become names."""
_OF_BODY: Final = ("erased", "not_kept", "unreadable", "damaged")
_FILES: Final = kind_name(Files)


def show_changes(
    connection: Connection, replica: Replica, shown: Sequence[tuple[TimelineRow, ContentFields]]
) -> None:
    """Complete what is shown of some accepted commits, which may be of several branches."""
    by_branch: dict[int, list[tuple[TimelineRow, ContentFields]]] = {}
    for row, fields in shown:
        by_branch.setdefault(row.branch_num, []).append((row, fields))
    for branch_num, pairs in by_branch.items():
        _BranchPosts(connection, replica, branch_num, [row for row, _ in pairs]).complete(pairs)


def show_attached(connection: Connection, replica: Replica, row: TimelineRow, fields: ContentFields) -> None:
    """Complete the files of a post alone, also of one that is hidden."""
    _BranchPosts(connection, replica, row.branch_num, [row]).attach([(row, fields)], ())


def find_gone(connection: Connection, replica: Replica, rows: Sequence[TimelineRow]) -> set[int]:
    """Return the numbers of accepted commits that say nothing any more: deleted and hidden posts, and their changes."""
    by_branch: dict[int, list[TimelineRow]] = {}
    for row in rows:
        by_branch.setdefault(row.branch_num, []).append(row)
    found: set[int] = set()
    for branch_num, of_branch in by_branch.items():
        found |= _BranchPosts(connection, replica, branch_num, of_branch).find_gone()
    return found


def counts_for(row: TimelineRow, post: TimelineRow | None, persons: Mapping[UserId, UserId]) -> bool:
    """Return True if an edit or a deletion that is not void counts for the commit that it names."""
    return (
        row.relation in CHANGES
        and post is not None
        and post.branch_num == row.branch_num
        and not post.is_void
        and can_be_changed(post)
        and persons.get(row.author, row.author) == persons.get(post.author, post.author)
    )


def find_mentions(replica: Replica, repo_id: RepoId, text: str) -> list[Mention]:
    """Return the users whom a text names, the first ones, each once. Whether they are members makes no difference."""
    found: dict[str, Mention] = {}
    for match in MENTION.finditer(text):
        user = match[1]
        if user not in found:
            found[user] = {"user": user, "name": replica.people.name(repo_id, UserId(parse_id(user)))}
            if len(found) == MENTIONS_MAX:
                break
    return list(found.values())


class _BranchPosts:
    """Statements about some commits of one branch, and about those that they name."""

    def __init__(
        self, connection: Connection, replica: Replica, branch_num: int, rows: Sequence[TimelineRow]
    ) -> None:
        self._connection = connection
        self._replica = replica
        self._branch = replica.branches[branch_num]
        self._repo_id = self._branch.facts.repo_id
        self._persons = replica.persons(self._repo_id)
        self._hidden = replica.hidden(self._repo_id).get(self._branch.branch_id, {})
        self._rows = rows

    def find_gone(self) -> set[int]:
        """Return the numbers of deleted commits, and of commits that change them."""
        about = self._load_posts({row.about for row in self._rows if row.relation in CHANGES})
        changes = load_changes(self._connection, [*self._rows, *about.values()], self._persons)
        found = set()
        for row in self._rows:
            post = None if row.about is None else about.get(row.about)
            if counts_for(row, post, self._persons):
                assert post is not None, "it counts for one"
                is_gone = row.relation == Relation.DELETE or self._is_gone(post, changes)
            else:
                is_gone = self._is_gone(row, changes)
            if is_gone:
                found.add(row.num)
        return found

    def complete(self, pairs: Sequence[tuple[TimelineRow, ContentFields]]) -> None:
        """Fill in the fields."""
        wanted = {row.about for row in self._rows if row.relation in CHANGES}
        answered = {_answered(fields["reply_to"]) for _, fields in pairs if "reply_to" in fields}
        about = self._load_posts(wanted | answered)
        changes = load_changes(self._connection, [*self._rows, *about.values()], self._persons)
        texts = self._open_edits(pairs, changes)
        answered_rows = [about[raw] for raw in answered & about.keys()]
        origins = find_origins(self._connection, self._replica, answered_rows)
        quotes = self._quote(answered_rows, changes)
        self.attach(pairs, {row.num for row in self._rows if self._is_gone(row, changes)})
        for row, fields in pairs:
            post = None if row.about is None else about.get(row.about)
            if counts_for(row, post, self._persons):
                assert post is not None, "it counts for one"
                fields["edits" if row.relation == Relation.EDIT else "deletes"] = id_text(post.commit_id)
                if row.relation == Relation.DELETE or self._is_gone(post, changes):
                    fields["text"] = None
                fields.pop("attachments", None)
            else:
                self._show_post(row, fields, changes.get(row.num, NO_CHANGE), texts)
            if "reply_to" in fields:
                self._show_answered(fields["reply_to"], about, changes, origins, quotes)
            if fields["text"] and (named := find_mentions(self._replica, self._repo_id, fields["text"])):
                fields["mentions"] = named

    def attach(self, pairs: Sequence[tuple[TimelineRow, ContentFields]], gone: Collection[int]) -> None:
        """Fill in the files that posts name, and take out what does not count: see profiles/posts.md. One look for all.

        A commit for whose files no room is left is not named: it has a row of its own.
        """
        naming = [(row, fields) for row, fields in pairs if "attachments" in fields]
        texts = dict.fromkeys(one["commit"] for _, fields in naming for one in fields["attachments"])
        ids = {text: _id_of(text) for text in islice(texts, ATTACHED_COUNT_MAX)}
        rows = self._load_posts(ids.values()) if ids else {}

        def find_counting(post: TimelineRow, fields: ContentFields) -> list[tuple[Attachment, int]]:
            return [
                (one, row.num)
                for one in fields["attachments"]
                if (raw := ids.get(one["commit"])) is not None
                and (row := rows.get(raw)) is not None
                and row.body_kind == _FILES
                and not row.is_void
                and self._is_same(row, post)
            ]

        counting = [(post, fields, find_counting(post, fields)) for post, fields in naming]
        nums = list(dict.fromkeys(num for _, _, named in counting for _, num in named))
        files = load_added(self._connection, nums, ATTACHED_COUNT_MAX)
        for post, fields, named in counting:
            fields["attachments"] = [one for one, num in named if num in files]
            for one, num in named:
                one["files"] = [
                    {"file": id_text(each.object_id), "name": each.name, "size": each.size}
                    for each in (() if post.num in gone else files.get(num, ()))
                ]
            if not fields["attachments"]:
                del fields["attachments"]

    def _is_same(self, row: TimelineRow, other: TimelineRow) -> bool:
        """Return True if one person wrote both."""
        return self._persons.get(row.author, row.author) == self._persons.get(other.author, other.author)

    def _load_posts(self, ids: Collection[CommitId | None]) -> dict[CommitId, TimelineRow]:
        """Return the commits that are of this branch: of others a token for it must not learn."""
        loaded = load_rows(self._connection, [one for one in ids if one is not None])
        return {raw: row for raw, row in loaded.items() if row.branch_num == self._branch.num}

    def _show_post(
        self,
        row: TimelineRow,
        fields: ContentFields,
        change: PostChange,
        texts: Mapping[int, ContentFields],
    ) -> None:
        if change.is_deleted:
            fields["text"], fields["deleted"] = None, True
        elif (by := self._hider(row)) is not None:
            fields["text"] = None
            fields["hidden_by"], fields["hidden_by_name"] = (
                id_text(by),
                self._replica.people.name(self._repo_id, by),
            )
        elif change.edit is not None:
            said = texts[change.edit.num]
            state = cast("dict[str, object]", fields)
            for name in _OF_BODY:  # of the version that is shown
                state.pop(name, None)
                if name in said:
                    state[name] = True
            fields["text"], fields["edited_at"] = said["text"], said["time"]

    def _open_edits(
        self, pairs: Sequence[tuple[TimelineRow, ContentFields]], changes: Mapping[int, PostChange]
    ) -> dict[int, ContentFields]:
        edits = [
            change.edit
            for row, _ in pairs
            if (change := changes.get(row.num, NO_CHANGE)).edit is not None
            and not self._is_gone(row, changes)
        ]
        blocks = load_whole_blocks(self._connection, edits)
        return {row.num: stored_fields(self._replica, row, blocks.get(row.num)) for row in edits}

    def _show_answered(
        self,
        reply: ReplyTo,
        about: Mapping[CommitId, TimelineRow],
        changes: Mapping[int, PostChange],
        origins: Mapping[CommitId, Origin],
        quotes: Mapping[CommitId, str],
    ) -> None:
        row = about.get(_answered(reply))
        if row is None:
            return
        origin = origins.get(row.commit_id)
        reply["author"] = id_text(row.author) if origin is None else origin["author"]
        reply["author_name"] = (
            self._replica.people.name(self._repo_id, row.author) if origin is None else origin["author_name"]
        )
        change = changes.get(row.num, NO_CHANGE)
        if row.is_void:
            reply["state"] = "void"
        elif change.is_deleted:
            reply["state"] = "deleted"
        elif self._hider(row) is not None:
            reply["state"] = "hidden"
        else:
            absent = "erased" if keeps_all(self._replica, self._branch) else "not_kept"
            reply["state"] = absent if (change.edit or row).is_erased else "shown"
            if row.commit_id in quotes:
                reply["text"] = quotes[row.commit_id]

    def _quote(self, rows: Sequence[TimelineRow], changes: Mapping[int, PostChange]) -> dict[CommitId, str]:
        """Return the first lines of posts' present texts, if they have any. Costs O(posts): a block each."""
        shown = {
            row.commit_id: changes.get(row.num, NO_CHANGE).edit or row
            for row in rows
            if not row.is_void and not self._is_gone(row, changes)
        }
        blocks = load_whole_blocks(self._connection, [*shown.values()])
        texts = {
            commit_id: stored_fields(self._replica, row, blocks.get(row.num))["text"] or ""
            for commit_id, row in shown.items()
        }
        return {commit_id: line for commit_id, text in texts.items() if (line := self._first_line(text))}

    def _first_line(self, text: str) -> str:
        def called(match: re.Match[str]) -> str:
            return f"@{self._replica.people.name(self._repo_id, UserId(parse_id(match[1]))) or match[1][:_ID_SHOWN]}"

        line = text.strip().partition("\n")[0][:_QUOTED_SIZE]
        return MENTION.sub(called, line)[:QUOTE_LENGTH_MAX]

    def _is_gone(self, row: TimelineRow, changes: Mapping[int, PostChange]) -> bool:
        return changes.get(row.num, NO_CHANGE).is_deleted or self._hider(row) is not None

    def _hider(self, row: TimelineRow) -> UserId | None:
        return self._hidden.get(row.commit_id) if row.body_kind in HIDDEN_KINDS else None


def _answered(reply: ReplyTo) -> CommitId:
    return _id_of(reply["commit"])


def _id_of(text: str) -> CommitId:
    return CommitId(BlockId(parse_id(text)))
