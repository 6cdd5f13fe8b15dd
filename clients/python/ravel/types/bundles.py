"""Types of answers: bundles."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import Count, UnixSeconds


class BundleReading(TypedDict):
    """Result of reading a bundle. What it took is durable, and announced to peers."""

    commits: Annotated[Count, Meta(description="Commits that the bundle carries.")]
    taken: Annotated[Count, Meta(description="Commits that came to be here.")]
    already: Annotated[Count, Meta(description="Commits that were here.")]
    refused: Annotated[Count, Meta(description="Publications that break a rule. The log says which.")]
    waiting: Annotated[
        Count,
        Meta(
            description="Commits of these repos that wait for causes or keys now. Peers may have brought some of them."
        ),
    ]
    unopened: Annotated[
        Count, Meta(description="Publications of epochs, or repos, whose keys this node does not hold.")
    ]
    missing: Annotated[
        Count,
        Meta(
            description="Commits from before `since` that it stands on, of those it names, and are not here."
        ),
    ]
    left_out: Annotated[Count, Meta(description="Commits that were damaged where the bundle was written.")]
    since: Annotated[
        UnixSeconds | None, Meta(description="From when on it carries. Null: from the beginning.")
    ]
