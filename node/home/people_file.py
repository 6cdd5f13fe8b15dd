"""The file of names in the node's folder: what this user calls itself, and what it calls others. It never travels.

A backup has it, since it lies beside the keys. It is written whole, by the daemon alone once there is one.
"""

from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from node.home.private_files import replace_file
from node.runtime.errors import ServiceError
from protocol.codec import DecodeError
from protocol.formats.profiles import find_fault, tidy_name
from protocol.formats.text import id_text, parse_id
from protocol.ids import AnyId
from protocol.limits.formats import PROFILE_COLOR_COUNT, TIMESTAMP_MAX_MS
from protocol.limits.users import PETNAMES_COUNT_MAX, PETNAMES_FILE_SIZE_MAX
from ravel.home import read_private

PEOPLE_NAME: Final = "people.json"


class OwnProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name that this user calls itself, since `stated_at` (unix milliseconds; 0: it never said)."""

    name: str | None = None
    color: Annotated[int, Meta(ge=0, lt=PROFILE_COLOR_COUNT)] | None = None
    stated_at: Annotated[int, Meta(ge=0, le=TIMESTAMP_MAX_MS)] = 0


class PeopleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file; `petnames` of users and names of `peers` by the text of the id."""

    me: OwnProfile = OwnProfile()
    petnames: Annotated[dict[str, str], Meta(max_length=PETNAMES_COUNT_MAX)] = {}
    peers: Annotated[dict[str, str], Meta(max_length=PETNAMES_COUNT_MAX)] = {}

    def names(self) -> tuple[dict[AnyId, str], dict[AnyId, str]]:
        """Return the names of users, and of peers, by id. Raises DecodeError."""
        users, peers = (
            {parse_id(text): name for text, name in one.items()} for one in (self.petnames, self.peers)
        )
        return users, peers


def check_person_name(typed: str) -> str:
    """Return a name of a person as it is kept. Raises ServiceError `bad_request`."""
    name = tidy_name(typed)
    fault = find_fault(name)
    if fault:
        raise ServiceError("bad_request", f"a person's name {fault}", "choose another name")
    return name


def read_people(home: Path) -> PeopleFile:
    """Read the names of a folder; none where there is no file. Raises ServiceError `bad_config`."""
    path = home / PEOPLE_NAME
    if not path.exists():
        return PeopleFile()
    try:
        found = msgspec.json.decode(read_private(path, PETNAMES_FILE_SIZE_MAX), type=PeopleFile)
        found.names()
        faulty = [
            name
            for name in (*found.petnames.values(), *found.peers.values(), found.me.name)
            if name is not None
        ]
        faulty = [name for name in faulty if find_fault(name)]
    except (msgspec.MsgspecError, DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from None
    if faulty:
        raise _damaged(path, f"a name {find_fault(faulty[0])}")
    return found


def write_people(home: Path, people: PeopleFile) -> None:
    """Keep names. Durable when it returns. Raises ServiceError `storage_failed`."""
    try:
        replace_file(home / PEOPLE_NAME, msgspec.json.format(msgspec.json.encode(people), indent=1) + b"\n")
    except OSError as error:
        raise ServiceError("storage_failed", f"names cannot be kept: {error}", "check the disk") from None


def with_petname(people: PeopleFile, raw: AnyId, name: str | None, *, is_peer: bool) -> PeopleFile:
    """Return the file with a name for a user or peer, or (None) without. Raises ServiceError `bad_request` if it is full."""
    names = dict(people.peers if is_peer else people.petnames)
    names.pop(id_text(raw), None)
    if name is not None:
        names[id_text(raw)] = name
    if len(names) > PETNAMES_COUNT_MAX:
        raise ServiceError(
            "bad_request", f"a node keeps {PETNAMES_COUNT_MAX} names", "remove one: ravel name USER --remove"
        )
    if is_peer:
        return msgspec.structs.replace(people, peers=names)
    return msgspec.structs.replace(people, petnames=names)


def _damaged(path: Path, problem: str) -> ServiceError:
    return ServiceError(
        "bad_config",
        f"{path} is damaged: {problem}",
        "restore it from a backup, or remove it: names are lost",
    )
