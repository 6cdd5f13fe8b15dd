"""Friends who let a person in again: name them, sign as one, publish what enough of them have signed."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import WRITE_ERRORS, Endpoint
from node.contract.values import Request, UserText
from protocol.limits.formats import LINK_SIZE_MAX, RECOVERY_FRIEND_COUNT_MAX
from ravel.types.recovery import NamedFriends, RecoveryList, RecoveryResult, RecoverySignatures


class FriendsRequest(Request, frozen=True):
    """Names friends."""

    friends: Annotated[
        list[UserText], Meta(max_length=RECOVERY_FRIEND_COUNT_MAX, description="None: nobody may any more.")
    ]
    need: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=RECOVERY_FRIEND_COUNT_MAX,
                description="How many must sign: more than half. Null: just more than half.",
            ),
        ]
        | None
    ) = None
    only: Annotated[str, Meta(max_length=255, description="A repo's name or id. Empty: all repos.")] = ""


class RecoverySignRequest(Request, frozen=True):
    """Signs for a member's new key."""

    member: UserText
    user: UserText


class RecoveryTextsRequest(Request, frozen=True):
    """Publishes signatures of friends."""

    texts: Annotated[
        list[Annotated[str, Meta(max_length=2 * LINK_SIZE_MAX)]], Meta(min_length=1, max_length=64)
    ]


LIST_FRIENDS: Final = Endpoint(
    name="list_friends",
    method="GET",
    path="/recovery",
    scopes=NODE,
    summary="List this user's recovery friends, and the members who named this user as one.",
    answer=RecoveryList,
)
NAME_FRIENDS: Final = Endpoint(
    name="name_friends",
    method="PUT",
    path="/recovery/friends",
    scopes=PERSON,
    summary="Name the friends who together may let a new key of this user in.",
    request=FriendsRequest,
    answer=NamedFriends,
    errors=(*WRITE_ERRORS, "not_found", "ambiguous"),
)
SIGN_RECOVERY: Final = Endpoint(
    name="sign_recovery",
    method="POST",
    path="/recovery/signatures",
    scopes=PERSON,
    summary="Sign, as a friend, that a key is a member's new one.",
    request=RecoverySignRequest,
    answer=RecoverySignatures,
    errors=(*WRITE_ERRORS, "not_found", "ambiguous"),
)
FINISH_RECOVERY: Final = Endpoint(
    name="finish_recovery",
    method="POST",
    path="/recovery",
    scopes=PERSON,
    summary="Let a key in that enough friends of a member have signed for.",
    request=RecoveryTextsRequest,
    answer=RecoveryResult,
    errors=(*WRITE_ERRORS, "bad_link"),
)
