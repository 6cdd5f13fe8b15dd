"""Types of answers: search."""

from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from ravel.types.commits import AuthorFields, Mention, Origin
from ravel.types.values import Id, means, one_of


class SearchIndexView(TypedDict):
    """Progress of the index; in a search, for the searched branches. Posts that are not indexed yet are not found."""

    state: Annotated[str, one_of("off", "building", "ready", description="`off`: `search.enabled` is false.")]
    percent: Annotated[
        int, Meta(ge=0, le=100, description="Of the stored commits, those that were looked at.")
    ]
    texts_due: Annotated[
        int,
        means(
            "Texts that are to be read anew. They are found by what they said when they were read last, or not at all.",
            ge=0,
        ),
    ]


class TextRoot(TypedDict):
    """One of the texts that a branch has."""

    root: Annotated[str, means("The name of its root type: the `root` of `GET /branches/{branch}/text`.")]
    title: Annotated[str, means("As the page calls it; empty: it has none.")]


class SearchHit(AuthorFields):
    """A commit that fits. Of a text it is the last commit that the text is made of, with its time and its author."""

    repo: Id
    repo_name: str
    branch: Id
    branch_name: str
    commit: Id
    kind: Annotated[str, means("The kind of the body: `post`, `imported`, `files`; `text`: see `texts`.")]
    time: Annotated[int, means("Unix seconds, as the author states them.")]
    text: Annotated[
        str | None, means("At most 300 characters of the text as it is shown now, around the first word.")
    ]
    files: Annotated[list[str], means("Names that fit, of the files that it adds.")]
    texts: NotRequired[
        Annotated[list[TextRoot], means("Of a text: those of the branch that fit, one at least.")]
    ]
    imported_author: NotRequired[Annotated[str, means("Of an imported commit: its author there.")]]
    origin: NotRequired[
        Annotated[Origin, means("Of a commit that a merge wrote again: whose it is, and where.")]
    ]
    edited_at: NotRequired[Annotated[int, means("Unix seconds of the last edit.")]]
    mentions: NotRequired[Annotated[list[Mention], means("Users that the whole text names.")]]


class NameHit(TypedDict):
    """A branch or a tag whose name fits."""

    kind: Annotated[str, one_of("branch", "tag", description="What has the name.")]
    name: str
    repo: Id
    repo_name: str
    branch: Annotated[Id, means("The branch; of a tag that of its commit.")]
    commit: NotRequired[Annotated[Id, means("Of a tag: its commit.")]]


class SearchResult(TypedDict):
    """Result of a search."""

    hits: Annotated[list[SearchHit], means("The latest first, by the time at which they are shown.")]
    names: Annotated[
        list[NameHit],
        means(
            "At most 20, found in 0.25 s. Of the first window alone, and where no author and no time is given."
        ),
    ]
    next: Annotated[
        str | None,
        means(
            "The `after` of the next window. Null: all was looked at. A window may have fewer hits than `limit`, or "
            "none, where a search takes long."
        ),
    ]
    index: SearchIndexView
