"""Types of answers: documents. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class SetWindow(TypedDict):
    """A window of a set, ordered by the UTF-8 bytes of the items."""

    branch: str
    items: list[SetItemView]
    total: int
    next: int | None
    """The `offset` of the next window. Null: there is none."""


class SetEditResult(TypedDict):
    """Result of an edit of a set."""

    branch: str
    commits: list[str]
    """Empty: nothing had to be written."""
    added: list[str]
    removed: list[str]


class DictWindow(TypedDict):
    """A window of a dict, ordered by the UTF-8 bytes of the keys."""

    branch: str
    entries: list[DictEntryFields]
    total: int
    next: int | None
    """The `offset` of the next window. Null: there is none."""


class DictEntryView(TypedDict):
    """An entry of a branch's dict."""

    key: str
    value: str
    commit: str
    """The commit that put the value."""
    conflicts: list[DictConflict]
    branch: str


class DictEditResult(TypedDict):
    """Result of an edit of a dict."""

    branch: str
    commits: list[str]
    """Empty: nothing had to be written."""
    put: list[str]
    """Keys."""
    erased: list[str]
    """Keys."""


class TextClient(TypedDict):
    """A client id for one editor of a text."""

    branch: str
    client: int
    """A Yjs client id."""
    clock: int
    """At which clock the editor goes on. Above 0 the id was used before, and the document must have the whole text
    before anything is typed.
    """


class TextPush(TypedDict):
    """An update that was pushed: all that it says is in the text."""

    branch: str
    commit: str | None
    """The commit, or the first of several. Null: the text had all that the update says."""
    has: list[TextClocks]
    """The client ids of this user in the update."""


class TextView(TypedDict):
    """A branch's text."""

    branch: str
    update: str
    """The whole text as one Yjs update of format v1, in base64."""
    updates: int
    """How many updates it is made of."""
    refused: int
    """How many updates cannot be read."""
    passed_over: int
    """How many others say nothing, or not all that they would."""
    faults: list[TextFaultView]
    """The first 64 of both."""
    text: str | None
    """The root as plain text. Null: no root was asked for."""


class TextChanges(TypedDict):
    """Updates that an editor lacks of a text, and who else has it open."""

    branch: str
    update: str
    """What the state vector lacks, as one Yjs update in base64."""
    others: list[PresenceView]
    """Here and at connected nodes."""


class TextUpdateEvent(TypedDict):
    """An update of a text."""

    update: str
    """A Yjs update of format v1, in base64."""


class PresenceEvent(TypedDict):
    """Other editors that have the text open."""

    others: list[PresenceView]


class SetItemView(TypedDict):
    """An item of a set."""

    item: str
    tips: list[str]
    """The commits that hold it there."""


class DictEntryFields(TypedDict):
    """An entry of a dict."""

    key: str
    value: str
    commit: str
    """The commit that put the value."""
    conflicts: list[DictConflict]


class DictConflict(TypedDict):
    """Another value that was put at the same time."""

    value: str
    commit: str


class TextClocks(TypedDict):
    """Yjs clock up to which a text shows the updates of one client id."""

    client: int
    """A Yjs client id."""
    clock: int
    """It shows all clocks below."""


class TextFaultView(TypedDict):
    """An update that says nothing, or less than it would."""

    commit: str
    fault: str
    """`unreadable`: it is no update that all editors take. `other_client`: it has client ids of another author.
    `used_clocks`: its author had said something else at its clocks. `misplaced`: it has words that stand
    nowhere.
    """


class PresenceView(TypedDict):
    """An editor that has the text open."""

    session: str
    """8 bytes in base64."""
    user: str
    """Who has signed this."""
    root: str
    anchor: str
    """A Yjs relative position, in base64. Empty: nowhere."""
    head: str
    """The same."""
