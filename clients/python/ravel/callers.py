"""Base of the generated calls: one way to call an operation, for a client that waits and for one that awaits."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from ravel.operations import Operation

if TYPE_CHECKING:
    from ravel.event_streams import AsyncEventStream, EventStream

A = TypeVar("A")


class SyncCaller(ABC):
    """Calls operations, and waits."""

    @abstractmethod
    def _call(
        self,
        operation: Operation[A],
        arguments: Mapping[str, object],
        content: bytes | Iterable[bytes] | None = None,
    ) -> A: ...

    @abstractmethod
    def _watch(
        self, operation: Operation[A], arguments: Mapping[str, object], *, reconnect: bool
    ) -> "EventStream": ...


class AsyncCaller(ABC):
    """Calls operations, and awaits."""

    @abstractmethod
    async def _call(
        self,
        operation: Operation[A],
        arguments: Mapping[str, object],
        content: bytes | Iterable[bytes] | AsyncIterable[bytes] | None = None,
    ) -> A: ...

    @abstractmethod
    def _watch(
        self, operation: Operation[A], arguments: Mapping[str, object], *, reconnect: bool
    ) -> "AsyncEventStream": ...
