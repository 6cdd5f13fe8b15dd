"""Commits that the user of this node has not seen yet: counts, mentions, and the marks from which they are counted."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import READ_BRANCH, READ_LISTS, WRITE_BRANCH
from node.contract.endpoint import Endpoint
from node.contract.values import Request
from ravel.types.unseen import UnseenCommitList, UnseenList
from ravel.types.values import Empty


class SeenRequest(Request, frozen=True):
    """Has a branch seen."""

    up_to: Annotated[
        int, Meta(ge=0, le=2**53, description="The `up_to` of what was shown: what came later stays new.")
    ]


LIST_UNSEEN: Final = Endpoint(
    name="list_unseen",
    method="GET",
    path="/unseen",
    scopes=READ_LISTS,
    summary="List branches with commits of others that the user has not seen, archived ones left out.",
    answer=UnseenList,
)
SHOW_UNSEEN: Final = Endpoint(
    name="show_unseen",
    method="GET",
    path="/branches/{branch}/unseen",
    scopes=READ_BRANCH,
    summary="Show which commits of a branch the user has not seen.",
    answer=UnseenCommitList,
)
MARK_SEEN: Final = Endpoint(
    name="mark_seen",
    method="PUT",
    path="/branches/{branch}/seen",
    scopes=WRITE_BRANCH,
    summary="Have a branch seen up to a moment. Only this node knows.",
    request=SeenRequest,
    answer=Empty,
)
