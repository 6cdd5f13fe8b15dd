"""Ravel from Python: `ravel.connect()` gives a client of the daemon on this machine, `ravel.connect_async()` one to await.

Answers have the types of `ravel.types`; what goes wrong is a RavelError.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ravel.errors import RavelError

__all__ = ["AsyncClient", "Client", "RavelError", "StreamEvent", "connect", "connect_async"]

if TYPE_CHECKING:
    from ravel.async_client import AsyncClient, connect_async
    from ravel.client import Client, connect
    from ravel.event_streams import StreamEvent
else:

    def __getattr__(name: str) -> object:
        """Import what is named when it is: httpx takes longer than all the rest, and is needed to await alone."""
        modules = {"Client": "client", "connect": "client"}
        modules |= {"AsyncClient": "async_client", "connect_async": "async_client"}
        modules |= {"StreamEvent": "event_streams"}
        if name in modules:
            return getattr(import_module(f"ravel.{modules[name]}"), name)
        raise AttributeError(f"{__name__} has no {name}")
