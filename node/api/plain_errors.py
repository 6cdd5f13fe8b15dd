"""Says in plain words why a request's JSON is not what it must be: which field, and what it may be."""

import re
from typing import Final

_AT: Final = re.compile(r"(.*) - at `\$\.?([^`]*)`", re.DOTALL)
_LENGTH: Final = re.compile(r"Expected `(str|array)` of length (>=|<=) ([0-9]+)")
_NUMBER: Final = re.compile(r"Expected `int` (>=|<=) (-?[0-9]+)")
_TYPE: Final = re.compile(r"Expected `(.+)`, got `(.+)`")
_MISSING: Final = re.compile(r"Object missing required field `(.+)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.+)`")
_VALUE: Final = re.compile(r"Invalid enum value '(.*)'", re.DOTALL)
_PATTERN: Final = re.compile(r"Expected `str` matching regex ")
_TYPES: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def describe_error(message: str) -> str:
    """Turn msgspec's message into a sentence that names the field. Return other messages as they are."""
    found = _AT.fullmatch(message)
    problem, field = (found[1], found[2].lstrip(".")) if found else (message, "")
    subject = field or "the request"
    if length := _LENGTH.fullmatch(problem):
        unit = "characters" if length[1] == "str" else "items"
        if length[2] == ">=" and length[3] == "1":
            return f"{subject} is empty"
        return f"{subject} has {'fewer' if length[2] == '>=' else 'more'} than {length[3]} {unit}"
    if number := _NUMBER.fullmatch(problem):
        return f"{subject} is {'below' if number[1] == '>=' else 'above'} {number[2]}"
    if kind := _TYPE.fullmatch(problem):
        wanted, got = (
            " or ".join(_TYPES.get(one, one) for one in text.split(" | ")) for text in kind.groups()
        )
        return f"{subject} must be {wanted}, and is {got}"
    if value := _VALUE.fullmatch(problem):
        return f"{subject} does not take the value '{value[1]}'"
    if _PATTERN.match(problem):
        return f"{subject} is not of the form that it has to have"
    if missing := _MISSING.fullmatch(problem):
        return f"{f'{field}.' if field else ''}{missing[1]} is missing"
    if unknown := _UNKNOWN.fullmatch(problem):
        return f"{f'{field}.' if field else ''}{unknown[1]} is no field of this request"
    return f"the request is not of the expected form: {message}"
