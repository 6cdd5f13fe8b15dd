"""Collects all table modules, so that one import of `metadata` declares every table."""

from typing import Final

from storage.schema import document_schema, peer_schema, relay_schema, schema, search_schema
from storage.schema.columns import metadata

__all__ = ["DECLARED", "metadata"]

DECLARED: Final = (schema, relay_schema, peer_schema, search_schema, document_schema)
"""The modules that declare tables."""
