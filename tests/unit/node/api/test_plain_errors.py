"""What is wrong with a request's JSON is said in words, with the field."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from node.api.plain_errors import describe_error


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: Annotated[int, Meta(ge=1, le=9)] = 1


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=3)]
    size: int | None = None
    parts: Annotated[list[Inner], Meta(max_length=1)] = []
    token: Annotated[str, Meta(min_length=2)] = "xx"
    is_good: Annotated[str, Meta(pattern="^[ab]$")] = "a"
    may: Literal["read", "write"] = "read"


@pytest.mark.parametrize(
    "text, said",
    [
        ('{"name": ""}', "name is empty"),
        ('{"name": "abcd"}', "name has more than 3 characters"),
        ('{"name": "a", "token": "x"}', "token has fewer than 2 characters"),
        ("{}", "name is missing"),
        ('{"name": "a", "nme": 1}', "nme is no field of this request"),
        ('{"name": 1}', "name must be a text, and is a whole number"),
        ('{"name": "a", "size": "1"}', "size must be a whole number or null, and is a text"),
        ('{"name": "a", "parts": [{"number": 0}]}', "parts[0].number is below 1"),
        ('{"name": "a", "parts": [{"number": 10}]}', "parts[0].number is above 9"),
        ('{"name": "a", "parts": [{}, {}]}', "parts has more than 1 items"),
        ("[]", "the request must be an object, and is a list"),
        ('{"name": "a", "is_good": "c"}', "is_good is not of the form that it has to have"),
        ('{"name": "a", "may": "c"}', "may does not take the value 'c'"),
    ],
)
def test_the_field_and_what_it_may_be_are_said(text: str, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(text, type=Asked)
    assert describe_error(str(caught.value)).startswith(said)
