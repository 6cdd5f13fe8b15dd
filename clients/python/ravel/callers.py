"""Base of the generated calls: one way to call an operation, for a client that waits and for one that awaits."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from ravel.operations import Operation

if TYPE_CHECKING:
    from ravel.event_streams import AsyncEventStream, EventStream

A = TypeVar("A")
P = ParamSpec("P")


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


def awaited(
    method: Callable[Concatenate[Any, P], A],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]:
    """Return a method of a SyncCaller as one of an AsyncCaller, whose `_call` gives what is awaited."""
    begin = cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, A]]", method)

    @wraps(method)  # a coroutine function, as which `help`, `unittest.mock` and web frameworks know it
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> A:  # noqa: ANN401  # any AsyncCaller
        return await begin(self, *args, **kwargs)

    return call


def streamed(
    method: Callable[Concatenate[Any, P], "EventStream"],
) -> Callable[Concatenate[Any, P], "AsyncEventStream"]:
    """Return a method that follows events as one of an AsyncCaller."""
    begin = cast("Callable[Concatenate[Any, P], AsyncEventStream]", method)

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> "AsyncEventStream":  # noqa: ANN401  # any AsyncCaller
        return begin(self, *args, **kwargs)

    shown = signature(method).replace(return_annotation="AsyncEventStream")
    call.__dict__["__signature__"] = shown
    return call
