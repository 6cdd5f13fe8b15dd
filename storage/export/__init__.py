"""The store as Parquet: parts, manifest, and where an export may lie. The schema is `ravel.exports.schema`.

Reading exports is `ravel.exports`'s. Start with `export`.
"""
