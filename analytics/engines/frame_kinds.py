"""Columns that `analytics.frames` needs of a caller's tables, and the conversion of such tables to Arrow.

Every library of DataFrames hands its rows over by Arrow's PyCapsule interface (`__arrow_c_stream__`): pandas, polars,
DuckDB, pyarrow, Ibis. DataFrames of Spark stay in their session.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from analytics.order.kernel import ID_SIZE

_ArrowColumn: TypeAlias = Any
"""A column of Arrow, of any type: pyarrow's stubs give its functions only columns whose type is known."""

_INTS: Final = ("tinyint", "smallint", "int", "bigint")
_BYTES: Final = ("binary", "large_binary", "binary_view")
_TEXTS: Final = ("string", "large_string", "string_view")
_ARROW_TYPES: Final[Mapping[str, Any]] = {
    "bigint": pa.int64(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array<bigint>": pa.list_(pa.int64()),
    "array<binary>": pa.list_(pa.binary()),
}
"""SQL's words for types, as Spark has them, and the types of Arrow."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that a table must have. More are ignored."""

    kinds: Mapping[str, str]  # name -> type, in SQL's words
    may_lack: frozenset[str]  # null in all rows then
    never_null: frozenset[str]
    hint: str  # what to give instead of a frame that does not have them

    def schema(self) -> pa.Schema:
        """Return these columns as a schema of Arrow."""
        return pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in self.kinds.items()])

    def check(self, argument: str, found: Mapping[str, str]) -> None:
        """Refuse columns of a frame, by their types in SQL's words. Raises ValueError for one that is absent, TypeError."""
        absent = [name for name in self.kinds if name not in found and name not in self.may_lack]
        if absent:
            raise ValueError(f"{argument} lacks the columns {', '.join(absent)}: {self.hint}")
        for name, kind in self.kinds.items():
            if name in found and not _fits(found[name], kind):
                is_text = found[name].replace("string", "binary") == kind
                hint = "open the table without text_ids" if is_text else self.hint
                raise TypeError(
                    f"{argument}: column {name} is of type {found[name]}, and must be {kind}: {hint}"
                )


def _fits(found: str, wanted: str) -> bool:
    if found.startswith("array<") and wanted.startswith("array<"):
        return _fits(found[6:-1], wanted[6:-1])
    return found in (wanted, "void") or (found in _INTS and wanted == "bigint")


class ArrowStream(Protocol):
    """A table of any library that exports its rows by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with an Arrow stream."""
        ...


def is_of_spark(frame: object) -> bool:
    """Return True for a DataFrame of Spark, classic or Connect, without importing Spark."""
    of_spark = getattr(sys.modules.get("pyspark.sql"), "DataFrame", None)
    return of_spark is not None and isinstance(frame, of_spark)


def read_arrow(argument: str, frame: object) -> pa.Table:
    """Read a caller's table. Raises TypeError for an object that is none."""
    if not hasattr(frame, "__arrow_c_stream__"):
        found = f"{type(frame).__module__}.{type(frame).__qualname__}"
        hint = (
            "call its collect()"
            if hasattr(frame, "collect")
            else f"give ravel.open_export(url).table({argument!r}).arrow()"
        )
        raise TypeError(f"{argument} is a {found}, which has no __arrow_c_stream__: {hint}")
    try:
        return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"{argument}: a column holds values of several types: {error}") from None


def fit_arrow(argument: str, read: pa.Table, columns: Columns) -> pa.Table:
    """Cast a table to the wanted columns. Raises ValueError, TypeError."""
    chosen = [name for name in columns.kinds if name in read.column_names]
    twice = [name for name in chosen if read.column_names.count(name) > 1]
    if twice:
        raise ValueError(f"{argument} has the columns {', '.join(twice)} twice: leave out one of each")
    read = _whole_numbers(argument, read.select(chosen), columns)
    columns.check(argument, {field.name: word_of(field.type) for field in read.schema})
    cells: dict[str, Any] = {}
    for field in columns.schema():
        name = field.name
        try:
            cells[name] = read[name].cast(field.type) if name in chosen else pa.nulls(len(read), field.type)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{argument}: column {name} holds a value that does not fit: {error}") from None
        if name in columns.never_null and cells[name].null_count:
            raise ValueError(
                f"{argument}: column {name} is null in {cells[name].null_count:,} rows, which no export has: "
                "leave these rows out"
            )
        if "binary" in columns.kinds[name] and not _are_ids(cells[name]):
            raise ValueError(
                f"{argument}: column {name} holds ids that are not {ID_SIZE} bytes: {columns.hint}"
            )
    return pa.table(cells, schema=columns.schema())


def _are_ids(column: _ArrowColumn) -> bool:
    """Return True for a column of ids, which may be null, or of lists of ids."""
    if isinstance(column.type, pa.ListType):
        ids: _ArrowColumn = pc.list_flatten(column)
        return not ids.null_count and _are_ids(ids)
    sizes: _ArrowColumn = pc.binary_length(column)
    lengths: _ArrowColumn = pc.min_max(sizes)
    return lengths.as_py() in ({"min": ID_SIZE, "max": ID_SIZE}, {"min": None, "max": None})


def _whole_numbers(argument: str, read: pa.Table, columns: Columns) -> pa.Table:
    """Cast floats back to whole numbers: pandas makes floats of numbers where some are absent. Raises ValueError."""
    for at, field in enumerate(read.schema):
        if columns.kinds[field.name] == "bigint" and pa.types.is_floating(field.type):
            floats: _ArrowColumn = read[field.name]
            try:
                read = read.set_column(at, field.name, floats.cast(pa.int64()))
            except pa.ArrowInvalid as error:
                raise ValueError(
                    f"{argument}: column {field.name} holds floats that are no whole numbers: {error}. "
                    "pandas' Int64 has numbers beside absent ones"
                ) from None
    return read


def word_of(kind: pa.DataType) -> str:
    """Return a type of Arrow as SQL calls it; what no table of exports has, as Arrow does."""
    if isinstance(kind, pa.DictionaryType):
        return word_of(kind.value_type)
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.ListViewType | pa.FixedSizeListType):
        return f"array<{word_of(kind.value_type)}>"
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_null(kind):
        return "void"
    if str(kind) in _BYTES or pa.types.is_fixed_size_binary(kind):
        return "binary"
    return "string" if str(kind) in _TEXTS else str(kind)
