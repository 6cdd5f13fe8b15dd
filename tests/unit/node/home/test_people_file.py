"""The file of names: private, whole or not at all, and bounded."""

import stat
from pathlib import Path

import pytest

from node.home.people_file import (
    PEOPLE_NAME,
    OwnProfile,
    PeopleFile,
    check_person_name,
    read_people,
    with_petname,
    write_people,
)
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import AnyId
from protocol.limits.users import PETNAMES_COUNT_MAX, PETNAMES_FILE_SIZE_MAX

ANN, BEN = AnyId(b"a" * 32), AnyId(b"b" * 32)


def test_names_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    assert read_people(tmp_path) == PeopleFile()
    people = with_petname(PeopleFile(OwnProfile("Zoë", 3, 7)), ANN, "Ann", is_peer=False)
    people = with_petname(people, BEN, "laptop", is_peer=True)
    write_people(tmp_path, people)
    assert stat.S_IMODE((tmp_path / PEOPLE_NAME).stat().st_mode) == 0o600
    assert read_people(tmp_path) == people
    assert people.names() == ({ANN: "Ann"}, {BEN: "laptop"})
    assert with_petname(people, ANN, None, is_peer=False).petnames == {}
    assert with_petname(people, ANN, None, is_peer=True) == people


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"me": 1}',
        b'{"other": {}}',
        b'{"petnames": {"abc": "Ann"}}',
        b'{"me": {"name": "A\xe2\x80\xaeB"}}',
        b'{"me": {"color": 16}}',
        b'{"petnames": {"%s": ""}}' % id_text(ANN).encode(),
        b'{"peers": {"%s": " "}}' % id_text(ANN).encode(),
    ],
)
def test_a_damaged_file_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PEOPLE_NAME).write_bytes(content)
    (tmp_path / PEOPLE_NAME).chmod(0o600)
    with pytest.raises(ServiceError) as caught:
        read_people(tmp_path)
    assert caught.value.code == "bad_config"
    assert PEOPLE_NAME in caught.value.message


def test_a_file_that_others_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / PEOPLE_NAME).write_bytes(b"{}")
    (tmp_path / PEOPLE_NAME).chmod(0o644)
    with pytest.raises(ServiceError, match="read by others"):
        read_people(tmp_path)


def test_as_many_names_as_may_be_fit_the_file() -> None:
    longest = "\U0001f600" * 64
    names = {id_text(AnyId(number.to_bytes(32, "big"))): longest for number in range(PETNAMES_COUNT_MAX)}
    full = PeopleFile(petnames=names)
    with pytest.raises(ServiceError, match=str(PETNAMES_COUNT_MAX)):
        with_petname(full, ANN, "Ann", is_peer=False)
    assert 2 * sum(len(name.encode()) + 52 + 16 for name in names.values()) < PETNAMES_FILE_SIZE_MAX


def test_what_is_no_name_is_refused() -> None:
    assert check_person_name("Zoe\u0308") == "Zo\u00eb"
    with pytest.raises(ServiceError, match=r"U\+202E"):
        check_person_name("A\u202eB")
