"""Bodies of a lobby: a small repo beside another one, in which users ask to be let into that other one.

A link that asks opens the lobby alone. Who joins the lobby asks; the join's metadata say under what name. An admin answers
there, and an acceptance has the key of an epoch of the other repo, sealed to that user. `LobbyAdd` stands in the other repo,
and opens the lobby for its admins. No rule of membership looks at any of these: a body of these kinds that does not decode
is carried like one of an unknown kind, so that nodes which do not know the kinds judge alike.
"""

from typing import Annotated, Final

from msgspec import Meta

from protocol.codec import DecodeError, Wire, decode, encode
from protocol.crypto.hashing import request_digest
from protocol.crypto.sealed_keys import SealedKey
from protocol.formats.block import Reference
from protocol.formats.content import UnixMilliseconds
from protocol.formats.profiles import find_fault
from protocol.ids import CommitId, Digest, EpochId, RepoId, UserId
from protocol.limits.formats import LOBBY_ADMIN_COUNT_MAX, METADATA_SIZE_MAX, PROFILE_NAME_LENGTH_MAX

CODE_WORD_COUNT: Final = 6
"""Words of a request's code: 66 bits, so that nobody finds a second request of the same code."""
_WORD_BITS: Final = 11


class Lobby(Wire, frozen=True, tag="lobby1"):
    """Statement that members of this repo ask to be let into `repo`. By the founder, right after the init."""

    repo: RepoId


class LobbyBox(Wire, frozen=True):
    """The key of a lobby's founding epoch, sealed to one admin."""

    user: UserId
    key: SealedKey


class LobbyAdd(Wire, frozen=True, tag="lobby-add2"):
    """Gives the admins of this repo the keys of a lobby, which the author founded. `boxes` hold the key of the lobby's
    epoch.

    `invitation` is the commit by which users join the lobby. An accepted user is to get `permission` (1 read, 2 write).
    """

    lobby: RepoId
    root: Reference
    epoch: EpochId
    invitation: CommitId
    permission: Annotated[int, Meta(ge=1, le=2)]
    expires_at: UnixMilliseconds
    boxes: Annotated[tuple[LobbyBox, ...], Meta(max_length=LOBBY_ADMIN_COUNT_MAX)]


class Admission(Wire, frozen=True):
    """Opens the other repo for a user who asked: where it begins, and an epoch, whose key is sealed to the user."""

    root: Reference
    epoch: EpochId
    key: SealedKey


class LobbyAnswer(Wire, frozen=True, tag="lobby-answer2"):
    """Accepts a request (the commit by which a user joined the lobby), or with None refuses it."""

    request: CommitId
    admission: Admission | None


class AskNote(Wire, frozen=True, tag="ask1"):
    """The metadata of a join of a lobby: what the user who asks wants to be called."""

    name: Annotated[str, Meta(min_length=1, max_length=PROFILE_NAME_LENGTH_MAX)] | None


LobbyBody = Lobby | LobbyAdd | LobbyAnswer


def encode_note(name: str | None) -> bytes:
    """Return the metadata of a request under this name."""
    return encode(AskNote(name))


def requester_name(metadata: bytes) -> str | None:
    """Return the name that a request states. None: it states none, or one that breaks the rules of names."""
    try:
        name = decode(AskNote, metadata, size_max=METADATA_SIZE_MAX).name
    except DecodeError:
        return None
    return None if name is None or find_fault(name) else name


def code_numbers(lobby: RepoId, repo: RepoId, user: UserId, request: CommitId) -> tuple[int, ...]:
    """Return a request's code: six numbers from 0 to 2047, each of which stands for a word.

    The id of the request commits to all that the request says, so a request of another key or link has another code.
    """
    digest: Digest = request_digest(encode([lobby, repo, user, request]))
    bits = int.from_bytes(digest, "big") >> (8 * len(digest) - CODE_WORD_COUNT * _WORD_BITS)
    mask = (1 << _WORD_BITS) - 1
    return tuple(bits >> (_WORD_BITS * place) & mask for place in reversed(range(CODE_WORD_COUNT)))
