"""The code makes exactly the committed vectors, and refuses the negative ones with their reasons."""

import json
from pathlib import Path

import pytest

from protocol.signing import BadSignature, verify_signature
from tests.vectors.defects import open_vector
from tests.vectors.generate import FILES, render

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", FILES)
def test_the_code_makes_the_committed_vectors(name: str) -> None:
    assert render(name) == (FOLDER / name).read_text(encoding="utf-8"), (
        "run `make vectors` and read the difference"
    )


def test_every_file_is_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in readme for path in FOLDER.glob("*.json"))


REFUSED = json.loads((FOLDER / "refused.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector["defect"])
def test_what_must_be_refused_is_with_its_reason(vector: dict[str, str]) -> None:
    assert open_vector(vector) == vector["reason"]


def test_the_reasons_stand_in_the_docs() -> None:
    text = (FOLDER.parents[1] / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert [reason for reason in {vector["reason"] for vector in REFUSED} if f"`{reason}`" not in text] == []


def test_no_signature_that_libraries_disagree_on_is_taken() -> None:
    cases = json.loads((FOLDER / "ed25519_speccheck.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 12
    for case in cases:
        key, message, signature = (bytes.fromhex(case[name]) for name in ("key", "message", "signature"))
        with pytest.raises(BadSignature):
            verify_signature(key, message, signature)
