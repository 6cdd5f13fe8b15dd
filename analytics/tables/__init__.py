"""The tables of an analysis: one file of SQL for each, which Spark and DuckDB both run. Reads and writes nothing itself.

Start with `definitions`; docs/contributing/add-a-statistic.md says what a file holds.
"""
