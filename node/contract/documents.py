"""Documents of branches: types and endpoints of sets, dicts and texts."""

from typing import Annotated, Final

from msgspec import Meta, field

from node.contract.access import READ_BRANCH, WRITE_BRANCH
from node.contract.document_values import EDIT_ERRORS, NAME, NAME_PARAMETER, READ_ERRORS, WINDOW
from node.contract.endpoint import Endpoint, QueryParameter, StreamedEvent
from node.contract.values import Request
from protocol.formats.document_kinds import (
    DICT_EDIT_COUNT_MAX,
    DICT_VALUE_SIZE_MAX,
    SET_EDIT_COUNT_MAX,
    DocumentKey,
    YjsUpdate,
)
from protocol.session.presence import (
    PRESENCE_SESSION_SIZE,
    RelativePosition,
    TextRoot,
    TypedWords,
    YjsNumber,
)
from ravel.types.document_values import DocumentSnapshot
from ravel.types.documents import (
    DictEditResult,
    DictEntryView,
    DictWindow,
    PresenceEvent,
    SetEditResult,
    SetWindow,
    TextChanges,
    TextClient,
    TextPush,
    TextUpdateEvent,
    TextView,
)
from ravel.types.timelines import ClosingEvent
from ravel.types.values import Empty

# --- sets ---


class SetEditRequest(Request, frozen=True):
    """Adds items to a set and removes others. What is in both lists is added."""

    add: Annotated[list[DocumentKey], Meta(max_length=SET_EDIT_COUNT_MAX)] = field(default_factory=list)
    remove: Annotated[list[DocumentKey], Meta(max_length=SET_EDIT_COUNT_MAX)] = field(default_factory=list)
    name: Annotated[str, Meta(description=NAME)] = ""


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

    put: Annotated[
        dict[DocumentKey, str],
        Meta(
            max_length=DICT_EDIT_COUNT_MAX,
            description=f"Values of up to {DICT_VALUE_SIZE_MAX:,} characters. Add larger ones as files, and put their ids.",
        ),
    ] = field(default_factory=dict)
    erase: Annotated[list[DocumentKey], Meta(max_length=DICT_EDIT_COUNT_MAX)] = field(default_factory=list)
    name: Annotated[str, Meta(description=NAME)] = ""


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
    """States where the cursor of one editor is, and what is typed there."""

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
    typed: Annotated[
        TypedWords,
        Meta(
            description="What was typed at `head` and is in no commit yet: others show it there. Empty: nothing."
        ),
    ] = ""
    client: Annotated[YjsNumber, Meta(description="The Yjs client id that typed it.")] = 0
    clock: Annotated[YjsNumber, Meta(description="The Yjs clock of its first character.")] = 0


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
        "stored nowhere. It holds for 30 seconds: tell it again every 10, and when the cursor moves or something is typed, "
        "at most 16 times a second."
    ),
    request=PresenceRequest,
    answer=Empty,
    errors=("busy",),
    is_keyless=True,
)
