"""The file of tokens: who may call the local API, what for and until when. Of a token's secret it holds a hash alone.

`tokens.json` lies in the node's folder, for its user alone. It is written whole, and a checksum follows: a changed bit
must not give an app more than it was given. The node's own token is in `api-token` (`node.home.home`), and not here.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from hmac import compare_digest
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import structs

from node.home.private_files import replace_file
from node.runtime.errors import ServiceError
from protocol.formats.text import base32_text
from protocol.limits.users import (
    API_TOKEN_NAME_SIZE_MAX,
    API_TOKENS_FILE_SIZE_MAX,
    API_TOKENS_MAX,
    BROWSERS_MAX,
    ENDED_TOKEN_SECONDS,
    ENDED_TOKENS_MAX,
    PAGE_TOKENS_MAX,
)
from ravel.home import read_private
from ravel.types.made import MadeKind
from ravel.types.values import Action

TOKENS_NAME: Final = "tokens.json"
PREFIX: Final = "ravel_"
"""Beginning of a token, by which people and scanners of leaked secrets know it."""
_FORM: Final = re.compile(rf"{PREFIX}[a-z2-7]{{52}}")
_FORMAT: Final = "ravel-tokens1"
_SECRET_SIZE: Final = 32  # bytes
_RARE: Final = frozenset({"origins", "made", "revoked_at"})
"""Fields that are left out where they are empty."""


Kind = Literal["app", "page", "kept", "browser"]
"""Holder of a token: an app; a page on this machine; a browser there that stays signed in; a browser of another machine."""
OF_BROWSERS: Final[tuple[Kind, ...]] = ("kept", "browser")
"""Kinds of tokens that people know by the names of browsers."""


class Made(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A thing that a token's holder made and that outlives the token. Ids are texts, times unix seconds.

    `repo` is its repo, or `REPO:BRANCH` of a branch's link; empty if it has none. `what` tells it from others. `mark` tells
    it from a later one of the same name, if names are used again. `is_begun`: it may have been made, as the entry is
    written before the act and `what` after it.
    """

    kind: MadeKind
    repo: str
    what: str
    at: int
    until: int | None = None
    mark: str = ""
    is_begun: bool = False


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token as it is kept. Repos are ids as text; branches are `REPO:BRANCH`, both ids. Times are unix seconds."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=API_TOKEN_NAME_SIZE_MAX)]
    digest: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    kind: Kind
    actions: tuple[Action, ...]
    created_at: int
    expires_at: int
    repos: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    last_used_at: int | None = None
    origins: tuple[str, ...] = ()
    """Web origins that may use the token, as browsers state them."""
    made: tuple[Made, ...] = ()
    """The oldest first."""
    revoked_at: int | None = None
    """Time of the revocation. The token is kept for the list of what it made."""


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["ravel-tokens1"]
    tokens: Annotated[
        list[Token],
        msgspec.Meta(max_length=API_TOKENS_MAX + PAGE_TOKENS_MAX + BROWSERS_MAX + ENDED_TOKENS_MAX),
    ]
    checksum: str


class TokenFile:
    """The tokens of one node, in memory and in their file. `clock` gives unix seconds. Raises ServiceError `bad_config`."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._path = folder / TOKENS_NAME
        self._clock = clock
        self._tokens: dict[str, Token] = {one.digest: one for one in _load(self._path)}
        self._used: dict[str, int] = {}  # digest -> unix seconds, of uses that are not written yet

    def now(self) -> int:
        """Return the time in Unix seconds."""
        return int(self._clock())

    def tokens(self) -> list[Token]:
        """List all tokens in the order in which they were made, expired and revoked ones too, each with its latest use."""
        return [
            structs.replace(one, last_used_at=self._used.get(one.digest, one.last_used_at))
            for one in self._tokens.values()
        ]

    def find(self, secret: str) -> Token | None:
        """Return the token of that secret, expired or not; None where it was revoked."""
        digest = digest_of(secret)
        found = self._tokens.get(digest)
        # A hash of 256 random bits leaks nothing by the time of a look-up; the comparison is for who replaces the hash.
        is_it = found is not None and found.revoked_at is None and compare_digest(found.digest, digest)
        return found if is_it else None

    def knows_origin(self, origin: str) -> bool:
        """Return True if a token, which may have expired, is for pages of that web origin."""
        return any(origin in one.origins for one in self._tokens.values() if one.revoked_at is None)

    def is_good(self, token: Token) -> bool:
        """Return True if it is neither revoked nor expired."""
        kept = self._tokens.get(token.digest)
        return kept is not None and kept.revoked_at is None and not self.is_expired(token)

    def is_expired(self, token: Token) -> bool:
        """Return True if its time is over."""
        return token.expires_at <= self.now()

    def note_use(self, token: Token) -> None:
        """Note that the token is used now. `save_uses` writes it."""
        self._used[token.digest] = self.now()

    # --- what writes: one at a time, and not in the event loop ---

    def replace(self, tokens: Iterable[Token]) -> None:
        """Replace all tokens by these. Durable when it returns. Raises ServiceError `storage_failed`."""
        kept = {one.digest: one for one in tokens}
        try:
            replace_file(self._path, encode_tokens(kept.values()))
        except OSError as error:
            raise ServiceError(
                "storage_failed",
                f"{self._path} cannot be written: {error}",
                "check the disk and its permissions",
            ) from None
        self._tokens = kept
        for digest in list(self._used):
            written = kept.get(digest)
            if written is None or written.last_used_at == self._used[digest]:
                del self._used[digest]

    def save_uses(self) -> None:
        """Write when tokens were last used, if any was. Raises ServiceError `storage_failed`."""
        if self._used:
            self.replace(self.tokens())


def new_secret() -> str:
    """Make a fresh token: 256 random bits as text."""
    return PREFIX + base32_text(secrets.token_bytes(_SECRET_SIZE))


def is_well_formed(secret: str) -> bool:
    """Return True if a text can be a token of this file at all."""
    return _FORM.fullmatch(secret) is not None


def digest_of(secret: str) -> str:
    """Return what is kept of a token. A secret of 256 random bits needs no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def size_of_made(made: Sequence[Made]) -> int:
    """Return the bytes that things which were made take in the file."""
    return len(msgspec.json.encode(made))


def mark_of(text: str) -> str:
    """Return a short hash that tells a thing from a later one of the same name."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def has_ended(made: Made, now: int) -> bool:
    """Return whether the time of a thing is over."""
    return made.until is not None and made.until <= now


def not_ended(made: Sequence[Made], now: int) -> tuple[Made, ...]:
    """Return the things whose time is not over."""
    return tuple(one for one in made if not has_ended(one, now))


def prune_revoked(tokens: Sequence[Token], now: int) -> list[Token]:
    """Return tokens without the revoked ones that nothing is left of, or that are too old or too many."""
    ended = {
        one.digest: left
        for one in tokens
        if one.revoked_at is not None
        and one.revoked_at > now - ENDED_TOKEN_SECONDS
        and (left := not_ended(one.made, now))
    }
    times = {one.digest: one.revoked_at or 0 for one in tokens}
    kept = sorted(ended, key=lambda digest: times[digest])[-ENDED_TOKENS_MAX:]
    return [
        one if one.revoked_at is None else structs.replace(one, made=ended[one.digest])
        for one in tokens
        if one.revoked_at is None or one.digest in kept
    ]


def encode_tokens(tokens: Iterable[Token]) -> bytes:
    """Encode the file."""
    found = [
        {key: value for key, value in msgspec.to_builtins(one).items() if key not in _RARE or value}
        for one in tokens
    ]
    content = {"format": _FORMAT, "tokens": found, "checksum": _checksum(found)}
    return msgspec.json.encode(content) + b"\n"


def decode_tokens(encoded: bytes, path: Path) -> list[Token]:
    """Decode the tokens of a file. Raises ServiceError `bad_config`."""
    try:
        content = msgspec.json.decode(encoded, type=_Content)
        # Of what was written: a field that has come since would change it.
        is_whole = content.checksum == _checksum(msgspec.json.decode(encoded)["tokens"])
    except (msgspec.DecodeError, ValueError, RecursionError):
        is_whole = False
    if not is_whole:
        raise ServiceError(
            "bad_config",
            f"{path} is damaged: its checksum does not fit, or it is of an unknown form",
            "remove it, which revokes all tokens, and make them again",
        )
    return content.tokens


def _checksum(tokens: object) -> str:
    return hashlib.sha256(msgspec.json.encode(tokens, order="sorted")).hexdigest()[:16]


def _load(path: Path) -> list[Token]:
    return decode_tokens(read_private(path, API_TOKENS_FILE_SIZE_MAX), path) if path.exists() else []
