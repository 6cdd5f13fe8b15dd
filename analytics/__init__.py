"""PySpark jobs that analyze and audit Parquet exports. Imports no node code."""
