"""Documents of branches: sets, dicts and texts."""

from typing import Annotated, Final, TypedDict

from msgspec import Meta, field

from node.contract.endpoint import WRITE_ERRORS, Endpoint, QueryParameter, limit_parameter
from node.contract.values import Count, Id, Request
from protocol.document_kinds import DictKey, DictValue, SetItem, YjsUpdate
from protocol.limits.formats import DICT_EDIT_COUNT_MAX, SET_EDIT_COUNT_MAX
from protocol.limits.users import DOCUMENT_WINDOW_MAX

NextOffset = Annotated[int | None, Meta(description="The `offset` of the next window. Null: there is none.")]
_WRITE_ERRORS: Final = (*WRITE_ERRORS, "too_large")
_WINDOW: Final = (
    QueryParameter(name="offset", type=int, default=0, description="Pass over so many."),
    limit_parameter(DOCUMENT_WINDOW_MAX),
)


class SetEditRequest(Request, frozen=True):
    """Adds items to a set and removes others. What is in both lists is added."""

    add: Annotated[list[SetItem], Meta(max_length=SET_EDIT_COUNT_MAX)] = field(default_factory=list)
    remove: Annotated[list[SetItem], Meta(max_length=SET_EDIT_COUNT_MAX)] = field(default_factory=list)


class DictEditRequest(Request, frozen=True):
    """Puts values into a dict and erases others. A key in both is put."""

    put: Annotated[dict[DictKey, DictValue], Meta(max_length=DICT_EDIT_COUNT_MAX)] = field(
        default_factory=dict
    )
    erase: Annotated[list[DictKey], Meta(max_length=DICT_EDIT_COUNT_MAX)] = field(default_factory=list)


class TextPushRequest(Request, frozen=True):
    """Pushes an update to a text."""

    update: Annotated[YjsUpdate, Meta(description="A Yjs update of format v1, in base64.")]


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
    """What was written to a set."""

    branch: Id
    commits: Annotated[list[Id], Meta(description="Empty: nothing had to be written.")]
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
    """What was written to a dict."""

    branch: Id
    commits: Annotated[list[Id], Meta(description="Empty: nothing had to be written.")]
    put: Annotated[list[str], Meta(description="Keys.")]
    erased: Annotated[list[str], Meta(description="Keys.")]


class DocumentSnapshot(TypedDict):
    """A snapshot of a set or a dict."""

    branch: Id
    commits: Annotated[list[Id], Meta(description="Empty: a snapshot was there already.")]


class TextView(TypedDict):
    """A branch's text."""

    branch: Id
    update: Annotated[str, Meta(description="The whole text as one Yjs update of format v1, in base64.")]
    updates: Annotated[int, Meta(ge=0, description="How many updates it was merged from.")]
    refused: Annotated[int, Meta(ge=0, description="How many of these could not be merged.")]
    passed_over: Annotated[int, Meta(ge=0, description="How many snapshots were passed over.")]
    text: Annotated[str | None, Meta(description="The root as plain text. Null: no root was asked for.")]


class TextPush(TypedDict):
    """An update that was pushed."""

    branch: Id
    commit: Annotated[Id | None, Meta(description="Null: the update has nothing new.")]
    snapshot: Annotated[Id | None, Meta(description="The snapshot that was due. Null: none was.")]


SHOW_SET: Final = Endpoint(
    name="show_set",
    method="GET",
    path="/branches/{branch}/set",
    summary="Show a window of a branch's set.",
    service="documents.show_set",
    query=_WINDOW,
    answer=SetWindow,
    errors=("too_large", "incomplete"),
)
EDIT_SET: Final = Endpoint(
    name="edit_set",
    method="POST",
    path="/branches/{branch}/set",
    summary="Add items to a branch's set, and remove others.",
    service="documents.edit_set",
    request=SetEditRequest,
    answer=SetEditResult,
    errors=_WRITE_ERRORS,
)
SNAPSHOT_SET: Final = Endpoint(
    name="snapshot_set",
    method="POST",
    path="/branches/{branch}/set/snapshots",
    summary="Compact a set's history. Its content does not change.",
    service="documents.snapshot_set",
    answer=DocumentSnapshot,
    errors=_WRITE_ERRORS,
)
SHOW_DICT: Final = Endpoint(
    name="show_dict",
    method="GET",
    path="/branches/{branch}/dict",
    summary="Show a window of a branch's dict.",
    service="documents.show_dict",
    query=_WINDOW,
    answer=DictWindow,
    errors=("too_large", "incomplete"),
)
SHOW_ENTRY: Final = Endpoint(
    name="show_entry",
    method="GET",
    path="/branches/{branch}/dict/entry",
    summary="Show one entry of a branch's dict.",
    service="documents.get",
    query=(QueryParameter(name="key", type=str, default="", description="The entry's key."),),
    answer=DictEntryView,
    errors=("too_large", "incomplete"),
)
EDIT_DICT: Final = Endpoint(
    name="edit_dict",
    method="POST",
    path="/branches/{branch}/dict",
    summary="Put values into a branch's dict, and erase others.",
    service="documents.edit_dict",
    request=DictEditRequest,
    answer=DictEditResult,
    errors=_WRITE_ERRORS,
)
SNAPSHOT_DICT: Final = Endpoint(
    name="snapshot_dict",
    method="POST",
    path="/branches/{branch}/dict/snapshots",
    summary="Compact a dict's history. Its content does not change.",
    service="documents.snapshot_dict",
    answer=DocumentSnapshot,
    errors=_WRITE_ERRORS,
)
PULL_TEXT: Final = Endpoint(
    name="pull_text",
    method="GET",
    path="/branches/{branch}/text",
    summary="Show a branch's text as one Yjs update and, optionally, as plain text.",
    service="texts.pull",
    query=(
        QueryParameter(name="root", type=str, description="The name of the root type to show as plain text."),
    ),
    answer=TextView,
    errors=("too_large", "incomplete", "bad_input"),
)
PUSH_TEXT: Final = Endpoint(
    name="push_text",
    method="POST",
    path="/branches/{branch}/text",
    summary="Write a Yjs update to a branch's text.",
    service="texts.push",
    request=TextPushRequest,
    answer=TextPush,
    errors=(*_WRITE_ERRORS, "bad_input"),
)
