"""How people are printed: by name where one is known, else by the beginning of the id."""

import re
from collections.abc import Mapping
from typing import Any, Final

ID_WIDTH: Final = 12
"""Characters of an id in a table; `node.ingest.people` marks names that could pass for one."""
_IMPORTED: Final = " (imported)"
_MARK: Final = re.compile(r" \[[a-z2-7]+\]$")


def person(name: str, user: str, width: int = 24) -> str:
    """A name as an answer gives it, cut to a width, else the beginning of the id. What tells look-alikes apart stays."""
    if not name:
        return user[:ID_WIDTH]
    found = _MARK.search(name)
    mark = found[0] if found else ""
    plain = name.removesuffix(mark)
    room = width - len(mark)
    return (plain if len(plain) <= room else plain[: max(room - 1, 1)] + "…") + mark


def author_of(item: Mapping[str, Any], width: int = 24) -> str:
    """Who is shown as the author: of what came from elsewhere the one there, else the person whose device wrote it.

    What an importer says of an author is marked, so that it cannot pass for a member's name.
    """
    imported = item.get("imported_author")
    if imported:
        return person(f"{imported}", "", width - len(_IMPORTED)) + _IMPORTED
    origin = item.get("origin")
    if origin:
        return person(origin["author_name"], origin["author"], width)
    return person(item["author_name"], item.get("person", item["author"]), width)
