"""Calls: search. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.search import SearchResult

SEARCH: Final[Operation[SearchResult]] = Operation(
    "GET",
    "/search",
    "search.SearchResult",
    defaults={
        "text": "",
        "repo": "",
        "branch": "",
        "author": "",
        "since": None,
        "until": None,
        "limit": 20,
        "after": "",
    },
)


class SearchCalls(SyncCaller):
    """Methods that wait for the answer."""

    def search(
        self,
        *,
        text: str = "",
        repo: str = "",
        branch: str = "",
        author: str = "",
        since: int | None = None,
        until: int | None = None,
        limit: int = 20,
        after: str = "",
    ) -> SearchResult:
        """Search posts, names of files, texts, and names of branches and tags.

        A hit has all words of the text. `"words in quotes"` stand in this order; `meet*` stands for every word
        that begins so, with three letters or more. Case, and different encodings of one character, make no
        difference. A text is found some seconds after it was changed.
        """
        return self._call(
            SEARCH,
            {
                "text": text,
                "repo": repo,
                "branch": branch,
                "author": author,
                "since": since,
                "until": until,
                "limit": limit,
                "after": after,
            },
        )
