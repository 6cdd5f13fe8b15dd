"""All endpoints: every `Endpoint` that a module of this room defines.

An entry is added in the module of its subject alone. Its place there does not matter: `ROUTED` has the order in which
paths are matched.
"""

from types import ModuleType
from typing import Any, Final

from node.contract import (
    branches,
    browsers,
    bundles,
    care,
    commits,
    devices,
    document_list,
    document_queries,
    documents,
    files,
    inbox,
    json_documents,
    members,
    node,
    peers,
    people,
    posts,
    quorums,
    recovery,
    relay_accounts,
    repos,
    requests,
    search,
    timelines,
    tokens,
    unseen,
)
from node.contract.endpoint import PATH_PARAMETERS, Endpoint

AnyEndpoint = Endpoint[Any]
"""An endpoint, whatever it answers."""


def _endpoints_of(module: ModuleType) -> tuple[AnyEndpoint, ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, Endpoint))


SUBJECTS: Final = {
    "The node": _endpoints_of(node),
    "Repos": _endpoints_of(repos),
    "Members": _endpoints_of(members),
    "Requests to join": _endpoints_of(requests),
    "People": _endpoints_of(people),
    "Devices": _endpoints_of(devices),
    "Recovery by friends": _endpoints_of(recovery),
    "Quorums": _endpoints_of(quorums),
    "Branches": _endpoints_of(branches),
    "Commits": _endpoints_of(commits),
    "Posts": _endpoints_of(posts),
    "Timelines": _endpoints_of(timelines),
    "Search": _endpoints_of(search),
    "Unseen commits": _endpoints_of(unseen),
    "Inbox": _endpoints_of(inbox),
    "Documents": _endpoints_of(document_list),
    "Sets, dicts and texts": _endpoints_of(documents),
    "JSON documents": (*_endpoints_of(json_documents), *_endpoints_of(document_queries)),
    "Files and imports": _endpoints_of(files),
    "Bundles": _endpoints_of(bundles),
    "Peers and relays": _endpoints_of(peers),
    "Accounts at relays": _endpoints_of(relay_accounts),
    "Tokens": _endpoints_of(tokens),
    "Browsers": _endpoints_of(browsers),
    "Care": _endpoints_of(care),
}
"""Title of each subject -> its endpoints."""

ENDPOINTS: Final = tuple(endpoint for group in SUBJECTS.values() for endpoint in group)


def _precedence(endpoint: AnyEndpoint) -> tuple[int, int]:
    """Names may have slashes, so one path whose slashes are not escaped may fit several endpoints.

    First come paths that end in one segment that is a parameter, so that `/repos/a/tangles/members` is a tangle. Then
    come paths that end in a word, and last those whose end takes slashes: of these the longer ones first, so that
    `/repos/a/tags/b/c` is a tag.
    """
    *_, last = parts = endpoint.path.split("/")
    if not last.startswith("{"):
        return 1, -len(parts)
    return 2 if PATH_PARAMETERS[last.strip("{}")].takes_slashes else 0, -len(parts)


ROUTED: Final = tuple(sorted(ENDPOINTS, key=_precedence))
"""The endpoints in the order in which their paths are matched."""
