"""Documents of branches: types and endpoints of sets, dicts and texts."""

from typing import Annotated, Final, TypedDict

from msgspec import Meta, field

from node.contract.access import READ_BRANCH, WRITE_BRANCH
from node.contract.document_values import (
    EDIT_ERRORS,
    NAME,
    NAME_PARAMETER,
    READ_ERRORS,
    WINDOW,
    Commits,
    DocumentSnapshot,
    NextOffset,
)
from node.contract.endpoint import Endpoint, QueryParameter, StreamedEvent
from node.contract.timelines import ClosingEvent
from node.contract.values import Count, Empty, Id, Request, one_of
from protocol.formats.document_kinds import (
    DICT_EDIT_COUNT_MAX,
    SET_EDIT_COUNT_MAX,
    DictValue,
    DocumentKey,
    YjsUpdate,
)
from protocol.limits.users import TEXT_FAULTS_SHOWN_MAX
from protocol.session.presence import PRESENCE_SESSION_SIZE, RelativePosition, TextRoot

# --- sets ---


class SetEditRequest(Request, frozen=True):
    """Adds items to a set and removes others. What is in both lists is added."""

    add: Annotated[list[DocumentKey], Meta(max_length=SET_EDIT_COUNT_MAX)] = field(default_factory=list)
    remove: Annotated[list[DocumentKey], Meta(max_length=SET_EDIT_COUNT_MAX)] = field(default_factory=list)
    name: Annotated[str, Meta(description=NAME)] = ""


class SetItemView(TypedDict):
    """An item of a set."""

    item: str
    tips: Annotated[list[Id], Meta(description="The commits that hold it there.")]


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


SHOW_SET: Final = Endpoint(
    name="show_set",
    method="GET",
    path="/branches/{branch}/set",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show a window of a branch's set.",
    query=(NAME_PARAMETER, *WINDOW),
    answer=SetWindow,
    errors=READ_ERRORS,
)
EDIT_SET: Final = Endpoint(
    name="edit_set",
    method="POST",
    path="/branches/{branch}/set",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Add items to a branch's set, and remove others.",
    request=SetEditRequest,
    answer=SetEditResult,
    errors=EDIT_ERRORS,
)
SNAPSHOT_SET: Final = Endpoint(
    name="snapshot_set",
    method="POST",
    path="/branches/{branch}/set/snapshots",
    scopes=WRITE_BRANCH,
    summary="Compact a set's history. Its content does not change.",
    query=(NAME_PARAMETER,),
    answer=DocumentSnapshot,
    errors=EDIT_ERRORS,
)

# --- dicts ---


class DictEditRequest(Request, frozen=True):
    """Puts values into a dict and erases others. A key in both is put."""

    put: Annotated[dict[DocumentKey, DictValue], Meta(max_length=DICT_EDIT_COUNT_MAX)] = field(
        default_factory=dict
    )
    erase: Annotated[list[DocumentKey], Meta(max_length=DICT_EDIT_COUNT_MAX)] = field(default_factory=list)
    name: Annotated[str, Meta(description=NAME)] = ""


class DictConflict(TypedDict):
    """Another value that was put at the same time."""

    value: str
    commit: Id


class DictEntryFields(TypedDict):
    """An entry of a dict."""

    key: str
    value: str
    commit: Annotated[Id, Meta(description="The commit that put the value.")]
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
    put: Annotated[list[str], Meta(description="Keys.")]
    erased: Annotated[list[str], Meta(description="Keys.")]


SHOW_DICT: Final = Endpoint(
    name="show_dict",
    method="GET",
    path="/branches/{branch}/dict",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show a window of a branch's dict.",
    query=(NAME_PARAMETER, *WINDOW),
    answer=DictWindow,
    errors=READ_ERRORS,
)
SHOW_ENTRY: Final = Endpoint(
    name="show_entry",
    method="GET",
    path="/branches/{branch}/dict/entry",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show one entry of a branch's dict.",
    query=(
        QueryParameter(name="key", type=str, default="", description="The entry's key."),
        NAME_PARAMETER,
    ),
    answer=DictEntryView,
    errors=READ_ERRORS,
)
EDIT_DICT: Final = Endpoint(
    name="edit_dict",
    method="POST",
    path="/branches/{branch}/dict",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Put values into a branch's dict, and erase others.",
    request=DictEditRequest,
    answer=DictEditResult,
    errors=EDIT_ERRORS,
)
SNAPSHOT_DICT: Final = Endpoint(
    name="snapshot_dict",
    method="POST",
    path="/branches/{branch}/dict/snapshots",
    scopes=WRITE_BRANCH,
    summary="Compact a dict's history. Its content does not change.",
    query=(NAME_PARAMETER,),
    answer=DocumentSnapshot,
    errors=EDIT_ERRORS,
)

# --- texts ---


class TextPushRequest(Request, frozen=True):
    """Pushes an update to a text."""

    update: Annotated[YjsUpdate, Meta(description="A Yjs update of format v1, in base64.")]
    gather: Annotated[
        bool,
        Meta(
            description=(
                "Wait for others' updates of the same text, so that all become one commit: a second while somebody else "
                "has it open (`tell_presence`), else five since the last commit. For editors that push while one types."
            )
        ),
    ] = False


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
    update: Annotated[str, Meta(description="The whole text as one Yjs update of format v1, in base64.")]
    updates: Annotated[int, Meta(ge=0, description="How many updates it is made of.")]
    refused: Annotated[int, Meta(ge=0, description="How many updates cannot be read.")]
    passed_over: Annotated[
        int, Meta(ge=0, description="How many others say nothing, or not all that they would.")
    ]
    faults: Annotated[list[TextFaultView], Meta(description=f"The first {TEXT_FAULTS_SHOWN_MAX} of both.")]
    text: Annotated[str | None, Meta(description="The root as plain text. Null: no root was asked for.")]


ClientId = Annotated[int, Meta(ge=0, le=2**53 - 1, description="A Yjs client id.")]


class TextClient(TypedDict):
    """A client id for one editor of a text."""

    branch: Id
    client: ClientId
    clock: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "At which clock the editor goes on. Above 0 the id was used before, and the document must have the whole "
                "text before anything is typed."
            ),
        ),
    ]


class TextClocks(TypedDict):
    """Yjs clock up to which a text shows the updates of one client id."""

    client: ClientId
    clock: Annotated[int, Meta(ge=0, description="It shows all clocks below.")]


class TextPush(TypedDict):
    """An update that was pushed: all that it says is in the text."""

    branch: Id
    commit: Annotated[
        Id | None,
        Meta(description="The commit, or the first of several. Null: the text had all that the update says."),
    ]
    has: Annotated[list[TextClocks], Meta(description="The client ids of this user in the update.")]


class TextImportRequest(Request, frozen=True):
    """Types the text of another Yjs document."""

    update: Annotated[
        YjsUpdate, Meta(description="The other document as a Yjs update of format v1, in base64.")
    ]


OPEN_TEXT: Final = Endpoint(
    name="open_text",
    method="POST",
    path="/branches/{branch}/text/clients",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Get a Yjs client id for an editor of a branch's text.",
    details=(
        "The id belongs to this user and this branch, and no other editor gets it. Set it as the document's client id "
        "before anything is typed (`ydoc.clientID`), and again after the document is made anew. A program that keeps its id "
        "goes on with it, once its document has the whole text."
    ),
    answer=TextClient,
    errors=(*EDIT_ERRORS, "bad_input", "busy"),
)
IMPORT_TEXT: Final = Endpoint(
    name="import_text",
    method="POST",
    path="/branches/{branch}/text/imports",
    scopes=WRITE_BRANCH,
    summary="Type the text of another Yjs document at the end of a branch's text.",
    details=(
        "The words of each text of the document are typed by this user, at the end of the text of the same name. Who wrote "
        "them there, formats and other types are left out."
    ),
    request=TextImportRequest,
    answer=TextPush,
    errors=(*EDIT_ERRORS, "bad_input", "busy"),
)
PULL_TEXT: Final = Endpoint(
    name="pull_text",
    method="GET",
    path="/branches/{branch}/text",
    stability="stable",
    scopes=READ_BRANCH,
    summary="Show a branch's text as one Yjs update and, optionally, as plain text.",
    query=(
        QueryParameter(name="root", type=str, description="The name of the root type to show as plain text."),
    ),
    answer=TextView,
    errors=("too_large", "incomplete", "bad_input", "busy"),
)
PUSH_TEXT: Final = Endpoint(
    name="push_text",
    method="POST",
    path="/branches/{branch}/text",
    stability="stable",
    scopes=WRITE_BRANCH,
    summary="Write a Yjs update to a branch's text.",
    details=(
        "The document needs a client id of `open_text`. An update of which words would not be in the text is refused with "
        "`bad_input`, as a whole: its client id is another's, its clocks were used, or it builds on words that are not here."
    ),
    request=TextPushRequest,
    answer=TextPush,
    errors=(*EDIT_ERRORS, "bad_input", "busy"),
)


class PresenceRequest(Request, frozen=True):
    """States where the cursor of one editor is."""

    session: Annotated[
        bytes,
        Meta(
            min_length=PRESENCE_SESSION_SIZE,
            max_length=PRESENCE_SESSION_SIZE,
            description="8 random bytes that the editor has chosen for itself, in base64.",
        ),
    ]
    root: Annotated[
        TextRoot, Meta(description="The name of the root type that is open. Empty: the editor leaves.")
    ]
    anchor: Annotated[
        RelativePosition,
        Meta(
            description="Where the selection begins: a Yjs relative position, encoded, in base64. Empty: nowhere."
        ),
    ] = b""
    head: Annotated[
        RelativePosition, Meta(description="Where the cursor is, at the other end of the selection.")
    ] = b""


class PresenceView(TypedDict):
    """An editor that has the text open."""

    session: Annotated[str, Meta(description="8 bytes in base64.")]
    user: Annotated[Id, Meta(description="Who has signed this.")]
    root: str
    anchor: Annotated[str, Meta(description="A Yjs relative position, in base64. Empty: nowhere.")]
    head: Annotated[str, Meta(description="The same.")]


class TextChanges(TypedDict):
    """Updates that an editor lacks of a text, and who else has it open."""

    branch: Id
    update: Annotated[str, Meta(description="What the state vector lacks, as one Yjs update in base64.")]
    others: Annotated[list[PresenceView], Meta(description="Here and at connected nodes.")]


class TextUpdateEvent(TypedDict):
    """An update of a text."""

    update: Annotated[str, Meta(description="A Yjs update of format v1, in base64.")]


class PresenceEvent(TypedDict):
    """Other editors that have the text open."""

    others: list[PresenceView]


FOLLOW_TEXT: Final = Endpoint(
    name="follow_text",
    method="GET",
    path="/branches/{branch}/text/changes",
    scopes=READ_BRANCH,
    summary="Show what an editor lacks of a branch's text, or follow it as it changes.",
    details=(
        "A stream begins with an `update` of all that is lacking, and a `presence`. The editor takes every update in; in "
        "which order does not matter. At `whole` it begins anew with an empty document, since what it has includes "
        "commits that count no more."
    ),
    query=(
        QueryParameter(
            name="vector",
            type=str,
            default="",
            description="The editor's Yjs state vector, in base64 (URL-safe). Empty: it has nothing.",
        ),
        QueryParameter(
            name="session",
            type=str,
            default="",
            description="The editor's session, in base64 (URL-safe): it is not told of itself, and leaves with the stream.",
        ),
    ),
    answer=TextChanges,
    events=(
        StreamedEvent("update", TextUpdateEvent, "What is new of the text."),
        StreamedEvent("whole", TextUpdateEvent, "Forget the document: this is the whole text."),
        StreamedEvent("presence", PresenceEvent, "Who else has the text open, whenever that changes."),
        StreamedEvent("closing", ClosingEvent, "The node stops. This is the last event."),
    ),
    errors=(*READ_ERRORS, "bad_input", "busy"),
)
TELL_PRESENCE: Final = Endpoint(
    name="tell_presence",
    method="PUT",
    path="/branches/{branch}/text/presence",
    scopes=READ_BRANCH,
    summary="Tell other editors of a branch's text that one has it open, and where its cursor is.",
    details=(
        "Told to editors at this node and, under the node's user, to connected nodes of members who read the branch; "
        "stored nowhere. It holds for 30 seconds: tell it again every 10, and when the cursor moves, at most five times a "
        "second."
    ),
    request=PresenceRequest,
    answer=Empty,
    errors=("busy",),
    is_keyless=True,
)
