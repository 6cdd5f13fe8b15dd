"""The report of an analysis in Chromium: each table is wholly on a page of a usual width."""

from pathlib import Path
from typing import Any

import pytest

from analytics.report import page
from analytics.report.flows import render_flows
from analytics.report.page import Names
from ravel.exports.schema import text_id
from tests.e2e.browser import CHROMIUM
from tests.e2e.chromium import chromium
from tests.support.exports import id_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]
PEOPLE = [id_of(f"person {number}") for number in range(12)]


def _rows(query: str) -> list[dict[str, Any]]:
    if "FROM reply_nodes" in query:
        return [{"id": one, "given": 12_345, "received": 12_345} for one in PEOPLE]
    if "FROM reply_edges" in query:
        return [{"source": one, "target": other, "weight": 12_345} for one in PEOPLE for other in PEOPLE]
    return []


def test_who_answers_whom_is_as_wide_as_the_page_whatever_twelve_people_are_called(tmp_path: Path) -> None:
    long = Names(
        {text_id(PEOPLE[0]): "Konstantinopolitanischer", text_id(PEOPLE[7]): "Anna Maria von und zu"}
    )
    for number, names in enumerate((Names({}), long)):
        file = tmp_path / f"{number}.html"
        file.write_text(page.render("a report", "of a test", render_flows(_rows, names)), encoding="utf-8")
        with chromium(tmp_path / f"profile-{number}") as browser:
            browser.show(1280, 900, "light")
            browser.open(file.as_uri())
            wide = "document.querySelector('.matrix')"
            browser.until(f"{wide} !== null")
            assert browser.evaluate(f"{wide}.scrollWidth <= {wide}.clientWidth")
            assert browser.evaluate(f"{wide}.clientWidth") > 900
