"""Types of answers: bundles."""

from typing import Annotated, TypedDict

from ravel.types.values import Count, UnixSeconds, means


class BundleReading(TypedDict):
    """Result of reading a bundle. What it took is durable, and announced to peers."""

    commits: Annotated[Count, means("Commits that the bundle carries.")]
    taken: Annotated[Count, means("Commits that came to be here.")]
    already: Annotated[Count, means("Commits that were here.")]
    refused: Annotated[Count, means("Publications that break a rule. The log says which.")]
    waiting: Annotated[
        Count,
        means(
            "Commits of these repos that wait for causes or keys now. Peers may have brought some of them."
        ),
    ]
    unopened: Annotated[Count, means("Publications of epochs, or repos, whose keys this node does not hold.")]
    missing: Annotated[
        Count, means("Commits from before `since` that it stands on, of those it names, and are not here.")
    ]
    left_out: Annotated[Count, means("Commits that were damaged where the bundle was written.")]
    since: Annotated[UnixSeconds | None, means("From when on it carries. Null: from the beginning.")]
