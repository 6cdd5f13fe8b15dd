"""What can be learnt from exports: PySpark jobs that read Parquet and nothing else."""
