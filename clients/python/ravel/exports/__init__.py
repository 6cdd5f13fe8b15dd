"""Exports of nodes: their schema, checks of their files, and tables of them for pandas, polars, Arrow, DuckDB and Spark.

`ravel.open_export()` is the way in. Needs pyarrow and blake3, which the extras `pandas`, `duckdb` and `spark` bring.
"""
