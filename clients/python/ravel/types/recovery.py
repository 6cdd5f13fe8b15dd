"""Types of answers: friends who let a person in again."""

from typing import Annotated, TypedDict

from ravel.types.devices import Advice
from ravel.types.values import Count, HeldPermission, Id, PersonText, means


class RepoFriends(TypedDict):
    """Friends of this user in one repo."""

    repo: Id
    name: str
    friends: list[Id]
    friend_names: Annotated[list[PersonText], means("What they are called, in the same order.")]
    need: Annotated[int, means("How many of them must sign.")]
    changed: Annotated[bool, means("It was stated now. False: it had been before, or failed.")]
    advice: Advice


class NamedFriends(TypedDict):
    """Statements about this user's friends, one for each repo."""

    repos: list[RepoFriends]


class RecoveryPerson(TypedDict):
    """A member who named this user as a recovery friend."""

    repo: Id
    name: str
    user: Id
    user_name: PersonText
    friends: Annotated[Count, means("How many friends it named.")]
    need: Annotated[int, means("How many of them must sign.")]


class RecoveryList(TypedDict):
    """Recovery friends of this user, and members who named it as one."""

    repos: list[RepoFriends]
    persons: list[RecoveryPerson]
    let_in: Annotated[bool, means("Friends let this user in, and it was granted no rights in a repo since.")]


class SignedRepo(TypedDict):
    """A repo in which this user has signed, and what the signature gives."""

    repo: Id
    name: str
    permission: HeldPermission


class RecoverySignatures(TypedDict):
    """A friend's signatures, for the person who publishes them."""

    member: Id
    user: Annotated[Id, means("The key that is the member's device then.")]
    texts: Annotated[list[str], means("To pass on: no secrets.")]
    repos: list[SignedRepo]


class RecoveredRepo(TypedDict):
    """State of a repo in which friends have signed."""

    repo: Id
    name: Annotated[str, means("Empty: the repo is not here.")]
    member: Id | None
    member_name: PersonText
    user: Id
    permission: HeldPermission
    signed: Annotated[Count, means("Friends whose signatures are here and hold.")]
    need: Annotated[int, means("How many must have signed. 0: not known here.")]
    let_in: Annotated[bool, means("The key was let in now.")]
    already: Annotated[bool, means("The key had as much before.")]
    grant: Annotated[
        str,
        means(
            "Command that gives the key a place of its own. Empty: the key has one, or nobody can give it."
        ),
    ]
    grantors: Annotated[
        list[PersonText], means("What the members are called who can run it. None: the key's own user can.")
    ]
    advice: Advice


class RecoveryResult(TypedDict):
    """Outcome of signatures, one for each repo."""

    repos: list[RecoveredRepo]
