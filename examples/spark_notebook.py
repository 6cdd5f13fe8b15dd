"""Ravel's figures from a notebook with Spark, for what is larger than one machine: editors and jupytext open its cells.

Needs `pip install '.[analytics]'` in a checkout, and Java 17. RAVEL_EXPORT is the folder or URL of an export. With few
commits `spark.conf.set("spark.sql.shuffle.partitions", 2)` spares minutes.
"""

# %% Read commits. Each part is checked by the task that reads it.
import os
import sys

from pyspark.sql import SparkSession

import analytics.frames as figures
from ravel.exports.spark_source import register

if not os.environ.get("RAVEL_EXPORT"):
    sys.exit("RAVEL_EXPORT is not set: run `ravel export`, and set it to the folder that this prints")
url = os.environ["RAVEL_EXPORT"]
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else tasks run the first python3 of the PATH
spark = SparkSession.Builder().getOrCreate()
register(spark)
commits = spark.read.format("ravel").load(url)
voids = spark.read.format("ravel").option("table", "voids").load(url)

# %% The canonical order, from parents alone. All other figures start from it, so it is kept.
order = figures.order(commits, voids).persist()
timeline = (
    order.where("fault IS NULL")
    .orderBy("branch_id", "position")
    .select("branch_name", "rank", "author", "time")
    .toPandas()
)
print(timeline)

# %% How many commits share a rank, at most, in each branch?
widest = (
    figures.branches(order).where("merges > 0").select("branch_name", "width_max", "concurrency").toPandas()
)
widest = widest.rename(columns={"width_max": "width"})
print(widest)

# %% How long do merges wait for what they merge?
waits = figures.merges(order).toPandas()
print(waits[["merges", "waited_p50", "waited_p90"]])

# %% Which places have no commit, and why?
print(figures.faults(order).toPandas())

# %% Let go of what was kept.
order.unpersist()
