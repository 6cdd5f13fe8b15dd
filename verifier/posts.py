"""Relations of posts to other posts: replies, edits and deletions; files of posts; and which posts are hidden.

A reply, an edit and a deletion are posts with a place in one more tangle, which the signed header states. So a node that
does not know them shows plain posts, and one that lacks the body, or has erased it, still knows what it was about. No
verdict rests on such a place. `storage.commits.post_index` finds the edit and the deletion that count for a post.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocol.formats.body import Hide
from protocol.formats.commit import Commit, TanglePlace
from protocol.formats.content import Post
from protocol.formats.declared_kind import declared_kind
from protocol.ids import BranchId, CommitId, UserId
from verifier.membership import Membership


class Relation(StrEnum):
    """Kind of relation to another post. It is also the kind of the tangle in which the post stands for it."""

    REPLY = "reply"
    EDIT = "edit"
    DELETE = "delete"


ATTACH: Final = "attach"
"""Kind of the tangle in which a post has a place that follows the commits that added its files."""
CHANGES: Final = (Relation.EDIT, Relation.DELETE)
"""Relations that change what another post says. What has one is no post of its own while it counts."""
CHANGED_KINDS: Final = ("post", "imported")
"""Kinds of bodies of what can be edited and deleted. What a merge has carried is what it was."""
HIDDEN_KINDS: Final = (*CHANGED_KINDS, "carried")
"""Kinds of bodies of what can be hidden: what may have a text."""


@dataclass(frozen=True, slots=True)
class PostRelation:
    """Relation that a post's header states to the post `about`; of a reply, the first of the thread."""

    relation: Relation
    about: CommitId
    answers: CommitId | None = None


def find_relation(commit: Commit, *, is_root_branch: bool) -> PostRelation | None:
    """Return the relation that a commit states, if it states to be a post and to be about just one other.

    Nobody checks that the other exists. A reply has one `previous`, which is what it answers.
    """
    if len(commit.content.tangles) < 2 or declared_kind(commit, is_root_branch=is_root_branch) is not Post:
        return None
    places = [(relation, place) for relation in Relation if (place := commit.place(relation)) is not None]
    if len(places) != 1:
        return None
    relation, place = places[0]
    if relation != Relation.REPLY:
        return PostRelation(relation, place.root)
    return PostRelation(relation, place.root, place.previous[0]) if len(place.previous) == 1 else None


def make_place(relation: Relation, about: CommitId, answers: CommitId | None = None) -> TanglePlace:
    """Make the place that states a relation."""
    return TanglePlace(relation, about, (about if answers is None else answers,))


def find_attached(commit: Commit, *, is_root_branch: bool) -> tuple[CommitId, ...]:
    """Return the commits whose files a post's header names as its own. Nobody checks that they exist."""
    if len(commit.content.tangles) < 2 or declared_kind(commit, is_root_branch=is_root_branch) is not Post:
        return ()
    place = commit.place(ATTACH)
    return () if place is None else place.previous


def make_attach_place(files: tuple[CommitId, ...]) -> TanglePlace:
    """Make the place by which a post names commits that added its files, one at least."""
    return TanglePlace(ATTACH, files[0], files)


Hidden = Mapping[BranchId, Mapping[CommitId, UserId]]
"""Hidden commits of each branch, and who hid them."""


def find_hidden(membership: Membership) -> Hidden:
    """Find what admins hide: of several words about a commit that count, the last in canonical order holds."""
    now, operations = membership.now(), membership.operations
    found: dict[BranchId, dict[CommitId, UserId]] = {}
    for one in operations.in_order(membership.hides):
        assert isinstance(one.body, Hide), "as it is listed"
        if not now.counts(one):
            continue
        of_branch = found.setdefault(one.body.branch, {})
        for commit_id in one.body.commits:
            if one.body.hides:
                of_branch[commit_id] = one.author
            else:
                of_branch.pop(commit_id, None)
    return found


def devices_of(
    persons: Mapping[UserId, UserId], users: Collection[UserId]
) -> dict[UserId, tuple[UserId, ...]]:
    """Return, for each of some users, all users of the same person, itself included."""
    named = {user: persons.get(user, user) for user in users}
    wanted = set(named.values())
    members: dict[UserId, list[UserId]] = {person: [person] for person in wanted}
    for device, person in persons.items():
        if person in wanted:
            members[person].append(device)
    return {user: tuple(members[person]) for user, person in named.items()}
