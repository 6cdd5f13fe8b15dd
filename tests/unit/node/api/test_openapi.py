"""The API describes itself: a valid OpenAPI 3.1 document, made from the table."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from node.api.openapi import describe_document
from node.contract.endpoint import KEY_HEADER
from node.contract.table import ENDPOINTS
from node.runtime.errors import ERROR_KINDS
from node.runtime.version import VERSION
from tests.support.served import served


@pytest.mark.slow
async def test_the_document_is_served_with_the_token_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as one:
        answer = await one.client.get("/api/v1/openapi.json")
        assert answer.json() == json.loads(json.dumps(describe_document()))
        refused = await one.client.get("/api/v1/openapi.json", headers={"Authorization": ""})
        assert refused.status_code == 401


@pytest.mark.extended
@pytest.mark.slow
def test_the_document_is_openapi_3_1() -> None:
    document = json.loads(json.dumps(describe_document()))
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", VERSION)


def _operation(name: str) -> Any:  # noqa: ANN401  # any JSON
    endpoint = next(one for one in ENDPOINTS if one.name == name)
    return describe_document()["paths"][endpoint.path][endpoint.method.lower()]


def test_every_endpoint_is_described() -> None:
    for endpoint in ENDPOINTS:
        found = _operation(endpoint.name)
        assert found["operationId"] == endpoint.name
        assert ("requestBody" in found) == (endpoint.request is not None or endpoint.takes_bytes)
        statuses = {str(ERROR_KINDS[code].http_status) for code in endpoint.error_codes}
        assert statuses < found["responses"].keys()


def test_streams_uploads_and_downloads_are_described() -> None:
    edits = _operation("follow_edits")
    assert edits["responses"]["200"]["content"].keys() == {"application/json", "text/event-stream"}
    assert edits["x-events"]["edit"]["data"] == {"$ref": "#/components/schemas/EditView"}
    assert _operation("add_file")["requestBody"]["content"].keys() == {"application/octet-stream"}
    many = _operation("add_files")
    assert many["requestBody"]["content"].keys() == {"application/octet-stream"}
    assert many["x-entry"] == {"$ref": "#/components/schemas/FileHead"}
    assert {"200", "206", "416"} < _operation("get_file")["responses"].keys()


def test_bounds_and_meanings_are_in_the_schemas() -> None:
    schemas = describe_document()["components"]["schemas"]
    text = schemas["PostRequest"]["properties"]["text"]
    assert text["maxLength"] > 1000
    assert schemas["PostRequest"]["additionalProperties"] is False
    assert "description" in schemas["BranchView"]["properties"]["pending"]
    (limit,) = [one for one in _operation("show_past")["parameters"] if one["name"] == "limit"]
    assert limit["schema"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}


def test_texts_that_have_a_form_state_it() -> None:
    post = _operation("write_post")
    key = next(one for one in post["parameters"] if one["name"] == KEY_HEADER)
    assert key["schema"]["pattern"] == "^[!-~]{1,128}$"
    kind = _operation("show_tangle")["parameters"][1]
    assert kind["schema"]["enum"] == ["branch", "feed", "group", "members", "epoch", "thread"]
    assert _operation("answer_offer")["parameters"][1]["schema"]["pattern"] == "^[a-z2-7]{4,52}$"
    schemas = describe_document()["components"]["schemas"]
    for name, field, form in (
        ("JoinRequest", "invitation", "ravel:invite:aaaa"),
        ("JoinRequest", "invitation", " ravel:ask:aa aa\n"),
        ("FollowRequest", "capability", "ravel:branch:aaaa"),
        ("DeviceJoinRequest", "link", "ravel:device:aaaa"),
        ("RelayJoin", "link", "ravel:relay:aaaa"),
        ("RemovalRequest", "keeps", ""),
        ("GrantRequest", "permission", "owner"),
    ):
        pattern = schemas[name]["properties"][field]["pattern"]
        assert re.search(pattern, form), name
        assert not re.search(pattern, "nonsense"), name


def test_a_state_of_the_node_that_its_user_can_change_is_no_fault_of_the_node() -> None:
    assert ERROR_KINDS["bad_config"].http_status == 409, "monitors count 5xx as faults"
