"""Search: posts, names of files, texts, and names of branches and tags that have the words of a query."""

from typing import Final

from node.contract.access import READ_ANY
from node.contract.endpoint import Endpoint, QueryParameter, limit_parameter
from protocol.limits.users import SEARCH_WINDOW_MAX
from ravel.types.search import SearchResult

SEARCH: Final = Endpoint(
    name="search",
    method="GET",
    path="/search",
    scopes=READ_ANY,
    summary="Search posts, names of files, texts, and names of branches and tags.",
    details=(
        'A hit has all words of the text. `"words in quotes"` stand in this order; `meet*` stands for every word that '
        "begins so, with three letters or more. Case, and different encodings of one character, make no difference. A text "
        "is found some seconds after it was changed."
    ),
    query=(
        QueryParameter(name="text", type=str, default="", description="What to look for; required."),
        QueryParameter(name="repo", type=str, default="", description="In this repo alone."),
        QueryParameter(name="branch", type=str, default="", description="In this branch alone."),
        QueryParameter(
            name="author",
            type=str,
            default="",
            description="Of this person alone: an id, a unique prefix, or a name; also what a merge carried.",
        ),
        QueryParameter(name="since", type=int, minimum=0, description="Unix seconds: shown then or later."),
        QueryParameter(name="until", type=int, minimum=0, description="Unix seconds: shown then or before."),
        limit_parameter(SEARCH_WINDOW_MAX, 20),
        QueryParameter(name="after", type=str, default="", description="The `next` of the window before."),
    ),
    answer=SearchResult,
    errors=("too_large", "not_found", "ambiguous", "not_permitted", "busy"),
)
