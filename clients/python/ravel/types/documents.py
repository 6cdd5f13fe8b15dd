"""Types of answers: documents."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.document_values import Commits, NextOffset
from ravel.types.values import Count, Id, means, one_of


class SetItemView(TypedDict):
    """An item of a set."""

    item: str
    tips: Annotated[list[Id], means("The commits that hold it there.")]


class SetWindow(TypedDict):
    """A window of a set, ordered by the UTF-8 bytes of the items."""

    branch: Id
    items: list[SetItemView]
    total: Count
    next: NextOffset


class SetEditResult(TypedDict):
    """Result of an edit of a set."""

    branch: Id
    commits: Commits
    added: list[str]
    removed: list[str]


class DictConflict(TypedDict):
    """Another value that was put at the same time."""

    value: str
    commit: Id


class DictEntryFields(TypedDict):
    """An entry of a dict."""

    key: str
    value: str
    commit: Annotated[Id, means("The commit that put the value.")]
    conflicts: list[DictConflict]


class DictEntryView(DictEntryFields):
    """An entry of a branch's dict."""

    branch: Id


class DictWindow(TypedDict):
    """A window of a dict, ordered by the UTF-8 bytes of the keys."""

    branch: Id
    entries: list[DictEntryFields]
    total: Count
    next: NextOffset


class DictEditResult(TypedDict):
    """Result of an edit of a dict."""

    branch: Id
    commits: Commits
    put: Annotated[list[str], means("Keys.")]
    erased: Annotated[list[str], means("Keys.")]


class TextFaultView(TypedDict):
    """An update that says nothing, or less than it would."""

    commit: Id
    fault: Annotated[
        str,
        one_of(
            "unreadable",
            "other_client",
            "used_clocks",
            "misplaced",
            description=(
                "`unreadable`: it is no update that all editors take. `other_client`: it has client ids of another author. "
                "`used_clocks`: its author had said something else at its clocks. `misplaced`: it has words "
                "that stand nowhere."
            ),
        ),
    ]


class TextView(TypedDict):
    """A branch's text."""

    branch: Id
    update: Annotated[str, means("The whole text as one Yjs update of format v1, in base64.")]
    updates: Annotated[int, means("How many updates it is made of.", ge=0)]
    refused: Annotated[int, means("How many updates cannot be read.", ge=0)]
    passed_over: Annotated[int, means("How many others say nothing, or not all that they would.", ge=0)]
    faults: Annotated[list[TextFaultView], means("The first 64 of both.")]
    text: Annotated[str | None, means("The root as plain text. Null: no root was asked for.")]


ClientId = Annotated[int, Meta(ge=0, le=2**53 - 1, description="A Yjs client id.")]


class TextClient(TypedDict):
    """A client id for one editor of a text."""

    branch: Id
    client: ClientId
    clock: Annotated[
        int,
        means(
            "At which clock the editor goes on. Above 0 the id was used before, and the document must have the whole "
            "text before anything is typed.",
            ge=0,
        ),
    ]


class TextClocks(TypedDict):
    """Yjs clock up to which a text shows the updates of one client id."""

    client: ClientId
    clock: Annotated[int, means("It shows all clocks below.", ge=0)]


class TextPush(TypedDict):
    """An update that was pushed: all that it says is in the text."""

    branch: Id
    commit: Annotated[
        Id | None, means("The commit, or the first of several. Null: the text had all that the update says.")
    ]
    has: Annotated[list[TextClocks], means("The client ids of this user in the update.")]


class PresenceView(TypedDict):
    """An editor that has the text open."""

    session: Annotated[str, means("8 bytes in base64.")]
    user: Annotated[Id, means("Who has signed this.")]
    root: str
    anchor: Annotated[str, means("A Yjs relative position, in base64. Empty: nowhere.")]
    head: Annotated[str, means("The same.")]
    typed: Annotated[
        str, means("What was typed at `head` and was in no commit when this was told. Empty: nothing.")
    ]
    client: Annotated[Count, means("The Yjs client id that typed it.")]
    clock: Annotated[
        Count, means("The Yjs clock of its first character: of what has come, nothing is shown twice.")
    ]


class TextChanges(TypedDict):
    """Updates that an editor lacks of a text, and who else has it open."""

    branch: Id
    update: Annotated[str, means("What the state vector lacks, as one Yjs update in base64.")]
    others: Annotated[list[PresenceView], means("Here and at connected nodes.")]


class TextUpdateEvent(TypedDict):
    """An update of a text."""

    update: Annotated[str, means("A Yjs update of format v1, in base64.")]


class PresenceEvent(TypedDict):
    """Other editors that have the text open."""

    others: list[PresenceView]
