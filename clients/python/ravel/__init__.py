"""Ravel from Python: `ravel.connect()` gives a client of the daemon on this machine, `ravel.connect_async()` one to await.

Answers have the types of `ravel.types`; what goes wrong is a RavelError. `ravel.open_export()` reads what a node exports.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ravel.errors import RavelError

__all__ = [
    "AsyncClient",
    "Client",
    "JsonEdits",
    "RavelError",
    "StreamEvent",
    "connect",
    "connect_async",
    "open_export",
]

if TYPE_CHECKING:
    from ravel.async_client import AsyncClient, connect_async
    from ravel.client import Client, connect
    from ravel.event_streams import StreamEvent
    from ravel.exports.tables import open_export
    from ravel.json_documents import JsonEdits
else:

    def __getattr__(name: str) -> object:
        """Import what is named when it is: httpx takes longer than all the rest, and is needed to await alone."""
        modules = {"Client": "client", "connect": "client"}
        modules |= {"AsyncClient": "async_client", "connect_async": "async_client"}
        modules |= {"StreamEvent": "event_streams", "JsonEdits": "json_documents"}
        if name == "open_export":
            return _find_open_export()
        if name in modules:
            return getattr(import_module(f"ravel.{modules[name]}"), name)
        raise AttributeError(f"{__name__} has no {name}")

    def _find_open_export() -> object:
        try:
            return import_module("ravel.exports.tables").open_export
        except ModuleNotFoundError as error:
            if error.name not in ("pyarrow", "blake3"):
                raise
            hint = (
                "pip install pyarrow blake3 fsspec pandas; or polars, duckdb, pyspark in the place of pandas"
            )
            raise ImportError(f"exports are read with {error.name}, which is not installed: {hint}") from None
