"""The table of endpoints is whole and unambiguous by itself."""

import re
from typing import Any, get_args, get_type_hints, is_typeddict

import msgspec
import pytest

from node.content.merge_changes import LINE_LENGTH_MAX
from node.contract import table
from node.contract.endpoint import PATH_PARAMETERS, PREFIX, Endpoint
from node.contract.inbox import (
    OFFERED_AUTHORS_SHOWN_MAX,
    OFFERED_DOCUMENTS_SHOWN_MAX,
    OFFERED_LINES_SHOWN_MAX,
    OFFERED_POSTS_SHOWN_MAX,
)
from node.contract.table import ENDPOINTS, ROUTED, SUBJECTS, AnyEndpoint
from node.runtime.errors import ERROR_KINDS
from protocol.limits.formats import PROFILE_COLOR_COUNT
from protocol.limits.peers import STATED_COUNT_MAX
from protocol.limits.users import (
    COMMENTS_LOOKED_MAX,
    HELPERS_MAX,
    QUOTE_LENGTH_MAX,
    TEXT_FAULTS_SHOWN_MAX,
    UNSEEN_COUNT_MAX,
    UNSEEN_OPENED_MAX,
)
from ravel.types.commits import ReplyTo
from ravel.types.documents import TextView
from ravel.types.inbox import CommentList, OfferedDocument, OfferedLine, OfferPreview
from ravel.types.members import MemberView
from ravel.types.peers import TopicView
from ravel.types.repos import RepoStanding
from ravel.types.unseen import UnseenBranch

EACH = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)


def test_each_endpoint_has_a_name_and_a_place_of_its_own() -> None:
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)
    assert len({(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}) == len(ENDPOINTS)
    assert sorted(ROUTED, key=lambda one: one.name) == sorted(ENDPOINTS, key=lambda one: one.name)


def test_each_entry_is_called_like_its_constant() -> None:
    modules = [
        module for module in vars(table).values() if getattr(module, "__package__", "") == "node.contract"
    ]
    assert sum(len(group) for group in SUBJECTS.values()) == len(ENDPOINTS)
    for module in modules:
        for constant, value in vars(module).items():
            if isinstance(value, Endpoint):
                assert constant == value.name.upper()


@EACH
def test_an_entry_is_written_as_others_are(endpoint: AnyEndpoint) -> None:
    assert re.fullmatch(r"(/[a-z.]+|/\{[a-z]+\})+", endpoint.path)
    assert endpoint.summary.endswith(".")
    assert endpoint.summary[0].isupper()
    assert set(endpoint.error_codes) <= ERROR_KINDS.keys()
    names = [*(one.name for one in endpoint.path_parameters), *(one.name for one in endpoint.query)]
    names += endpoint.body_fields
    assert len(set(names)) == len(names), "each argument of the service has one place"
    assert endpoint.request is None or endpoint.method in ("POST", "PUT")
    assert endpoint.request is None or not endpoint.query
    assert endpoint.is_download or is_typeddict(endpoint.answer) or endpoint.name == "describe_api"
    assert endpoint.entry is None or endpoint.takes_bytes
    assert endpoint.line is None or (endpoint.takes_bytes and endpoint.entry is None)
    for one in endpoint.query:
        if one.type is int and one.default is not None:
            assert one.minimum <= int(one.default) <= one.maximum


def test_each_path_parameter_is_used() -> None:
    assert {one.name for endpoint in ENDPOINTS for one in endpoint.path_parameters} == PATH_PARAMETERS.keys()


def test_a_path_that_ends_in_a_parameter_goes_before_one_that_ends_in_a_word() -> None:
    order = [endpoint.path for endpoint in ROUTED]
    assert order.index("/repos/{repo}/tangles/{kind}") < order.index("/repos/{repo}/members")
    assert order.index("/repos/{repo}/members") < order.index("/branches/{branch}/files/{file}")


@EACH
def test_no_answer_is_left_open(endpoint: AnyEndpoint) -> None:
    if endpoint.is_download or endpoint.name == "describe_api":
        return

    values = endpoint.answer.__module__ in ("ravel.types.json_documents", "ravel.types.document_queries")

    def check(kind: Any) -> None:  # noqa: ANN401  # any type
        assert kind is not Any or values, "values of apps alone are of any type"
        for part in get_type_hints(kind).values() if is_typeddict(kind) else get_args(kind):
            if isinstance(part, type) or get_args(part):
                check(part)

    check(endpoint.answer)
    msgspec.json.schema(endpoint.answer)


@pytest.mark.parametrize(
    "kind, limit",
    [
        (CommentList, COMMENTS_LOOKED_MAX),
        (OfferPreview, OFFERED_AUTHORS_SHOWN_MAX),
        (OfferPreview, OFFERED_DOCUMENTS_SHOWN_MAX),
        (OfferPreview, OFFERED_POSTS_SHOWN_MAX),
        (OfferedDocument, OFFERED_LINES_SHOWN_MAX),
        (OfferedLine, LINE_LENGTH_MAX),
        (MemberView, PROFILE_COLOR_COUNT),
        (ReplyTo, QUOTE_LENGTH_MAX),
        (RepoStanding, HELPERS_MAX),
        (TextView, TEXT_FAULTS_SHOWN_MAX),
        (TopicView, STATED_COUNT_MAX),
        (UnseenBranch, UNSEEN_COUNT_MAX),
        (UnseenBranch, UNSEEN_OPENED_MAX),
    ],
)
def test_types_of_answers_state_the_limits_of_this_node(kind: type, limit: int) -> None:
    """They stand in the client, which knows no limits of the node's."""
    assert re.search(rf"\b{limit}\b", str(msgspec.json.schema(kind)).replace(",", ""))


def test_the_prefix_is_that_of_the_version() -> None:
    assert PREFIX == "/api/v1"
