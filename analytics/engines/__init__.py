"""Engines that run the definitions of `analytics.tables`: Spark at any size, DuckDB inside one process.

Both order branches with the code of `analytics.order.branch_tasks`. Start at `engine.py`.
"""

from typing import Final

ENGINES: Final = ("spark", "local")
"""By which an analysis can be run; the first is the default."""
