"""The modules of all subjects, each imported when it is first named: `subjects.repos.LIST_REPOS`.

`node.client` names all subjects, and a command calls one or two. All of them take as long to import as the rest of the
client, since the documents' answers come from `verifier`, and with it its cryptography.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "branches",
    "commits",
    "devices",
    "documents",
    "files",
    "inbox",
    "members",
    "node",
    "peers",
    "people",
    "quorums",
    "repos",
    "timelines",
]

if TYPE_CHECKING:
    from node.contract import (
        branches,
        commits,
        devices,
        documents,
        files,
        inbox,
        members,
        node,
        peers,
        people,
        quorums,
        repos,
        timelines,
    )
else:

    def __getattr__(name: str) -> object:
        """Import the module of a subject when it is first named."""
        if name in __all__:
            return import_module(f"node.contract.{name}")
        raise AttributeError(f"{__name__} has no {name}")
