"""Kinds of DataFrames that `analytics.frames` takes and gives back, and how their columns are checked.

A kind is recognised without importing its library: a caller who has such a DataFrame has imported that. All kinds but
Spark's become tables of Arrow, of the types that DuckDB counts with, and results become that kind again.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from analytics.order.kernel import ID_SIZE

ARROW: Final = "pyarrow.Table"
PANDAS: Final = "pandas.DataFrame"
POLARS: Final = "polars.DataFrame"
DUCKDB: Final = "duckdb.DuckDBPyRelation"
SPARK: Final = "pyspark.sql.DataFrame"
KINDS: Final = (ARROW, PANDAS, POLARS, DUCKDB, SPARK)
"""Each by its module and class."""

AnyFrame: TypeAlias = Any
"""A frame of one of KINDS. Its class cannot be named here: all libraries but pyarrow may be absent, and share no type."""
_ArrowColumn: TypeAlias = Any
"""A column of Arrow, of any type: pyarrow's stubs give its functions only columns whose type is known."""

_LAZY: Final = "polars.LazyFrame"
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
    """What a frame must have. More columns are ignored."""

    kinds: Mapping[str, str]  # name -> type, in SQL's words
    may_lack: frozenset[str]  # null in all rows then
    never_null: frozenset[str]
    hint: str  # what to give instead of a frame that does not have them

    def schema(self) -> pa.Schema:
        """The same for Arrow."""
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


def kind_of(given: Mapping[str, object]) -> str:
    """The one kind of all arguments. Raises TypeError for an argument of no kind, or of another kind than the first."""
    kinds = {argument: _kind_of(argument, frame) for argument, frame in given.items()}
    (first, kind), *others = kinds.items()
    for argument, other in others:
        if other != kind:
            raise TypeError(
                f"{argument} is a {other}, and {first} a {kind}: give all tables as one kind, which the result is of too"
            )
    return kind


def _kind_of(argument: str, frame: object) -> str:
    for kind in KINDS:
        if _is(frame, kind):
            return kind
    hint = (
        "call its collect()"
        if _is(frame, _LAZY)
        else "ravel.open_export(url).table(name) gives them by .pandas(), .polars(), .arrow(), .duckdb(), .spark(session)"
    )
    found = f"{type(frame).__module__}.{type(frame).__qualname__}"
    raise TypeError(f"{argument} is a {found}, and must be one of {', '.join(KINDS)}: {hint}")


def _is(frame: object, kind: str) -> bool:
    module, _, name = kind.rpartition(".")
    of_kind = getattr(sys.modules.get(module), name, None)
    return of_kind is not None and isinstance(frame, of_kind)


def _fits(found: str, wanted: str) -> bool:
    if found.startswith("array<") and wanted.startswith("array<"):
        return _fits(found[6:-1], wanted[6:-1])
    return found in (wanted, "void") or (found in _INTS and wanted == "bigint")


def names_of(frame: AnyFrame) -> list[str]:
    """The names of a frame's columns."""
    return [str(name) for name in (frame.column_names if isinstance(frame, pa.Table) else frame.columns)]


def to_arrow(argument: str, kind: str, frame: AnyFrame, columns: Columns) -> pa.Table:
    """The columns of a frame that is not Spark's, in their types. Raises ValueError, TypeError."""
    names = names_of(frame)
    chosen = [name for name in columns.kinds if name in names]
    twice = [name for name in chosen if names.count(name) > 1]
    if twice:
        raise ValueError(f"{argument} has the columns {', '.join(twice)} twice: leave out one of each")
    read = _read(argument, kind, frame, chosen, columns)
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
    """Of ids that may be absent, or of lists of ids."""
    if isinstance(column.type, pa.ListType):
        ids: _ArrowColumn = pc.list_flatten(column)
        return not ids.null_count and _are_ids(ids)
    sizes: _ArrowColumn = pc.binary_length(column)
    lengths: _ArrowColumn = pc.min_max(sizes)
    return lengths.as_py() in ({"min": ID_SIZE, "max": ID_SIZE}, {"min": None, "max": None})


def _read(argument: str, kind: str, frame: AnyFrame, chosen: list[str], columns: Columns) -> pa.Table:
    if kind == PANDAS:
        return _read_pandas(argument, frame[chosen], columns)
    read: pa.Table
    if kind == POLARS:
        read = frame.select(chosen).to_arrow()
    elif kind == DUCKDB:
        read = frame.project(", ".join(f'"{name}"' for name in chosen) or "NULL").to_arrow_table()
    else:
        read = frame.select(chosen)
    return read


def _read_pandas(argument: str, frame: AnyFrame, columns: Columns) -> pa.Table:
    try:
        read = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"{argument}: a column holds values of several types: {error}") from None
    for at, field in enumerate(read.schema):
        # pandas has whole numbers as floats where some are absent.
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
    """A type of Arrow as SQL calls it; what no table of exports has, as Arrow does."""
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


def from_arrow(kind: str, rows: pa.Table, like: AnyFrame) -> AnyFrame:
    """Rows as a frame of a kind that is not Spark's. A relation is of the same connection as `like`. Raises ValueError."""
    if kind == PANDAS:
        import pandas as pd

        # Beside absent ones, pandas' own numbers become floats, which round large ones.
        dtypes: dict[pa.DataType, Any] = {
            pa.int64(): pd.Int64Dtype(),
            pa.int32(): pd.Int32Dtype(),
            pa.bool_(): pd.BooleanDtype(),
        }
        return rows.to_pandas(types_mapper=dtypes.get)
    if kind == POLARS:
        import polars as pl

        return pl.from_arrow(rows)
    return _relation(rows, like) if kind == DUCKDB else rows


def _relation(ravel_figure_rows: pa.Table, like: AnyFrame) -> AnyFrame:
    """Relations of another connection could not be joined with the caller's."""
    import duckdb

    try:
        # DuckDB finds the argument of this function by its name.
        return like.query("ravel_given", "SELECT * FROM ravel_figure_rows")
    except duckdb.CatalogException:
        raise ValueError(
            "the connection of this relation does not read tables of Python: SET python_enable_replacements = true, "
            "or give relation.to_arrow_table()"
        ) from None
