"""Base of the generated calls: a call is a signature, for a client that waits and for one that awaits."""

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


def calls(
    method: str,
    path: str,
    answer: str = "",
    *,
    in_query: bool = False,
    takes_bytes: bool = False,
    seconds_max: float = 60.0,
) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """Return a decorator that makes a declared method call an endpoint with its arguments.

    What a keyword is by default is not sent. `content` is streamed where the endpoint `takes_bytes`. `Operation` explains
    the arguments.
    """

    def decorate(declared: Callable[P, A]) -> Callable[P, A]:
        declaration: Any = declared  # a function, of which Callable does not know the parts
        operation: Operation[A] = Operation(
            method,
            path,
            answer,
            declaration.__kwdefaults__ or {},
            in_query,
            takes_bytes,
            seconds_max,
        )

        @wraps(declared)
        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # types are those of the declaration
            given = _arguments(declaration, self, *args, **kwargs)
            return self._call(operation, given, given.pop("content", None) if takes_bytes else None)

        call.__dict__["operation"] = operation
        return cast("Callable[P, A]", call)

    return decorate


def watches(followed: Callable[..., object]) -> Callable[[Callable[P, A]], Callable[P, A]]:
    """Return a decorator that makes a declared method follow the events of another method's endpoint."""

    def decorate(declared: Callable[P, A]) -> Callable[P, A]:
        @wraps(declared)
        def watch(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # types are those of the declaration
            given = _arguments(declared, self, *args, **kwargs)
            return self._watch(operation_of(followed), given, reconnect=given.pop("reconnect"))

        return cast("Callable[P, A]", watch)

    return decorate


def operation_of(method: Callable[..., A]) -> Operation[A]:
    """Return the operation that a method calls."""
    operation: Operation[A] = method.__dict__["operation"]
    return operation


def _arguments(declaration: Any, /, *args: object, **kwargs: object) -> dict[str, Any]:  # noqa: ANN401  # a function, of which Callable lacks the parts
    """Return arguments by name, in the order of the declaration. Raises TypeError where they do not fit it."""
    declaration(*args, **kwargs)  # it does nothing: the interpreter compares
    code = declaration.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    given = {**(declaration.__kwdefaults__ or {}), **dict(zip(names, args[1:], strict=False)), **kwargs}
    return {name: given[name] for name in names}


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
