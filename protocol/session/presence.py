"""Content of `presence1`: who has a text open and where the cursor is, signed by the user and sealed for members.

The box is XChaCha20-Poly1305 under a key that all who hold the epoch derive. A relay, and a member who was excluded, see
its size and time alone. Its associated data is the *place*: the topic as this side announces it on this
connection. A box therefore opens on no other connection, and not when it is said back. The signature is of the user's key
over place and content, so a member cannot speak for another.
"""

from collections.abc import Callable
from typing import Annotated, Final, NewType

from msgspec import Meta
from nacl import bindings
from nacl.exceptions import CryptoError

from protocol.codec import DecodeError, Wire, decode, encode
from protocol.crypto import hashing
from protocol.crypto.keys import ReadKey
from protocol.crypto.signing import BadSignature, verify_signature
from protocol.ids import AnnouncedTopic, BranchId, Digest, Signature, UserId
from protocol.limits.peers import PRESENCE_BOX_SIZE_MAX
from protocol.limits.users import TEXT_POSITION_SIZE_MAX, TEXT_ROOT_SIZE_MAX, TEXT_TYPED_SIZE_MAX

PresencePlace = NewType("PresencePlace", AnnouncedTopic)
"""A topic as the side that speaks announces it on this connection."""
PRESENCE_SESSION_SIZE: Final = 8
PRESENCE_NONCE_SIZE: Final = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

PresenceSession = Annotated[bytes, Meta(min_length=PRESENCE_SESSION_SIZE, max_length=PRESENCE_SESSION_SIZE)]
"""Random bytes that a browser's tab chooses for itself."""
RelativePosition = Annotated[bytes, Meta(max_length=TEXT_POSITION_SIZE_MAX)]
"""A place in a text as Yjs encodes it (`encodeRelativePosition`). Empty: none."""
TextRoot = Annotated[str, Meta(max_length=TEXT_ROOT_SIZE_MAX)]
"""The name of a text's root type."""
TypedWords = Annotated[str, Meta(max_length=TEXT_TYPED_SIZE_MAX)]
"""Characters that were typed at the cursor and are in no commit yet."""
YjsNumber = Annotated[int, Meta(ge=0, le=2**53 - 1)]
"""A client id, or a clock, of a Yjs document."""


class ForgedPresence(Exception):
    """A box that was not sealed for this place, or whose content its user has not signed."""


class Presence(Wire, frozen=True):
    """One session, and its cursor in the text `root` of a branch, from `anchor` to `head`.

    `typed` stands at `head` and is in no commit yet: `client` typed it from `clock` on, so that a reader sees how much of it
    has come since. Without a root, the session has left.
    """

    session: PresenceSession
    branch: BranchId
    root: TextRoot = ""
    anchor: RelativePosition = b""
    head: RelativePosition = b""
    typed: TypedWords = ""
    client: YjsNumber = 0
    clock: YjsNumber = 0

    @property
    def has_left(self) -> bool:
        """True if the session has closed the text."""
        return not self.root


class _Signed(Wire, frozen=True):
    user: UserId
    presence: Presence
    signature: Signature


def seal_presence(
    read_key: ReadKey,
    place: PresencePlace,
    user: UserId,
    sign: Callable[[Digest], Signature],
    presence: Presence,
    nonce: bytes,
) -> bytes:
    """Return the content of `presence1`. `place` is this side's; `nonce` is 24 random bytes."""
    signature = sign(hashing.presence_digest(place + encode(presence)))
    plain = encode(_Signed(user, presence, signature))
    key = hashing.presence_key(read_key)
    return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, place, nonce, key)


def open_presence(read_key: ReadKey, place: PresencePlace, box: bytes) -> tuple[UserId, Presence]:
    """Open a presence; return its user and its content. `place` is the peer's. Raises ForgedPresence."""
    key = hashing.presence_key(read_key)
    nonce, sealed = box[:PRESENCE_NONCE_SIZE], box[PRESENCE_NONCE_SIZE:]
    try:
        plain = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, place, nonce, key)
        signed = decode(_Signed, plain, size_max=PRESENCE_BOX_SIZE_MAX)
        verify_signature(
            signed.user, hashing.presence_digest(place + encode(signed.presence)), signed.signature
        )
    except (CryptoError, DecodeError, BadSignature, ValueError) as error:
        raise ForgedPresence(str(error)) from None
    return signed.user, signed.presence
