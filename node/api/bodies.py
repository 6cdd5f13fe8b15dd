"""Bodies of API requests: their fields, and the bound of each. Surplus fields are refused (docs/reference/api.md)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from protocol.content import DictKey, DictValue, SetItem, YjsUpdate
from protocol.limits.formats import (
    ADOPTED_COUNT_MAX,
    DICT_EDIT_COUNT_MAX,
    INVITATION_USE_COUNT_MAX,
    LINK_SIZE_MAX,
    NAME_SIZE_MAX,
    OFFER_NOTE_SIZE_MAX,
    QUORUM_SIGNER_COUNT_MAX,
    SET_EDIT_COUNT_MAX,
    TEXT_SIZE_MAX,
)
from protocol.limits.users import IMPORT_BATCH_COUNT_MAX, IMPORTED_SECONDS_MAX

Name = Annotated[str, Meta(min_length=1, max_length=NAME_SIZE_MAX)]
IdText = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=TEXT_SIZE_MAX)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request's body: surplus fields are refused."""


class Named(_Strict, frozen=True):
    """Creates a repo or a branch."""

    name: Name


class Code(_Strict, frozen=True):
    """Gives a code for the token."""

    code: Annotated[str, Meta(min_length=1, max_length=64)]


class Invitation(_Strict, frozen=True):
    """Makes an invitation."""

    permission: str = "write"
    expires_seconds: Annotated[int, Meta(ge=1, le=366 * 86_400)] = 7 * 86_400
    uses: Annotated[int, Meta(ge=1, le=INVITATION_USE_COUNT_MAX)] = 1


class Quorum(_Strict, frozen=True):
    """Names a quorum."""

    signers: Annotated[list[IdText], Meta(min_length=1, max_length=QUORUM_SIGNER_COUNT_MAX)]
    threshold: Annotated[int, Meta(ge=1, le=QUORUM_SIGNER_COUNT_MAX)]
    removals: bool = False


class Qr(_Strict, frozen=True):
    """What a QR code is to say."""

    text: Annotated[str, Meta(min_length=1, max_length=LINK_SIZE_MAX)]


class Join(_Strict, frozen=True):
    """Joins by an invitation."""

    invitation: Annotated[str, Meta(max_length=2 * LINK_SIZE_MAX)]


class Follow(_Strict, frozen=True):
    """Follows by a read capability."""

    capability: Annotated[str, Meta(max_length=2 * LINK_SIZE_MAX)]


class Grant(_Strict, frozen=True):
    """Grants a permission."""

    user: IdText
    permission: Annotated[str, Meta(max_length=16)]


class Removal(_Strict, frozen=True):
    """Takes rights away; with `person` from all devices of whose the member is one."""

    user: IdText
    keeps: Annotated[str, Meta(max_length=16)] = ""
    person: bool = False


class DeviceInvitation(_Strict, frozen=True):
    """Makes a link for a device."""

    expires_seconds: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 3600


class DeviceJoin(_Strict, frozen=True):
    """Becomes a device."""

    link: Annotated[str, Meta(max_length=2 * LINK_SIZE_MAX)]


class Rekey(_Strict, frozen=True):
    """Seals secrets for a member again."""

    user: IdText


class Leave(_Strict, frozen=True):
    """Leaves a repo."""

    force: bool = False


class Adoption(_Strict, frozen=True):
    """Adopts void commits."""

    commits: Annotated[list[IdText], Meta(min_length=1, max_length=ADOPTED_COUNT_MAX)]


class BranchEdit(_Strict, frozen=True):
    """Names or archives a branch."""

    name: Name | None = None
    archived: bool | None = None


class Compact(_Strict, frozen=True):
    """Compacts a branch, or says what that would let go."""

    dry_run: bool = False
    without_missing: bool = False


class Fork(_Strict, frozen=True):
    """Forks a branch."""

    name: Name
    commit: Annotated[str, Meta(max_length=64)] = ""


class Merge(_Strict, frozen=True):
    """Merges a branch."""

    source: Name


class Offer(_Strict, frozen=True):
    """Offers a branch to a document's inbox."""

    source: Name
    note: Annotated[str, Meta(max_length=OFFER_NOTE_SIZE_MAX)] = ""
    pulls: bool = True


class Answer(_Strict, frozen=True):
    """Answers an offer."""

    accepts: bool


class Tag(_Strict, frozen=True):
    """Names a commit."""

    commit: IdText


class Write(_Strict, frozen=True):
    """Writes a post."""

    text: Text


class SetEdit(_Strict, frozen=True):
    """Adds items to a set and removes others."""

    add: Annotated[list[SetItem], Meta(max_length=SET_EDIT_COUNT_MAX)] = []
    remove: Annotated[list[SetItem], Meta(max_length=SET_EDIT_COUNT_MAX)] = []


class DictEdit(_Strict, frozen=True):
    """Puts values into a dict and erases others."""

    put: Annotated[dict[DictKey, DictValue], Meta(max_length=DICT_EDIT_COUNT_MAX)] = {}
    erase: Annotated[list[DictKey], Meta(max_length=DICT_EDIT_COUNT_MAX)] = []


class TextPush(_Strict, frozen=True):
    """Pushes a Yjs update, in base64."""

    update: YjsUpdate


class Item(_Strict, frozen=True):
    """One commit to import."""

    id: Name
    parents: Annotated[list[Name], Meta(max_length=1000)]
    author: Annotated[str, Meta(max_length=NAME_SIZE_MAX)]
    time: Annotated[int, Meta(ge=-IMPORTED_SECONDS_MAX, le=IMPORTED_SECONDS_MAX)]
    text: Text


class Import(_Strict, frozen=True):
    """Imports commits."""

    items: Annotated[list[Item], Meta(max_length=IMPORT_BATCH_COUNT_MAX)]
    source: Name


class Peer(_Strict, frozen=True):
    """Keeps a peer."""

    address: Annotated[str, Meta(max_length=NAME_SIZE_MAX)]
    peer: Annotated[str, Meta(max_length=64)]
    relay: bool = False
