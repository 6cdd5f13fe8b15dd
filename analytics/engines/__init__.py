"""Engines that run the definitions of `analytics.tables`: Spark at any size, DuckDB inside one process.

Both order branches with the code of `analytics.order.branch_tasks`. Start with `engine`.
"""
