"""Bundles: files that carry a repo's publications, sealed as peers exchange them.

Who holds a bundle becomes no more than a relay: it has what it cannot open, so reading the repo is enough to write one. Who
has a node read one brings what any peer may bring, judged in the same way; but it may be of every repo, so it takes a token
for the node.
"""

from typing import Final

from node.contract.access import NODE, READ_REPO
from node.contract.endpoint import LONG_WRITE_SECONDS, Endpoint, QueryParameter
from protocol.limits.formats import TIMESTAMP_MAX_MS
from ravel.types.bundles import BundleReading

WRITE_BUNDLE: Final = Endpoint(
    name="write_bundle",
    method="GET",
    path="/repos/{repo}/bundle",
    scopes=READ_REPO,
    summary="Write a bundle of a repo: its publications, sealed as peers exchange them.",
    query=(
        QueryParameter(
            name="since",
            type=int,
            default=None,
            description="Unix seconds. Only what this node accepted from then on.",
            maximum=TIMESTAMP_MAX_MS // 1000,
        ),
        QueryParameter(
            name="branches",
            type=str,
            default="",
            description="Names or ids, with commas between them. Empty: all. The root branch is always in it.",
        ),
    ),
    answer=bytes,
    seconds_max=LONG_WRITE_SECONDS,
    details="Bodies are in it, blocks of files are not. It is made while it is sent, so its size is not known before.",
)
READ_BUNDLE: Final = Endpoint(
    name="read_bundle",
    method="POST",
    path="/bundles",
    scopes=NODE,
    summary="Read a bundle: take what it carries of this node's repos.",
    takes_bytes=True,
    answer=BundleReading,
    errors=("bad_input", "not_found", "incomplete"),
    details=(
        "Every batch is judged as one that comes from a peer, and is durable before the next but one is read. A bundle may "
        "be read again: what is here is passed over."
    ),
    seconds_max=LONG_WRITE_SECONDS,
)
