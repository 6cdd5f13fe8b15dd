"""The reference pages say what the code says."""

import pytest

from tests.reference import FOLDER, PROTOCOL, TABLES_PAGE, pages, with_tables
from tests.support import js_client
from tests.support.machine_tables import machines_page, with_drawing


@pytest.mark.slow
def test_the_reference_is_what_the_code_makes() -> None:
    made = pages()
    for name, text in made.items():
        assert (FOLDER / name).read_text() == text, f"{name} is out of date: make reference"


@pytest.mark.slow
def test_the_javascript_client_is_what_the_code_makes() -> None:
    for path, text in js_client.files().items():
        assert path.read_text() == text, f"{path.name} is out of date: make reference"


def test_the_drawing_in_the_protocol_is_that_of_the_table() -> None:
    document = PROTOCOL.read_text()
    assert document.count("stateDiagram-v2") == 1
    assert with_drawing(document) == document, "make reference"


def test_the_list_of_tables_is_that_of_their_definitions() -> None:
    page = TABLES_PAGE.read_text()
    assert with_tables(page) == page, "make reference"
    assert with_tables(page.replace("### widths", "### heights")) == page


def test_a_drawing_that_was_changed_by_hand_is_seen() -> None:
    changed = PROTOCOL.read_text().replace("said --> planning : summary", "said --> heard : summary")
    assert with_drawing(changed) != changed


def test_the_page_of_machines_has_each_cell_that_refuses() -> None:
    assert "| over_more | answering | refuse: `unasked_reconciliation` |  |" in machines_page("")
