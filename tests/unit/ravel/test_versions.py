"""Answers of an older or newer node, and of what is no node: each has a stated outcome."""

import pytest

from ravel import RavelError
from ravel.callers import operation_of
from ravel.calls.all_calls import AllCalls
from ravel.errors import error_of
from ravel.target import find_target

WRITE_POST = operation_of(AllCalls.write_post)
WRITTEN = '{"commit":"c","rank":%s,"branch":"b"%s}'


def test_what_a_newer_node_adds_is_left_out() -> None:
    assert WRITE_POST.read((WRITTEN % (1, ',"later":{"x":1}')).encode()) == {
        "commit": "c",
        "rank": 1,
        "branch": "b",
    }


def test_a_code_that_a_newer_node_says_is_handed_on() -> None:
    error = error_of(409, b'{"error":{"code":"of_a_later_version","message":"m","next":"n","more":1}}')
    assert (error.code, error.message, error.advice) == ("of_a_later_version", "m", "n")
    assert error_of(400, b'{"error":{"code":"bad_request"}}').advice == ""


@pytest.mark.parametrize(
    "content",
    [
        b'{"commit":"c","branch":"b"}',  # of an older node
        (WRITTEN % ('"1"', "")).encode(),
        (WRITTEN % ("1.5", "")).encode(),
        (WRITTEN % ("null", "")).encode(),
        b"[]",
        b"",
        b"<html>",
        b"[" * 100_000,
        b'{"commit":"\xff","rank":1,"branch":"b"}',
    ],
)
def test_an_answer_without_what_it_should_have_is_incompatible(content: bytes) -> None:
    with pytest.raises(RavelError) as caught:
        WRITE_POST.read(content)
    assert caught.value.code == "incompatible"
    assert "same version" in caught.value.advice


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, -(2**70), 10**300])
def test_huge_numbers_come_as_they_are(number: int) -> None:
    assert WRITE_POST.read((WRITTEN % (number, "")).encode())["rank"] == number


def test_any_object_is_a_description() -> None:
    assert operation_of(AllCalls.describe_api).read(b'{"openapi":"3.1"}') == {"openapi": "3.1"}
    with pytest.raises(RavelError, match="cannot read"):
        operation_of(AllCalls.list_tags).read(b'{"tags":{}}')


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:7475",
        "ftp://127.0.0.1",
        "http://",
        "http://127.0.0.1:99999",
        "http://a:b@c",
        "http://c?x=1",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(RavelError, match="is not the address") as caught:
        find_target(url=url, token="t")
    assert caught.value.code == "bad_request"


@pytest.mark.parametrize("token", ["a\r\nX: y", "é", "a b", "a\x00"])
def test_what_cannot_be_a_token_is_not_sent(token: str) -> None:
    with pytest.raises(RavelError, match="characters that no token has") as caught:
        find_target(url="http://127.0.0.1:1", token=token)
    assert caught.value.code == "bad_request"


def test_an_address_needs_a_token_and_goes_without_a_folder() -> None:
    with pytest.raises(RavelError, match="a token is needed"):
        find_target(url="http://127.0.0.1:1")
    with pytest.raises(RavelError, match="not for both"):
        find_target("/tmp", "http://127.0.0.1:1", "t")  # noqa: S108  # never looked at
