"""Each method takes what its endpoint gives, which the type checker cannot see: arguments come from a request."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest

from node.api.answers import Answer, list_answers
from node.contract.documents import SHOW_SET
from node.contract.endpoint import QueryParameter
from node.contract.members import GRANT_PERMISSION, LIST_MEMBERS
from node.contract.table import AnyEndpoint
from node.contract.timelines import SHOW_TIMELINE
from tests.support.nodes import open_nodes
from tests.support.served import service_of


def find_faults(answer: Answer) -> list[str]:
    """Return how a method's parameters differ from its endpoint's arguments."""
    given, wanted = argument_types(answer.endpoint), inspect.signature(answer.method).parameters
    faults = [f"its method does not take {name!r}" for name in given if name not in wanted]
    faults += [
        f"its method also needs {name!r}"
        for name, parameter in wanted.items()
        if name not in given and parameter.default is parameter.empty
    ]
    return faults + [
        f"{name!r} is {given[name]}, and the method takes {parameter.annotation}"
        for name, parameter in wanted.items()
        if name in given and not accepts(parameter.annotation, given[name])
    ]


def argument_types(endpoint: AnyEndpoint) -> dict[str, Any]:
    """Return name and type of each argument that a request makes: path, then query, then body."""
    found: dict[str, Any] = {one.name: str for one in endpoint.path_parameters}
    for one in endpoint.query:
        found[one.name] = one.type | None if one.default is None else one.type
    for name, field in endpoint.body_fields.items():
        found[name] = _bare(field.type)
    return found


def accepts(wanted: Any, given: Any) -> bool:  # noqa: ANN401  # annotations have no type of their own
    """Return True if a parameter takes values of a type: its own, or a concrete type of the same items."""
    if wanted == given:
        return True
    abstract, concrete = get_origin(wanted), get_origin(given)
    return (
        isinstance(abstract, type)
        and isinstance(concrete, type)
        and issubclass(concrete, abstract)
        and get_args(wanted) == get_args(given)
    )


def _bare(kind: Any) -> Any:  # noqa: ANN401  # annotations have no type of their own
    """Return a type without its annotated bounds."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return reduce(or_, map(_bare, get_args(kind)))
    if get_args(kind):
        return get_origin(kind)[tuple(map(_bare, get_args(kind)))]
    return kind


async def test_each_method_takes_the_arguments_of_its_endpoint(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (node,):
        answers = list_answers(service_of(node, tmp_path))
    assert {one.endpoint.name: faults for one in answers if (faults := find_faults(one))} == {}
    methods = {one.endpoint: one.method for one in answers}
    surplus = QueryParameter(name="colour", type=str, description="None.")
    for entry, changed, fault in (
        (LIST_MEMBERS, replace(LIST_MEMBERS, path="/members"), "also needs 'repo'"),
        (LIST_MEMBERS, replace(LIST_MEMBERS, query=(surplus,)), "does not take 'colour'"),
        (SHOW_SET, replace(SHOW_SET, query=()), "also needs 'offset'"),
        (
            SHOW_TIMELINE,
            replace(SHOW_TIMELINE, query=(replace(SHOW_TIMELINE.query[0], type=str),)),
            "'limit' is",
        ),
    ):
        assert fault in "; ".join(find_faults(Answer(changed, methods[entry])))


def test_arguments_come_from_path_query_and_body_without_their_bounds() -> None:
    assert argument_types(GRANT_PERMISSION) == {"repo": str, "user": str, "permission": str}
    found = argument_types(SHOW_TIMELINE)
    assert (found["limit"], found["before"], found["order"]) == (int, str | None, str)


@pytest.mark.parametrize(
    "wanted, given, fits",
    [
        (str, str, True),
        (str | None, str | None, True),
        (str, str | None, False),
        (Sequence[str], list[str], True),
        (Mapping[str, str], dict[str, str], True),
        (Sequence[int], list[str], False),
        (list[str], tuple[str], False),
        (bool, int, False),
    ],
)
def test_a_parameter_takes_its_type_or_a_more_concrete_one(wanted: object, given: object, fits: bool) -> None:
    assert accepts(wanted, given) is fits
