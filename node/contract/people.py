"""People: what this user calls itself, and what it calls others."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import Endpoint
from node.contract.values import Request
from protocol.limits.formats import PROFILE_COLOR_COUNT, PROFILE_NAME_LENGTH_MAX
from ravel.types.people import OwnName, Petname, PetnameList

Color = Annotated[int, Meta(ge=0, lt=PROFILE_COLOR_COUNT, description="The number of a color.")]
_TYPED_LENGTH_MAX: Final = 4 * PROFILE_NAME_LENGTH_MAX
"""Characters of a name as it is typed, before it is put into its form."""
PersonNameText = Annotated[
    str, Meta(max_length=_TYPED_LENGTH_MAX, description="1 to 64 characters, without control or unseen ones.")
]


class OwnNameRequest(Request, frozen=True):
    """States a name."""

    name: Annotated[PersonNameText | None, Meta(description="Null: this user has no name any more.")]
    color: Color | None = None


class PetnameRequest(Request, frozen=True):
    """Names a user or a node for this user alone."""

    user: Annotated[PersonNameText, Meta(description="An id, a unique prefix of one, or a name.")]
    name: Annotated[PersonNameText | None, Meta(description="Null: take the name away.")]
    peer: Annotated[bool, Meta(description="The id is that of a node, and not of a user.")] = False


SHOW_ME: Final = Endpoint(
    name="show_me",
    method="GET",
    path="/me",
    scopes=NODE,
    summary="Show what this user calls itself, and in which repos others see it.",
    answer=OwnName,
)
STATE_ME: Final = Endpoint(
    name="state_me",
    method="PUT",
    path="/me",
    scopes=PERSON,
    summary="State what this user calls itself, in all repos where it may write, now and later.",
    request=OwnNameRequest,
    answer=OwnName,
    details="Of each minute the first statement in a repo counts: the node waits for the next one where that is needed.",
)
LIST_PETNAMES: Final = Endpoint(
    name="list_petnames",
    method="GET",
    path="/petnames",
    scopes=NODE,
    summary="List what this user calls others. These names are on this node alone.",
    answer=PetnameList,
)
SET_PETNAME: Final = Endpoint(
    name="set_petname",
    method="PUT",
    path="/petnames",
    scopes=PERSON,
    summary="Name a user or a node on this node, or take the name away. It goes before what a user calls itself.",
    request=PetnameRequest,
    answer=Petname,
    errors=("not_found", "ambiguous"),
)
