"""Five questions to an export, as a notebook: editors and jupytext open its cells (`# %%`).

Needs `pip install './clients/python[pandas,duckdb]'` in a checkout. RAVEL_EXPORT is the folder or URL of the export.
"""

# %% Open the export. Every file is checked against the manifest.
import os
import sys

import ravel

if not os.environ.get("RAVEL_EXPORT"):
    sys.exit("RAVEL_EXPORT is not set: run `ravel export`, and set it to the folder that this prints")
export = ravel.open_export(os.environ["RAVEL_EXPORT"])
commits = export.table("commits")
for field in commits.schema():
    print(field.name, field.type, (field.metadata or {}).get(b"description", b"").decode())

# %% Who wrote how much, and when last?
frame = commits.pandas()
frame["author"] = frame["author"].map(bytes.hex)
by_author = frame.groupby("author").agg(
    commits=("commit_id", "count"), bytes=("size", "sum"), latest=("time_utc", "max")
)
print(by_author.sort_values("commits", ascending=False).head(20))

# %% How many commits came each day?
print(frame.groupby(frame["received_utc"].dt.date)["commit_id"].count())

# %% Which branches merge most?
rows = commits.duckdb()
merges = rows.filter("len(acks) > 1").aggregate("branch_name, count(*) AS merges").order("merges DESC")
print(merges)

# %% How long did commits wait here for their parents?
waited = rows.aggregate(
    "branch_name, count(arrived_at) AS waited, max(received_at - arrived_at) AS longest_ms"
)
print(waited)

# %% What is the order of the largest branch? This holds for branches without checkpoints; `ravel analyze` computes all.
largest = frame["branch_id"].map(bytes.hex).mode()[0]
order = frame[frame["branch_id"].map(bytes.hex) == largest].sort_values(["rank", "commit_id"])
print(order[["rank", "author", "body_kind", "time_utc"]])
