"""Each method takes what its endpoint gives. A mismatch is found at the start, not at the first request."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from node.api.answers import Answer, list_answers
from node.api.binding import WrongArguments, accepts, argument_types, check_arguments
from node.contract.documents import SHOW_SET
from node.contract.endpoint import QueryParameter
from node.contract.members import GRANT_PERMISSION, LIST_MEMBERS
from node.contract.timelines import SHOW_TIMELINE
from tests.support.nodes import open_nodes
from tests.support.served import service_of


async def test_a_method_that_does_not_fit_its_endpoint_stops_the_start(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (node,):
        answers = list_answers(service_of(node, tmp_path))
    check_arguments(answers)
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
        with pytest.raises(WrongArguments, match=fault):
            check_arguments([Answer(changed, methods[entry])])


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
