"""JSON documents of branches: types and endpoints."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from node.contract.access import READ_BRANCH, WRITE_BRANCH
from node.contract.document_values import EDIT_ERRORS, READ_ERRORS
from node.contract.endpoint import Endpoint, HeaderParameter, QueryParameter, StreamedEvent
from node.contract.values import Request
from protocol.formats.document_kinds import DOCUMENT_KEY_SIZE_MAX, JSON_DEPTH_MAX
from protocol.formats.document_names import DOCUMENT_NAME_SIZE_MAX
from protocol.limits.users import JSON_EDITS_MAX
from ravel.types.document_values import DocumentSnapshot
from ravel.types.json_documents import JsonDocumentView, JsonEditResult
from ravel.types.timelines import ClosingEvent

JsonPath = Annotated[
    list[Annotated[str, Meta(max_length=DOCUMENT_KEY_SIZE_MAX)] | int],
    Meta(
        max_length=2 * JSON_DEPTH_MAX,
        description="Map keys; in a list the place of an item, the first 0, the last -1. Empty: the whole.",
    ),
]
ItemText = Annotated[str, Meta(max_length=16, description="The `$id` of an item. Empty: none.")]


DocumentName = Annotated[
    str,
    Meta(
        max_length=DOCUMENT_NAME_SIZE_MAX,
        description=(
            "Name of the document, such as `card/7`. Empty: the branch's unnamed one. Neither lists nor queries show names "
            "that begin with a dot."
        ),
    ),
]


class JsonChange(Request, frozen=True):
    """One edit. Its path begins at the item `item`, or at the document."""

    edit: Annotated[
        Literal["put", "add", "insert", "move", "remove"],
        Meta(
            description=(
                "`put` a value, `add` a number to a counter, `insert` a new item into a list, `move` an item there, "
                "`remove` a key of a map or an item."
            )
        ),
    ]
    path: JsonPath = field(default_factory=list)
    item: ItemText = ""
    value: Annotated[
        Any,
        Meta(
            description=(
                "For `put` and `insert`. Maps and lists are taken apart, so that others may edit inside. "
                '`{"$whole": [...]}` is an array that is replaced as a whole, `{"$text": NAME}` a text of the branch, '
                '`{"$file": ID}` a file.'
            )
        ),
    ] = None
    by: Annotated[int, Meta(description="For `add`.")] = 1
    moved: Annotated[ItemText, Meta(description="For `move`: the item. It may have been removed.")] = ""
    before: Annotated[ItemText, Meta(description="For `insert` and `move`: the item behind it.")] = ""
    after: Annotated[ItemText, Meta(description="For `insert` and `move`: the item in front of it.")] = ""
    index: Annotated[
        int | None,
        Meta(description="For `insert` and `move`: its place. Null, without `before` and `after`: the end."),
    ] = None


class JsonNameRequest(Request, frozen=True):
    """Names a JSON document."""

    name: DocumentName = ""


class JsonEditRequest(JsonNameRequest, frozen=True, kw_only=True):
    """Edits of a JSON document, in their order: all are written, or none."""

    preview: Annotated[
        bool, Meta(description="True: write nothing, and answer with the value that it would come to.")
    ] = False
    edits: Annotated[list[JsonChange], Meta(min_length=1, max_length=JSON_EDITS_MAX)]


_NAME: Final = QueryParameter(
    name="name", type=str, default="", description="Its name. Empty: the branch's unnamed one."
)
FOLLOW_JSON: Final = Endpoint(
    name="follow_json",
    method="GET",
    path="/branches/{branch}/json",
    scopes=READ_BRANCH,
    summary="Show a JSON document of a branch, or follow it: the whole of it whenever it has changed.",
    query=(_NAME,),
    headers=(HeaderParameter("Last-Event-ID", "Of a stream: the document that the client has."),),
    answer=JsonDocumentView,
    events=(
        StreamedEvent("document", JsonDocumentView, "The document. Its cursor stands for it."),
        StreamedEvent("closing", ClosingEvent, "The node stops. This is the last event."),
    ),
    errors=(*READ_ERRORS, "busy"),
)
EDIT_JSON: Final = Endpoint(
    name="edit_json",
    method="POST",
    path="/branches/{branch}/json",
    scopes=WRITE_BRANCH,
    summary="Edit a JSON document of a branch.",
    request=JsonEditRequest,
    answer=JsonEditResult,
    errors=(*EDIT_ERRORS, "bad_input"),
)
SNAPSHOT_JSON: Final = Endpoint(
    name="snapshot_json",
    method="POST",
    path="/branches/{branch}/json/snapshots",
    scopes=WRITE_BRANCH,
    summary="Compact a JSON document's history. Its content does not change.",
    request=JsonNameRequest,
    answer=DocumentSnapshot,
    errors=EDIT_ERRORS,
)
