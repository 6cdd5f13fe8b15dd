"""What the how-to for apps shows in "Keep and find" runs as it stands there, and gives what it says."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.cluster import Peer, until

pytestmark = [pytest.mark.slow, pytest.mark.extended]
PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "write-an-app.md"


def test_the_lines_of_the_page_run(standing: Peer) -> None:
    section = PAGE.read_text().partition("## Keep and find\n")[2].partition("\n## ")[0]
    keep, find = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {"client": standing.client}
    exec(keep, names)  # noqa: S102  # lines of our own page
    assert names["said"] == ["On tangles", "Worth reading twice."]
    assert names["marks"][names["post"]] == "read"
    assert {"bread", "tea"} <= set(names["items"])

    def is_found() -> bool:
        exec(find, names)  # noqa: S102  # a snippet of the docs
        return ("post", names["post"], "On tangles") in names["hits"]

    until(is_found, "the index")
    window = standing.client.show_timeline("notes:main", order="time", limit=1)
    older = standing.client.show_timeline("notes:main", order="time", limit=1, before=str(window["previous"]))
    assert window["items"] != older["items"]
