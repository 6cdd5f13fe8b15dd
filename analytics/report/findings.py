"""Has all tables written, and collects the few rows that the report shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from analytics.engines.engine import FIRST, Catalog, Engine
from analytics.order.branch_tasks import VOID
from analytics.report.downloads import Download
from analytics.report.drawing import COMMITS_MAX, Drawing, DrawnCommit
from analytics.report.flows import render_flows
from analytics.report.labels import LABELS, label
from analytics.report.member_findings import member_figures, store_lines
from analytics.report.page import Names
from analytics.report.pictures import WidthBin
from analytics.report.report import (
    AuthorLine,
    BranchLine,
    BranchShape,
    Distribution,
    Growth,
    MergeLine,
    OrderVerdict,
    RelayLine,
    ReplicationLine,
    Report,
)
from analytics.report.standing import Summary, find_standing
from analytics.tables.definitions import TABLES
from analytics.tables.periods import SHOWN, Period
from ravel.exports.checking import Export, latest_exports
from ravel.exports.schema import text_id

_BRANCH_LINES_MAX: Final = 100
_AUTHOR_LINES_MAX: Final = 20
_MERGE_LINES_MAX: Final = 20
_REPLICATION_LINES_MAX: Final = 40
_RELAY_LINES_MAX: Final = 40
_SHAPES_MAX: Final = 4
"""Rows that a page can show and a person take in; the tables hold all."""
_WIDTH_BINS_MAX: Final = 240
_IS_TRIVIAL: Final = "commits <= 3 AND width_max <= 1"
"""Branches without anything to see, such as the root branches of small repos: not on the page while there are others."""

Cells = Mapping[str, Any]


class Findings:
    """Findings of one run. `commits`, their order and the tables of FIRST are there."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        exports: Sequence[Export],
        before: Summary | None,
        names: Names,
    ) -> None:
        self._rows = engine.rows
        self._names = names
        self._catalog = catalog
        self._exports = exports
        self._before = before

    def report(
        self, verdict: OrderVerdict, drawn: bytes | None, downloads: Callable[[], tuple[Download, ...]]
    ) -> Report:
        """Write the tables, and say what goes on the page; `drawn` is the branch to draw. Raises OSError.

        `downloads` is called once the tables are written.
        """
        self._catalog.write(name for name in TABLES if name not in FIRST)
        period = self._catalog.period("ordered", SHOWN)
        (total,) = self._rows(
            "SELECT sum(commits) AS commits, count(*) AS branches, count(DISTINCT repo_id) AS repos, sum(bytes) AS bytes, "
            "sum(merges) AS merges FROM branches"
        )
        ((authors,),) = (row.values() for row in self._rows("SELECT count(*) AS authors FROM authors"))
        largest = self._rows(
            f"SELECT * FROM branches JOIN {LABELS} USING (branch_id) "
            f"ORDER BY ({_IS_TRIVIAL}), commits DESC, branch_id LIMIT {_BRANCH_LINES_MAX}"
        )
        (few,) = self._rows(f"SELECT count(*) AS trivial FROM branches WHERE {_IS_TRIVIAL}")
        told = len(largest) if few["trivial"] == total["branches"] else total["branches"] - few["trivial"]
        busiest = self._rows(f"SELECT * FROM authors ORDER BY commits DESC, author LIMIT {_AUTHOR_LINES_MAX}")
        forks = self._feed_forks([row["author"] for row in busiest])
        merged = self._rows(
            f"SELECT * FROM merges JOIN {LABELS} USING (branch_id) "
            f"ORDER BY merges DESC, branch_id LIMIT {_MERGE_LINES_MAX}"
        )
        nodes = tuple(dict.fromkeys(export.node for export in self._exports))
        latest = latest_exports(self._exports)
        made_at = {export.node: export.created_at for export in latest}
        exported_at = max(export.created_at for export in latest)
        apart = (exported_at - min(export.created_at for export in latest)) * 1000
        (imported,) = self._rows("SELECT sum(commits) AS commits FROM kinds WHERE body_kind = 'imported'")
        of_receipts = self._catalog.period("receipts", "received_at")
        damaged = sum(export.unjudged_repos for export in latest)
        merging = [(row["branch_id"], self._label(row)) for row in merged[:_SHAPES_MAX] if row["timed"]]
        wide = [(row["branch_id"], self._label(row)) for row in largest[:_SHAPES_MAX] if row["width_max"] > 1]
        members = member_figures(self._rows, self._catalog, period)
        return Report(
            exports=tuple((node, made_at[node]) for node in nodes),
            imported=imported["commits"] or 0,
            exported_at=exported_at,
            names=self._with_repos([line.repo_id for line in members.lines]),
            standing=find_standing(
                self._rows, self._before, of_receipts, nodes, exported_at, total, damaged, self._names, apart
            ),
            waits=self._distribution("waits", "waited_until / 1000", "merges", merging),
            widths=self._distribution("widths", "width", "1", wide),
            concurrency=self._distribution("widths", "width", "width", wide),
            commits=total["commits"] or 0,
            branches=total["branches"],
            repos=total["repos"],
            authors=authors,
            merges=total["merges"] or 0,
            size=total["bytes"] or 0,
            verdict=verdict,
            branch_lines=tuple(_branch_line(row, self._label(row)) for row in largest[:told]),
            author_lines=tuple(
                AuthorLine(
                    row["author"],
                    row["commits"],
                    row["branches"],
                    forks.get(row["author"], 0),
                    row["last_time"],
                )
                for row in busiest
            ),
            merge_lines=tuple(_merge_line(row, self._label(row)) for row in merged),
            replication_lines=() if len(self._exports) == 1 else self._replication_lines(),
            relay_lines=self._relay_lines(),
            store_lines=store_lines(self._rows),
            members=members,
            growth=self._growth(period),
            shapes=self._shapes(period, largest[:_SHAPES_MAX]),
            drawing=self._drawing(drawn),
            flows=render_flows(self._rows, self._names),
            downloads=downloads(),
        )

    def _with_repos(self, repos: Sequence[bytes]) -> Names:
        """Return the names given, and those that the export states of repos without one."""
        if not repos:
            return self._names
        rows = self._rows(
            f"SELECT repo_id, min(repo_name) AS name FROM branch_names WHERE repo_id IN ({_ids(repos)}) GROUP BY repo_id"
        )
        stated = {text_id(row["repo_id"]): row["name"] for row in rows if row["name"]}
        return Names({**stated, **self._names.known})

    def _label(self, row: Cells) -> str:
        return label(row, self._names)

    def _distribution(
        self, table: str, size: str, counted: str, branches: Sequence[tuple[bytes, str]]
    ) -> Distribution:
        """Return the distribution of sizes in a table, weighted by its counts; for these branches also one each."""
        told = f"SELECT branch_id, {size} AS size, {counted} AS number FROM {table}"
        everywhere = self._rows(
            f"SELECT size, sum(number) AS number FROM ({told}) AS told GROUP BY size ORDER BY size NULLS LAST"
        )
        if len(branches) < 2:  # one is all, or nearly
            return Distribution(_shares(everywhere), _total(everywhere))
        found: dict[bytes, list[Cells]] = {raw: [] for raw, _ in branches}
        for row in self._rows(
            f"SELECT branch_id, size, sum(number) AS number FROM ({told}) AS told "
            f"WHERE branch_id IN ({_ids([*found])}) GROUP BY branch_id, size ORDER BY size NULLS LAST"
        ):
            found[row["branch_id"]].append(row)
        lines = ((name, _total(found[raw]), _shares(found[raw])) for raw, name in branches)
        return Distribution(_shares(everywhere), _total(everywhere), tuple(line for line in lines if line[2]))

    def _feed_forks(self, authors: Sequence[bytes]) -> dict[bytes, int]:
        """Return how many places of their feeds these authors have used more than once, over all branches."""
        if not authors:
            return {}
        rows = self._rows(
            f"SELECT author, sum(places) AS places FROM feed_forks WHERE author IN ({_ids(authors)}) GROUP BY author"
        )
        return {row["author"]: row["places"] for row in rows}

    def _replication_lines(self) -> tuple[ReplicationLine, ...]:
        rows = self._rows(
            f"SELECT * FROM replication JOIN {LABELS} USING (branch_id) "
            f"JOIN (SELECT branch_id, ({_IS_TRIVIAL}) AS is_trivial FROM branches) AS judged USING (branch_id) "
            "WHERE lacking > 0 OR NOT is_trivial "
            f"ORDER BY commits + lacking DESC, branch_id, node LIMIT {_REPLICATION_LINES_MAX}"
        )
        return tuple(
            ReplicationLine(
                self._label(row),
                row["branch_id"],
                row["node"],
                row["commits"],
                row["lacking"],
                row["first_here"],
                row["delay_p50"],
                row["delay_p90"],
                row["delay_max"],
            )
            for row in rows
        )

    def _relay_lines(self) -> tuple[RelayLine, ...]:
        if not self._catalog.has_rows_of(TABLES["relays"].of):
            return ()
        return tuple(
            RelayLine(
                row["node"],
                row["topics"],
                row["kept_topics"],
                row["commits"],
                row["bytes"],
                row["kept_bytes"],
                row["quota_use"],
            )
            for row in self._rows(f"SELECT * FROM relays ORDER BY node LIMIT {_RELAY_LINES_MAX}")
        )

    def _growth(self, period: Period | None) -> Growth | None:
        if period is None:
            return None
        points = self._rows(
            "SELECT bucket_start, sum(commits) AS commits FROM growth GROUP BY bucket_start ORDER BY bucket_start"
        )
        rows = tuple(
            (row["bucket_start"], row["commits"]) for row in points if row["bucket_start"] is not None
        )
        left_out = sum(row["commits"] for row in points if row["bucket_start"] is None)
        return Growth(rows, period.bucket, left_out) if rows else None

    def _shapes(self, period: Period | None, branches: Sequence[Cells]) -> tuple[BranchShape, ...]:
        """Return how these branches look: of all in two queries."""
        if not branches:
            return ()
        ids = [branch["branch_id"] for branch in branches]
        steps = [-(-(branch["depth"] + 1) // _WIDTH_BINS_MAX) for branch in branches]
        step = " ".join(f"WHEN {_ids([raw])} THEN {step}" for raw, step in zip(ids, steps, strict=True))
        rows = self._rows(
            f"WITH stepped AS (SELECT branch_id, width, rank - rank % (CASE branch_id {step} END) AS first_rank "
            f"FROM widths WHERE branch_id IN ({_ids(ids)})) "
            "SELECT branch_id, first_rank, max(width) AS widest, avg(width) AS mean FROM stepped "
            "GROUP BY branch_id, first_rank ORDER BY first_rank"
        )
        bins: dict[bytes, list[WidthBin]] = {raw: [] for raw in ids}
        for row in rows:
            bins[row["branch_id"]].append(WidthBin(row["first_rank"], row["widest"], row["mean"]))
        points: dict[bytes, list[tuple[int, int]]] = {raw: [] for raw in ids}
        for row in self._rows(f"SELECT * FROM heads WHERE branch_id IN ({_ids(ids)}) ORDER BY bucket_start"):
            points[row["branch_id"]].append((row["bucket_start"], row["heads"]))
        return tuple(
            BranchShape(
                self._label(branch),
                branch["depth"] + 1,
                tuple(bins[raw]),
                branch["concurrency"],
                tuple(points[raw]),
                period.bucket if period else 0,
            )
            for raw, branch in zip(ids, branches, strict=True)
        )

    def _drawing(self, drawn: bytes | None) -> Drawing | None:
        """Return the branch asked for, or the most branched of those that can be drawn whole, or the largest.

        Of a branch that is too large, those of its commits are drawn where most were written side by side.
        """
        if drawn is None:
            chosen = self._rows(
                f"SELECT branch_id FROM branches ORDER BY CASE WHEN commits <= {COMMITS_MAX} THEN forks + merges ELSE 0 END "
                "DESC, commits DESC, branch_id LIMIT 1"
            )
            if not chosen:
                return None
            drawn = chosen[0]["branch_id"]
        (total,) = self._rows(
            f"SELECT branch_id, repo_name, branch_name, owner, namesakes, placed + void AS commits FROM faults "
            f"JOIN {LABELS} USING (branch_id) WHERE branch_id = {_ids([drawn])}"
        )
        first_rank = self._widest_rank(drawn) if total["commits"] > COMMITS_MAX else None
        # What is void has no place, but a rank as the export states it, at which it is drawn.
        shown = (
            "SELECT commit_id, fault, coalesce(rank, exported_rank) AS drawn_rank FROM placed "
            f"WHERE branch_id = {_ids([drawn])} AND (fault IS NULL OR fault = '{VOID}')"
        )
        told = (
            "ORDER BY drawn_rank DESC"
            if first_rank is None
            else f"WHERE drawn_rank >= {first_rank} ORDER BY drawn_rank"
        )
        few = self._rows(f"SELECT * FROM ({shown}) AS shown {told}, commit_id LIMIT {COMMITS_MAX}")
        if not few:
            return None
        # Of these few alone: to join a whole branch with its order would shuffle all of it.
        stated = {
            row["commit_id"]: row
            for row in self._rows(
                "SELECT commit_id, coalesce(source_author, author) AS author, acks, body_kind FROM commits "
                f"WHERE branch_id = {_ids([drawn])} AND commit_id IN ({_ids([row['commit_id'] for row in few])})"
            )
        }
        commits = tuple(
            _drawn_commit(row, stated[row["commit_id"]])
            for row in (reversed(few) if first_rank is None else few)
        )
        return Drawing(self._label(total), drawn, commits, total["commits"], first_rank)

    def _widest_rank(self, branch_id: bytes) -> int | None:
        """Return where the most branched stretch of a branch begins, None where no rank is shared."""
        stretches = self._rows(
            f"SELECT rank - rank % {COMMITS_MAX // 2} AS first_rank, sum(width) AS commits FROM widths "
            f"WHERE branch_id = {_ids([branch_id])} AND width > 1 GROUP BY rank - rank % {COMMITS_MAX // 2} "
            "ORDER BY commits DESC, first_rank DESC LIMIT 1"
        )
        return int(stretches[0]["first_rank"]) if stretches else None


def _drawn_commit(row: Cells, stated: Cells) -> DrawnCommit:
    return DrawnCommit(
        commit_id=row["commit_id"],
        author=stated["author"],
        rank=row["drawn_rank"],
        acks=tuple(dict.fromkeys(bytes(ack) for ack in stated["acks"])),
        is_void=row["fault"] == VOID,
        is_checkpoint=stated["body_kind"] == "checkpoint",
    )


def _total(rows: Sequence[Cells]) -> int:
    return sum(int(row["number"]) for row in rows)


def _shares(rows: Sequence[Cells]) -> tuple[tuple[float, float], ...]:
    """Return which share of all is at most so large. What has no size is larger than all."""
    total, below, points = _total(rows), 0, []
    for row in rows:
        below += int(row["number"])
        if row["size"] is not None:
            points.append((float(row["size"]), below / total))
    return tuple(points)


def _ids(raw: Sequence[bytes]) -> str:
    """Ids as SQL has them."""
    return ", ".join(f"X'{one.hex()}'" for one in raw)


def _branch_line(row: Cells, name: str) -> BranchLine:
    return BranchLine(
        branch_id=row["branch_id"],
        name=name,
        commits=row["commits"],
        authors=row["authors"],
        depth=row["depth"],
        heads=row["heads"],
        forks=row["forks"],
        merges=row["merges"],
        width_max=row["width_max"],
        width_mean=row["width_mean"],
        concurrency=row["concurrency"],
        size=row["bytes"],
        first_time=row["first_time"],
        last_time=row["last_time"],
    )


def _merge_line(row: Cells, name: str) -> MergeLine:
    return MergeLine(
        name=name,
        branch_id=row["branch_id"],
        merges=row["merges"],
        backdated=row["backdated"],
        waited_p50=row["waited_p50"],
        waited_p90=row["waited_p90"],
        waited_max=row["waited_max"],
        apart_p50=row["apart_p50"],
        apart_p90=row["apart_p90"],
    )
