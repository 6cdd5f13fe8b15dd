"""The store as Parquet: schema, parts, manifest, and where an export may lie.

Reading exports is `analytics`'s. Start with `schema`, then `export`.
"""
