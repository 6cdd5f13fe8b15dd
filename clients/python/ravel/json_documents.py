"""JSON documents from Python: edits as methods, live values, and schemas that are checked before a write.

`client.document("main", "board")` gives a document, and `client.document` of a client to await one to await.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self, cast

import msgspec

from ravel.errors import RavelError
from ravel.operations import encode
from ravel.schema_budget import Budget, check_dialects, in_order

if TYPE_CHECKING:
    from ravel.calls.all_calls import AsyncAllCalls
    from ravel.calls.documents import DocumentsCalls
    from ravel.event_streams import AsyncEventStream, StreamEvent
    from ravel.types.document_queries import FoundDocument
    from ravel.types.json_documents import JsonDocumentView, JsonEditResult

Path = str | Sequence[str | int]
"""A map key, or several from the outside in; in a list the place of an item, the first 0, the last -1."""
_SCHEMA_NAME: Final = "schema"
_FAULTS_SHOWN_MAX: Final = 16
_WINDOW_MAX: Final = 1000
"""Documents that the node finds at once."""


class JsonEdits:
    """Edits to be written together, in their order: `JsonEdits().put("title", "Plan").add("votes")`."""

    def __init__(self) -> None:
        self.edits: list[dict[str, object]] = []

    def put(self, path: Path, value: object, *, item: str = "") -> Self:
        """Put a value; what is below it is replaced. The path begins at an item, if one is given."""
        return self._add("put", path=_parts(path), value=value, item=item)

    def add(self, path: Path, by: int = 1, *, item: str = "") -> Self:
        """Add a whole number to a counter."""
        return self._add("add", path=_parts(path), by=by, item=item)

    def insert(self, path: Path, value: object, *, item: str = "", **place: str | int) -> Self:
        """Insert a new item into a list: at its end, `before` or `after` an item, or at an `index`."""
        return self._add("insert", path=_parts(path), value=value, item=item, **place)

    def move(self, moved: str, path: Path, *, item: str = "", **place: str | int) -> Self:
        """Move an item into a list, or within it: to its end, `before` or `after` an item, or to an `index`."""
        return self._add("move", moved=moved, path=_parts(path), item=item, **place)

    def remove(self, path: Path = (), *, item: str = "") -> Self:
        """Remove a key of a map, or an item of a list."""
        return self._add("remove", path=_parts(path), item=item)

    def _add(self, edit: str, **fields: object) -> Self:
        self.edits.append({"edit": edit, **fields})
        return self


def _parts(path: Path) -> list[str | int]:
    return [path] if isinstance(path, str) else list(path)


class SchemaFault(RavelError):
    """Error of a write that would not keep to the schema: nothing was written. `faults` has one text for each fault."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(
            "bad_input", f"the document would not keep to its schema: {faults[0]}", "nothing was written"
        )
        self.faults = list(faults)


def find_faults(value: object, schema: Mapping[str, object]) -> list[str]:
    """Return where a value does not keep to a JSON Schema, at most 16 texts. `$id` of items is not looked at.

    A schema that names another is refused: its author would choose which file or address this machine reads. So is one by
    which the check takes too many steps, or whose patterns look around or back, or repeat what has choices.

    Raises RavelError `bad_input` for such a schema and for one by which nothing can be checked. Raises ImportError without
    the extra `schema`.
    """
    try:
        from jsonschema import validators
        from referencing import Registry
    except ModuleNotFoundError:
        raise ImportError(
            "schemas are checked with jsonschema, which the extra `schema` of the client has"
        ) from None
    try:
        check_dialects(schema)
        bare = _without_ids(value)
        kind: Any = validators.validator_for(schema, default=validators.Draft202012Validator)
        budget = Budget(bare)
        counted: Any = validators.extend(
            kind, {name: budget.counted(name, check) for name, check in kind.VALIDATORS.items()}
        )
        # Without its dialect, by which the library would choose the kind again for each part.
        bare_schema = {key: one for key, one in schema.items() if key != "$schema"}
        check = counted(in_order(bare_schema), registry=Registry())
        errors = islice(check.iter_errors(bare), _FAULTS_SHOWN_MAX)
        return [f"{error.json_path}: {error.message[:200]}" for error in errors]
    except (
        Exception
    ) as error:  # a stated schema, which anybody may write, makes the library raise any kind of error
        raise RavelError(
            "bad_input", f"nothing can be checked by that schema: {str(error)[:200]}", "state another"
        ) from None


def _without_ids(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_ids(one) for key, one in value.items() if key != "$id"}
    return [_without_ids(one) for one in value] if isinstance(value, list) else value


class _Document:
    """Branch, name and schema of a document, for both kinds of client."""

    def __init__(self, branch: str, name: str, schema: Mapping[str, object] | None) -> None:
        self.branch = branch
        self.name = name
        self.schema = schema

    def faults(self, value: object) -> list[str]:
        """Return where a value that was read does not keep to the schema. Others may have written it: nothing is hidden."""
        return [] if self.schema is None else find_faults(value, self.schema)

    def _check(self, preview: "JsonEditResult") -> None:
        if faults := self.faults(preview["value"]):
            raise SchemaFault(faults)

    @property
    def _schema_name(self) -> str:
        return f"{_SCHEMA_NAME}/{self.name}" if self.name else _SCHEMA_NAME

    def _stated(self) -> JsonEdits:
        return JsonEdits().put("schema", encode(self.schema).decode())


def _read_schemas(view: "JsonDocumentView") -> list[dict[str, Any]]:
    value = view["value"].get("schema") if isinstance(view["value"], dict) else None
    texts = [value, *(one["value"] for one in view["conflicts"] if one["path"] == ["schema"])]
    found: list[dict[str, Any]] = []
    for text in texts:
        with suppress(msgspec.DecodeError, RecursionError):  # anybody may state what is none
            found.append(msgspec.json.decode(text if isinstance(text, str) else "", type=dict[str, Any]))
    return found


class JsonDocument(_Document):
    """A JSON document of a branch: `board.put(["columns", 0, "title"], "Doing")`. Each method writes a commit.

    `schema`, a JSON Schema, is checked before each write. Methods raise RavelError.
    """

    def __init__(
        self, client: "DocumentsCalls", branch: str, name: str, schema: Mapping[str, object] | None
    ) -> None:
        super().__init__(branch, name, schema)
        self._client = client

    def read(self) -> "JsonDocumentView":
        """Return value, conflicts and unplaced items."""
        return self._client.follow_json(self.branch, name=self.name)

    def write(self, edits: JsonEdits) -> "JsonEditResult":
        """Write edits together, or none of them. Raises SchemaFault where the document would not keep to the schema."""
        if self.schema is not None:
            self._check(self._client.edit_json(self.branch, edits.edits, name=self.name, preview=True))
        return self._client.edit_json(self.branch, edits.edits, name=self.name)

    def put(self, path: Path, value: object, *, item: str = "") -> None:
        """Put a value; what is below it is replaced. The path begins at an item, if one is given."""
        self.write(JsonEdits().put(path, value, item=item))

    def add(self, path: Path, by: int = 1, *, item: str = "") -> None:
        """Add a whole number to a counter. What several add at the same time is added up."""
        self.write(JsonEdits().add(path, by, item=item))

    def insert(self, path: Path, value: object, *, item: str = "", **place: str | int) -> str:
        """Insert a new item into a list: at its end, `before` or `after` an item, or at an `index`. Return its id."""
        return self.write(JsonEdits().insert(path, value, item=item, **place))["items"][0]

    def move(self, moved: str, path: Path, *, item: str = "", **place: str | int) -> None:
        """Move an item into a list, or within it: to its end, `before` or `after` an item, or to an `index`."""
        self.write(JsonEdits().move(moved, path, item=item, **place))

    def remove(self, path: Path = (), *, item: str = "") -> None:
        """Remove a key of a map, or an item of a list."""
        self.write(JsonEdits().remove(path, item=item))

    def live(self) -> "Iterator[JsonDocumentView]":
        """Yield the document now, and whenever it has changed: for ever, also where the stream is cut."""
        with self._client.watch_json(self.branch, name=self.name) as events:
            for event in events:
                yield cast("JsonDocumentView", event.data)

    def state_schema(self) -> None:
        """Write the schema beside the document, for other apps to see."""
        self._client.edit_json(self.branch, self._stated().edits, name=self._schema_name)

    def stated_schemas(self) -> list[dict[str, Any]]:
        """Return schemas that apps stated: the one that shows, and others that were stated at the same time."""
        return _read_schemas(self._client.follow_json(self.branch, name=self._schema_name))


class AsyncJsonDocument(_Document):
    """A JSON document of a branch, to await: `await board.write(JsonEdits().put("title", "Plan"))`."""

    def __init__(
        self, client: "AsyncAllCalls", branch: str, name: str, schema: Mapping[str, object] | None
    ) -> None:
        super().__init__(branch, name, schema)
        self._client = client

    async def read(self) -> "JsonDocumentView":
        """Return value, conflicts and unplaced items."""
        return await self._client.follow_json(self.branch, name=self.name)

    async def write(self, edits: JsonEdits) -> "JsonEditResult":
        """Write edits together, or none of them. Raises SchemaFault where the document would not keep to the schema."""
        if self.schema is not None:
            self._check(await self._client.edit_json(self.branch, edits.edits, name=self.name, preview=True))
        return await self._client.edit_json(self.branch, edits.edits, name=self.name)

    @asynccontextmanager
    async def live(self) -> "AsyncIterator[AsyncIterator[JsonDocumentView]]":
        """Follow the document: `async with board.live() as states: async for state in states: ...`.

        The first state is that of now. It goes on for ever, also where the stream is cut.
        """
        async with (
            self._client.watch_json(self.branch, name=self.name) as events,
            aclosing(_states(events)) as states,
        ):
            yield states


async def _states(events: "AsyncEventStream") -> "AsyncGenerator[JsonDocumentView]":
    async for event in events:
        yield cast("JsonDocumentView", event.data)


# --- queries ---


@dataclass(frozen=True, slots=True)
class LiveResult:
    """Result of a query, and what has changed since the one before it: by name, of several branches by `key`."""

    documents: "list[FoundDocument]"
    added: list[str]
    changed: list[str]
    moved: list[str]
    removed: list[str]


class _Query:
    """A query as the endpoint takes it, for both kinds of client."""

    def __init__(
        self,
        branch: str | Sequence[str] | None,
        prefix: str,
        where: Mapping[str, object] | None,
        sort: Sequence[str],
        limit: int,
        repo: str,
    ) -> None:
        self._is_of_one = isinstance(branch, str)
        self._limit = limit
        if branch is not None and (not branch or repo):
            raise RavelError(
                "bad_request", "a query has branches or a repo", "`branch` None asks all of them"
            )
        of: dict[str, Any] = {"branches": ",".join(branch or ()), "repo": repo}
        self._arguments: dict[str, Any] = {
            **({"branch": branch} if self._is_of_one else of),
            "prefix": prefix,
            "where": "" if where is None else encode(where).decode(),
            "sort": sort if isinstance(sort, str) else ",".join(sort),
            "limit": limit,
        }


class _Result:
    """The result that a stream has told of so far. Every event gives the next one."""

    def __init__(self) -> None:
        self._documents: dict[str, FoundDocument] = {}

    def hear(self, event: "StreamEvent") -> LiveResult:
        """Return what the result is after an event. After a cut the event is the whole of it."""
        before, found = self._documents, event.data
        news: list[FoundDocument]
        if event.name == "result":
            news, order = found["documents"], [_key_of(one) for one in found["documents"]]
            moved: list[str] = []
        else:
            news, order, moved = [*found["added"], *found["changed"]], found["order"], found["moved"]
        known = before | {_key_of(one): one for one in news}
        self._documents = {name: known[name] for name in order}
        return LiveResult(
            list(self._documents.values()),
            [name for name in order if name not in before],
            [name for name in order if name in before and before[name] != known[name]],
            moved,
            [name for name in before if name not in self._documents],
        )


def _key_of(document: "FoundDocument") -> str:
    return document.get("key", document["name"])


class JsonDocuments(_Query):
    """JSON documents that a query finds: `for found in client.documents("main", "card/"): ...`."""

    def __init__(self, client: "DocumentsCalls", *query: Any) -> None:  # noqa: ANN401  # as _Query
        super().__init__(*query)
        self._client = client

    def __iter__(self) -> "Iterator[FoundDocument]":
        """Yield up to `limit` documents. Asks as often as the node takes to look at them."""
        left, cursor = self._limit, ""
        while left:
            arguments = {**self._arguments, "limit": min(left, _WINDOW_MAX), "cursor": cursor}
            find = (
                self._client.follow_json_documents if self._is_of_one else self._client.follow_json_anywhere
            )
            window = find(**arguments)
            yield from window["documents"]
            left, cursor = left - len(window["documents"]), window["cursor"] or ""
            if not cursor:
                return

    def live(self) -> Iterator[LiveResult]:
        """Yield the result now, and whenever it has changed: for ever, also where the stream is cut."""
        result = _Result()
        watch = self._client.watch_json_documents if self._is_of_one else self._client.watch_json_anywhere
        with watch(**self._arguments) as events:
            for event in events:
                yield result.hear(event)


class AsyncJsonDocuments(_Query):
    """JSON documents that a query finds, to await."""

    def __init__(self, client: "AsyncAllCalls", *query: Any) -> None:  # noqa: ANN401  # as _Query
        super().__init__(*query)
        self._client = client

    async def read(self) -> "list[FoundDocument]":
        """Return up to `limit` documents. Asks as often as the node takes to look at them."""
        found: list[FoundDocument] = []
        cursor: str | None = ""
        while cursor is not None and len(found) < self._limit:
            limit = min(self._limit - len(found), _WINDOW_MAX)
            arguments = {**self._arguments, "limit": limit, "cursor": cursor}
            find = (
                self._client.follow_json_documents if self._is_of_one else self._client.follow_json_anywhere
            )
            window = await find(**arguments)
            found += window["documents"]
            cursor = window["cursor"]
        return found

    @asynccontextmanager
    async def live(self) -> AsyncIterator[AsyncIterator[LiveResult]]:
        """Follow the result: `async with client.documents("main").live() as results: async for result in results: ...`."""
        watch = self._client.watch_json_documents if self._is_of_one else self._client.watch_json_anywhere
        async with watch(**self._arguments) as events, aclosing(_results(events)) as results:
            yield results


async def _results(events: "AsyncEventStream") -> AsyncGenerator[LiveResult]:
    result = _Result()
    async for event in events:
        yield result.hear(event)
