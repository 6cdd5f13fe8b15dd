"""The modules of the Python client that are made from the table of endpoints: the calls.

`python -m tests.reference` writes them into clients/python/ravel. A call is a method of the endpoint's name, for a client
that waits and for one that awaits: a signature, whose decorator names the endpoint.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

import msgspec
from msgspec import NODEFAULT, structs

from node.contract.table import ENDPOINTS, AnyEndpoint

FOLDER: Final = Path(__file__).parents[2] / "clients" / "python" / "ravel"
_MADE: Final = "Made from the table of endpoints by `make reference`."
_CONTRACT: Final = "node.contract."
_TYPES: Final = "ravel.types."
_ROOMS: Final = {
    "node": ("node", "peers", "relay_accounts", "bundles", "tokens", "browsers", "care"),
    "people": ("repos", "members", "requests", "people", "devices", "recovery", "quorums"),
    "branches": ("branches", "commits", "posts", "timelines", "search", "unseen", "inbox"),
    "documents": ("document_list", "documents", "json_documents", "document_queries", "files"),
}
"""Module of calls -> the modules of the contract whose endpoints it calls."""
_INDENT: Final = "    "
_WIDTH: Final = 118
"""Characters of a line of a docstring, with its indentation."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a call: its name, its type as text, and its default as text, "" where it must be given."""

    name: str
    type: str
    default: str = ""

    @property
    def text(self) -> str:
        """As a signature has it."""
        return f"{self.name}: {self.type}" + (f" = {self.default}" if self.default else "")


def modules() -> dict[str, str]:
    """Path of each module, from the package's folder -> its text, formatted."""
    subjects: dict[str, list[AnyEndpoint]] = {}
    for endpoint in ENDPOINTS:
        subjects.setdefault(_subject_of(endpoint), []).append(endpoint)
    found = {"calls/__init__.py": f'"""One method for each endpoint. Start with `people`. {_MADE}"""\n'}
    for subject, endpoints in subjects.items():
        found[f"calls/{subject}.py"] = _calls_module(subject, endpoints)
    found["calls/all_calls.py"] = _all_calls(subjects)
    return _formatted(found)


def write() -> None:
    """Write them, and remove what is no longer made."""
    made = modules()
    for path, text in made.items():
        (FOLDER / path).parent.mkdir(exist_ok=True)
        (FOLDER / path).write_text(text)
    for file in (FOLDER / "calls").glob("*.py"):
        if f"calls/{file.name}" not in made:
            file.unlink()


def _type_name(hint: Any, *, is_argument: bool = False) -> str:  # noqa: ANN401  # as above
    """A type as source text. An argument may be any sequence or mapping."""
    origin, inner = get_origin(hint), get_args(hint)

    def name(one: Any) -> str:  # noqa: ANN401  # as above
        return _type_name(one, is_argument=is_argument)

    if origin is Annotated:
        return name(inner[0])
    if origin in (Union, UnionType):
        return " | ".join(map(name, inner))
    if origin is Literal or hint is str:
        return "str"
    if origin is list or (origin is tuple and inner[1:] == (...,)):
        return f"{'Sequence' if is_argument else 'list'}[{name(inner[0])}]"
    if origin is dict:
        return f"{'Mapping' if is_argument else 'dict'}[{name(inner[0])}, {name(inner[1])}]"
    if hint is Any:
        return "Any"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return "Mapping[str, object]"
    simple: dict[Any, str] = {NoneType: "None", int: "int", bool: "bool", bytes: "bytes"}
    if hint in simple:
        return simple[hint]
    assert is_typeddict(hint), f"the client has no text for {hint}"
    return str(hint.__name__)


# --- calls ---


def _calls_module(subject: str, endpoints: list[AnyEndpoint]) -> str:
    called = _called(endpoints)
    constants = [_constant(endpoint) for endpoint in endpoints if endpoint not in called]
    methods = [line for endpoint in called for line in _methods(endpoint)]
    body = "\n".join([*constants, *methods])
    typing = [name for name, text in {"Any": "Any]", "Final": "Final["}.items() if text in body]
    callers = [name for name in ("calls", "watches") if f"@{name}(" in body]
    lines = ["# A method is its signature: the decorator makes what it does."]
    lines += ['# mypy: disable-error-code="empty-body"', f'"""Calls: {subject}. {_MADE}"""', ""]
    lines += ["from __future__ import annotations", ""]
    lines += [f"from typing import {', '.join(['TYPE_CHECKING', *typing])}", ""]
    lines += [f"from ravel.callers import {', '.join(['SyncCaller', *callers])}"]
    lines += [*(["from ravel.operations import Operation"] if constants else []), ""]
    lines += ["if TYPE_CHECKING:  # a command calls one or two, and imports their types"]
    lines += [*_type_imports(body, endpoints), "", *constants, "", ""]
    lines += [
        f"class {_class_name(subject)}(SyncCaller):",
        f'{_INDENT}"""Methods that wait for the answer."""',
    ]
    return "\n".join([*lines, *methods]) + "\n"


def _called(endpoints: Iterable[AnyEndpoint]) -> list[AnyEndpoint]:
    return [endpoint for endpoint in endpoints if not endpoint.is_download and endpoint.line is None]


def _type_imports(body: str, endpoints: Iterable[AnyEndpoint]) -> list[str]:
    """Imports of the types that the text of these endpoints' calls names."""
    types: dict[str, set[str]] = {}
    for endpoint in endpoints:
        if is_typeddict(endpoint.answer):
            types.setdefault(_subject(endpoint.answer), set()).add(endpoint.answer.__name__)
    collections = [
        name for name in ("AsyncIterable", "Iterable", "Mapping", "Sequence") if f"{name}[" in body
    ]
    lines = [f"{_INDENT}from collections.abc import {', '.join(collections)}", ""] if collections else []
    if "-> EventStream" in body:
        lines.append(f"{_INDENT}from ravel.event_streams import EventStream")
    for module, names in sorted(types.items()):
        lines.append(f"{_INDENT}from ravel.types.{module} import {', '.join(sorted(names))}")
    return lines


def _constant(endpoint: AnyEndpoint) -> str:
    """The operation of an endpoint that the client itself has a method for."""
    kind = _answer_name(endpoint)
    defaults = {one.name: one.default for one in _optional(endpoint)}
    parts = [*_operation(endpoint), *([f"defaults={_braced(defaults)}"] if defaults else [])]
    return f"{endpoint.name.upper()}: Final[Operation[{kind}]] = Operation({', '.join(parts)})"


def _operation(endpoint: AnyEndpoint) -> list[str]:
    """The arguments of an operation, without its defaults."""
    parts = [f'"{endpoint.method}"', f'"{endpoint.path}"']
    if is_typeddict(endpoint.answer):
        parts.append(f'"{_subject(endpoint.answer)}.{endpoint.answer.__name__}"')
    if endpoint.query and endpoint.method != "GET" and not endpoint.takes_bytes:
        parts.append("in_query=True")
    if endpoint.takes_bytes:
        parts.append("takes_bytes=True")
    if endpoint.seconds_max != type(endpoint).__dataclass_fields__["seconds_max"].default:
        parts.append(f"seconds_max={endpoint.seconds_max}")
    return parts


def _answer_name(endpoint: AnyEndpoint) -> str:
    return "bytes" if endpoint.is_download else _type_name(endpoint.answer)


def _methods(endpoint: AnyEndpoint) -> list[str]:
    """The method of an endpoint, and of one with events another that follows them."""
    parameters, options = _required(endpoint), _optional(endpoint)
    if endpoint.takes_bytes:
        parameters.append(Parameter("content", "bytes | Iterable[bytes]"))
    decorator = f"@calls({', '.join(_operation(endpoint))})"
    lines = _method(endpoint.name, decorator, parameters, options, _answer_name(endpoint), _about(endpoint))
    if endpoint.events:
        assert endpoint.name.startswith("follow_"), "the method that follows is called after it"
        # Of windows alone: a stream of edits has no length, and that of a result no place to go on from.
        is_endless = any(one.name == "since" for one in options)
        options = [one for one in options if one.name != ("limit" if is_endless else "cursor")]
        names = ", ".join(f"`{one.name}`" for one in endpoint.events)
        lines += _method(
            endpoint.name.replace("follow_", "watch_"),
            f"@watches({endpoint.name})",
            parameters,
            [*options, Parameter("reconnect", "bool", "True")],
            "EventStream",
            f"Follow events as they come: {names}.\n\nWith `reconnect`, a stream that is cut goes on where it was.",
        )
    return lines


def _awaiting_method(endpoint: AnyEndpoint, owner: str) -> list[str]:
    """The method to await of an endpoint that takes bytes: they may come from what awaits, too."""
    content = Parameter("content", "bytes | Iterable[bytes] | AsyncIterable[bytes]")
    given = {one.name: one.name for one in (*_required(endpoint), *_optional(endpoint))}
    call = f"self._call(operation_of({owner}.{endpoint.name}), {_braced(given)}, content)"
    parameters, options = [*_required(endpoint), content], _optional(endpoint)
    method = _method(
        f"async {endpoint.name}", "", parameters, options, _answer_name(endpoint), _about(endpoint)
    )
    return [*method, f"{_INDENT * 2}return await {call}"]


def _about(endpoint: AnyEndpoint) -> str:
    return f"{endpoint.summary}\n\n{endpoint.details}".strip()


def _method(
    name: str,
    decorator: str,
    parameters: list[Parameter],
    options: list[Parameter],
    kind: str,
    about: str,
) -> list[str]:
    """A method that has a docstring alone."""
    texts = ["self", *(one.text for one in parameters)]
    texts += ["*", *(one.text for one in options)] if options else []
    told, _, called = name.rpartition(" ")
    return [
        "",
        *([f"{_INDENT}{decorator}"] if decorator else []),
        f"{_INDENT}{f'{told} ' if told else ''}def {called}({', '.join(texts)}) -> {kind}:",
        _docstring(about, 2),
    ]


def _braced(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def call_text(endpoint: AnyEndpoint) -> str:
    """How the method of an endpoint is called: names of what must be given by position, and of what may be named."""
    if endpoint.line is not None:
        return "writer(branch)"
    given = [one.name for one in _required(endpoint)] + (["content"] if endpoint.takes_bytes else [])
    named = [f"{one.name}={one.default}" for one in _optional(endpoint)]
    return f"{endpoint.name}({', '.join([*given, *named])})"


def _required(endpoint: AnyEndpoint) -> list[Parameter]:
    """Parts of the path, and fields of the body that have no default."""
    found = [Parameter(one.name, "str") for one in endpoint.path_parameters]
    for name, field in endpoint.body_fields.items():
        if field.required:
            found.append(Parameter(name, _type_name(field.type, is_argument=True)))
    return found


def _optional(endpoint: AnyEndpoint) -> list[Parameter]:
    """What may be left out, with what the node takes then."""
    found = []
    for one in endpoint.query:
        default = bool(one.default) if one.type is bool else one.default
        kind = one.type.__name__ + (" | None" if default is None else "")
        found.append(Parameter(one.name, kind, _literal(default)))
    for name, field in endpoint.body_fields.items():
        if not field.required:
            kind = _type_name(field.type, is_argument=True)
            default = _field_default(field)
            found.append(
                Parameter(
                    name, kind if default != "None" or kind.endswith("None") else f"{kind} | None", default
                )
            )
    return found


def _field_default(field: structs.FieldInfo) -> str:
    if field.default is not NODEFAULT:
        return _literal(field.default)
    assert field.default_factory in (list, dict), f"the client has no text for the default of {field.name}"
    return "()" if field.default_factory is list else "None"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _all_calls(subjects: Mapping[str, list[AnyEndpoint]]) -> str:
    """Return the module of both classes. Methods to await are those that wait, but where they take more to send."""
    names = {subject: _class_name(subject) for subject in subjects}
    methods, whole, taken = [], [], []
    for subject, endpoints in subjects.items():
        for endpoint in _called(endpoints):
            if endpoint.takes_bytes:
                whole += _awaiting_method(endpoint, names[subject])
                taken.append(endpoint)
            else:
                methods.append(f"{_INDENT}{endpoint.name} = awaited({names[subject]}.{endpoint.name})")
            if endpoint.events:
                watch = endpoint.name.replace("follow_", "watch_")
                methods.append(f"{_INDENT}{watch} = streamed({names[subject]}.{watch})")
    lines = [f'"""All calls in two classes. {_MADE}"""', "", "from __future__ import annotations", ""]
    lines += [
        "from typing import TYPE_CHECKING",
        "",
        "from ravel.callers import AsyncCaller, awaited, operation_of, streamed",
    ]
    lines += [f"from ravel.calls.{subject} import {name}" for subject, name in names.items()]
    lines += ["", "if TYPE_CHECKING:", *_type_imports("\n".join(whole), taken)]
    lines += [
        "",
        "",
        f"class AllCalls({', '.join(names.values())}):",
        f'{_INDENT}"""All methods that wait."""',
    ]
    lines += [
        "",
        "",
        "class AsyncAllCalls(AsyncCaller):",
        f'{_INDENT}"""All methods to await."""',
        "",
        *methods,
    ]
    return "\n".join([*lines, *whole]) + "\n"


# --- text ---


def _subject(kind: type) -> str:
    assert kind.__module__.startswith(_TYPES), f"{kind} is no type of the client"
    return kind.__module__.removeprefix(_TYPES)


def _subject_of(endpoint: AnyEndpoint) -> str:
    for room, names in _ROOMS.items():
        for name in names:
            if vars(sys.modules[_CONTRACT + name]).get(endpoint.name.upper()) is endpoint:
                return room
    raise AssertionError(f"no module of the contract in `_ROOMS` defines {endpoint.name.upper()}")


def _class_name(subject: str) -> str:
    return "".join(map(str.capitalize, subject.split("_"))) + "Calls"


def _docstring(text: str, depth: int) -> str:
    """A docstring of this text, whose paragraphs are filled."""
    indent = _INDENT * depth
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        lines, line = [], ""
        for word in paragraph.split():
            # The first line has the quotes before it, and the last may have them after it.
            if line and len(indent) + len(line) + len(word) + 7 > _WIDTH:
                lines.append(line)
                line = ""
            line = f"{line} {word}".strip()
        paragraphs.append("\n".join([*lines, line]))
    filled = "\n\n".join(paragraphs)
    end = "\n" if "\n" in filled else ""
    body = f'"""{filled}{end}"""'.replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")
    return indent + body


def _formatted(made: dict[str, str]) -> dict[str, str]:
    """The modules in the form of all our code."""
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    told = ["--isolated", "--quiet", "--config", "line-length=110", "--config", 'target-version="py311"']
    with TemporaryDirectory() as folder:
        for path, text in made.items():
            (Path(folder) / path).parent.mkdir(exist_ok=True)
            (Path(folder) / path).write_text(text)
        order = ["--config", 'lint.isort.known-first-party=["ravel"]', "--select", "I", "--fix", folder]
        subprocess.run([*ruff, "check", *told, *order], check=True)
        subprocess.run([*ruff, "format", *told, folder], check=True)
        return {path: (Path(folder) / path).read_text() for path in made}
