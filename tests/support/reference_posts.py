"""Reference rule over plain sets: which edit and which deletion count for a post. The store finds both by an index."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from protocol.ids import BranchId, CommitId, UserId
from verifier.posts import CHANGED_KINDS, CHANGES, PostRelation, Relation


@dataclass(frozen=True, slots=True)
class PostFacts:
    """An accepted commit that is not void, as far as the rule looks at it."""

    commit_id: CommitId
    order: tuple[int, int, CommitId]  # checkpoints passed, rank, id
    branch: BranchId
    author: UserId
    body_kind: str
    relation: PostRelation | None


def can_be_changed(post: PostFacts) -> bool:
    """Return True if edits and deletions of a commit may count."""
    return post.body_kind in CHANGED_KINDS and (
        post.relation is None or post.relation.relation not in CHANGES
    )


@dataclass(frozen=True, slots=True)
class ResolvedPost:
    """Changes that count for a post: the last edit, and the first deletion, which is final."""

    edit: CommitId | None
    deletion: CommitId | None


def resolve_post(
    post: PostFacts, others: Iterable[PostFacts], is_same_person: Callable[[UserId, UserId], bool]
) -> ResolvedPost:
    """Resolve a post, given all other commits that are accepted and not void, in any order.

    Edits and deletions count that stand in the post's branch and whose author is the post's, or another device of the same
    person. Of the edits the last in canonical order says what the post says.
    """
    if not can_be_changed(post):
        return ResolvedPost(None, None)
    found: dict[Relation, list[PostFacts]] = {relation: [] for relation in CHANGES}
    for one in others:
        stated = one.relation
        if (
            stated is not None
            and stated.relation in CHANGES
            and stated.about == post.commit_id
            and one.branch == post.branch
            and is_same_person(one.author, post.author)
        ):
            found[stated.relation].append(one)
    edit = max(found[Relation.EDIT], key=lambda one: one.order, default=None)
    deletion = min(found[Relation.DELETE], key=lambda one: one.order, default=None)
    return ResolvedPost(edit.commit_id if edit else None, deletion.commit_id if deletion else None)
