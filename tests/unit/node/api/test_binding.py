"""Each entry of the table fits the method of the service that answers it; what does not fit is found at the start."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from node.api.binding import WrongBinding, accepts, argument_types, check_bindings
from node.contract.documents import SHOW_SET
from node.contract.endpoint import QueryParameter
from node.contract.members import GRANT_PERMISSION, LIST_MEMBERS
from node.contract.peers import PeerList
from node.contract.table import ENDPOINTS, AnyEndpoint
from node.contract.timelines import SHOW_TIMELINE
from tests.support.nodes import open_nodes
from tests.support.served import app_of, service_of


async def test_every_entry_fits_its_method(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (node,):
        service = service_of(node, tmp_path)
        check_bindings(ENDPOINTS, service)
        app_of(service)  # which has a handler for each of the others


async def test_what_does_not_fit_stops_the_start(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (node,):
        service = service_of(node, tmp_path)
        surplus = QueryParameter(name="colour", type=str, description="None.")
        for entry, fault in (
            (replace(LIST_MEMBERS, service="members.nothing"), "has no attribute 'nothing'"),
            (replace(LIST_MEMBERS, path="/members"), "also needs 'repo'"),
            (replace(LIST_MEMBERS, query=(surplus,)), "does not take 'colour'"),
            (
                replace(cast(AnyEndpoint, LIST_MEMBERS), answer=PeerList),
                "and not <class 'node.contract.peers.PeerList'>",
            ),
            (replace(LIST_MEMBERS, service="merging.state"), "also needs 'limit'"),
            (
                replace(SHOW_SET, service="texts"),
                "it is not <class 'node.contract.document_values.ValuesService'>",
            ),
            (replace(SHOW_SET, query=()), "also needs 'offset'"),
            (replace(SHOW_TIMELINE, query=(replace(SHOW_TIMELINE.query[0], type=str),)), "'limit' is"),
        ):
            with pytest.raises(WrongBinding, match=fault):
                check_bindings([entry], service)


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
