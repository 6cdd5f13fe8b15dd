"""Ravel's figures from a notebook with pandas: editors and jupytext open its cells (`# %%`).

Needs `pip install './clients/python[pandas]' '.[analytics-local]'` in a checkout, and no Java. RAVEL_EXPORT is the
folder or URL of an export. `.polars()`, `.arrow()` and `.duckdb()` do as well as
`.pandas()`; figures are tables of Arrow.
"""

# %% Open the export. Every file is checked against the manifest.
import os
import sys

import analytics.frames as figures
import ravel

if not os.environ.get("RAVEL_EXPORT"):
    sys.exit("RAVEL_EXPORT is not set: run `ravel export`, and set it to the folder that this prints")
export = ravel.open_export(os.environ["RAVEL_EXPORT"])
commits = export.table("commits").pandas()
voids = export.table("voids").pandas()

# %% The canonical order, from parents alone. All other figures start from it.
order = figures.order(commits, voids)
commits_in_order = order.to_pandas()
placed = commits_in_order[commits_in_order["fault"].isna()].sort_values(["branch_id", "position"])
timeline = placed[["branch_name", "rank", "author", "time"]]
print(timeline)

# %% How many commits share a rank, at most, in each branch?
branches = figures.branches(order).to_pandas()
widest = branches.loc[branches["merges"] > 0, ["branch_name", "width_max", "concurrency"]]
print(widest)

# %% How wide is each branch as it grows?
widths = figures.widths(order).to_pandas().sort_values(["branch_id", "rank"])
print(widths.groupby("width")["rank"].count())

# %% How long do merges wait for what they merge?
waits = figures.merges(order).to_pandas()
print(waits[["merges", "waited_p50", "waited_p90"]])

# %% Which places have no commit, and why?
print(figures.faults(order).to_pandas())

# %% Who came and went? Figures of members need the tables that tell of them.
members = figures.membership(
    order,
    memberships=export.table("memberships").pandas(),
    members=export.table("members").pandas(),
    topics=export.table("topics").pandas(),
).to_pandas()
print(members[["time", "operation", "permission", "members"]])

# %% What does each node have? This is asked of commits as exported, and not as ordered.
stores = figures.stores(commits, voids=voids).to_pandas()
print(stores[["node", "commits"]])
