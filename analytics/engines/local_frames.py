"""Counts figures of DataFrames that are not Spark's, with DuckDB inside this process."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from analytics.engines.frame_kinds import AnyFrame, Columns, from_arrow, names_of, to_arrow
from analytics.engines.given_tables import CARRIED_ON, ORDERED, columns_of, source_of
from analytics.engines.local_queries import LocalQueries


class LocalFrames(LocalQueries):
    """An engine of frames of one kind. Methods raise duckdb.Error; `order` also LargeBranchRefused, ValueError."""

    def __init__(self, kind: str, given: Mapping[str, AnyFrame]) -> None:
        """`given` are frames by the names of their tables, `commits` among them. Raises ValueError, TypeError."""
        self._kind = kind
        self._like = given["commits"]
        names = names_of(self._like)
        self._is_ordered = ORDERED in names
        self._has_node = "node" in names and not self._is_ordered
        # All are looked at, also those that no figure asks for: a mistake shows where it was made.
        self._given = {name: to_arrow(name, kind, frame, self._wanted(name)) for name, frame in given.items()}
        self._scratch = TemporaryDirectory(prefix="ravel-frames-")
        super().__init__(Path(self._scratch.name), is_small=True, carried=CARRIED_ON, with_digests=False)

    def define_source(self, name: str) -> None:
        """See Engine."""
        if name != "commits" or self._is_ordered:
            source = source_of(name, is_ordered=self._is_ordered, has_node=self._has_node)
            if source.table is not None:
                self._name_given(source.table)
            self.define(name, source.query, is_kept=False)
        elif name not in self._named:  # by `order`, which comes first
            self._name_given("commits")
            self._name_given("voids")
            self.define_void_ids("given_voids")
            self.define_distinct(name, "given_commits", has_authors=True, may_differ=True)

    def define_commits(self, name: str, within: str | None = None) -> None:
        """See Engine. Asked for where rows of an earlier analysis are kept, and here none are."""
        raise AssertionError(f"{name} within {within}: frames are read in full")

    def order(self, giant_from: int | None) -> None:
        """See Engine. Raises ValueError for ids that are none."""
        if not self._is_ordered:
            super().order(giant_from)
            return
        self._database.register("placed", self._given["commits"])
        self.define("ordered", "SELECT * FROM placed WHERE fault IS NULL", is_kept=False)

    def write(self, queries: Mapping[str, str], folder: str = "tables") -> None:
        """See Engine. Nothing is written, whatever `folder` says."""
        for name, query in queries.items():
            self.define(name, query, is_kept=True)

    def result(self, name: str) -> AnyFrame:
        """The rows of a relation, as a frame of the kind that was given."""
        return from_arrow(
            self._kind, self._database.sql(f"SELECT * FROM {name}").to_arrow_table(), self._like
        )

    def close(self) -> None:
        """See Engine."""
        self._database.close()
        self._scratch.cleanup()

    def _wanted(self, name: str) -> Columns:
        return columns_of(name, is_ordered=self._is_ordered and name == "commits")

    def _name_given(self, table: str) -> None:
        rows = self._given.get(table)
        self._database.register(
            f"given_{table}", columns_of(table).schema().empty_table() if rows is None else rows
        )
