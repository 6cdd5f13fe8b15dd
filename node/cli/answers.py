"""The one way that commands answer: a command returns a value, and a printer in its decorator says what people see of it.

`--json` prints the whole value as one JSON object. Everything else goes through a printer: `Says` is a sentence with the
commands that people need next, `Fields` and `Table` are made from the names of fields, other printers are functions that
call those of `node.cli.printing`. `--verbose` prints what a printer leaves out.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Final, get_args

import typer
from typer.models import OptionInfo

from node.cli.command_table import REPO_LEFT_OUT
from node.cli.hints import as_called
from node.cli.printing import (
    ID_WIDTH,
    Says,
    id_text_shown,
    is_terminal,
    is_verbose,
    print_fields,
    print_table,
    say_wrapped,
    state_word,
    verbosely,
)
from node.cli.shared import EMPTY_ADVICE, client, repo_in_use, settings
from node.runtime.errors import EXIT_OK, ServiceError
from node.runtime.language import in_language

__all__ = [
    "ID_WIDTH",
    "Column",
    "Fields",
    "JsonOption",
    "Outcome",
    "Says",
    "Table",
    "advice_of",
    "marks",
    "print_fields",
    "print_json",
    "print_table",
    "prints",
    "say_advice",
    "short",
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_VerboseOption = Annotated[bool, typer.Option("--verbose", help="Print all that is known of it.")]

_CONTEXT: Final = "context_of_run"
"""Name of typer's own parameter of a command, which no option has."""
_VERBOSE: Final = "is_verbose_run"
_MAIN: Final = "main"
"""The branch that is meant where none is named."""
Item = Any
"""An object of an answer: a mapping, whose type each endpoint states."""
Column = str | tuple[str, str | Callable[[Item], object]]
"""The name of a field; or what people read for it, and the field or a function that gives the value."""
Printer = Callable[[Item], object]
WORD_FIELDS: Final = frozenset({"direction", "kind", "permission", "source", "state", "status", "version"})
"""Fields whose values are words of this program: a terminal gets them in the reader's language."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Answer that people and programs see differently, or that has an exit code of its own."""

    answer: Mapping[str, object]
    shown: object = None
    """The value for the printer, where that is not the answer."""
    exit_code: int = EXIT_OK


class Fields:
    """Printer of some fields, one a line; of all where none are named."""

    def __init__(self, *shown: Column) -> None:
        self.columns = shown

    def __call__(self, answer: Item) -> None:
        """Print the fields of an answer."""
        columns = self.columns or list(answer)
        print_fields((_heading(one), _value(answer, one)) for one in columns)


class Table:
    """Printer of a list field of the answer as a table, or of a given sentence if the list is empty.

    `more` are columns that `--verbose` adds.
    """

    def __init__(
        self, rows: str, *columns: Column, more: Sequence[Column] = (), empty: Says | None = None
    ) -> None:
        self.rows = rows
        self.columns = (*columns, *more)
        self._few = columns
        self._empty = empty
        self.has_more = bool(more)

    def __call__(self, answer: Item) -> None:
        """Print the rows of an answer."""
        if not answer[self.rows] and (self._empty is not None or is_terminal()):
            (self._empty or Says(f"No {self.rows}."))(answer)
            return
        columns = self.columns if is_verbose() else self._few
        headings = [_heading(one) for one in columns]
        print_table(headings, ([_value(row, one) for one in columns] for row in answer[self.rows]))


def short(field: str) -> Column:
    """Return a column with the beginning of an id: as much as commands need to find it."""
    return field, lambda item: id_text_shown(str(item[field]))


def marks(*names: str | tuple[str, str]) -> Callable[[Item], str]:
    """Return a function that joins the names of fields that are true; or what people read, of pairs with the field."""
    pairs = [(name, name) if isinstance(name, str) else name for name in names]
    return lambda item: ", ".join(state_word(said) for said, field in pairs if item[field])


def advice_of(item: Item) -> str:
    """Return the next steps that an item names, with `ravel` in them written as it was called here."""
    return as_called(item["advice"])


def say_advice(repos: Iterable[Item]) -> None:
    """Print the next steps of the repos that have some, in full: a table would cut a command."""
    for one in repos:
        if one["advice"]:  # translated apart from the name, which would hide it
            say_wrapped(f"{one['name'] or one['repo']}: {as_called(in_language(one['advice']))}")


def _heading(column: Column) -> str:
    return column if isinstance(column, str) else column[0]


def _value(item: Item, column: Column) -> object:
    source = column if isinstance(column, str) else column[1]
    if callable(source):
        return source(item)
    value = item[source]
    return state_word(value) if source in WORD_FIELDS and isinstance(value, str) else value


class _LateClient:
    """The API of the folder's daemon, connected when it is first used: wrong options are refused without a daemon."""

    def __init__(self, context: typer.Context) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # a method of the client
        if "_client" not in vars(self):
            self._client = client(self._context)
        return getattr(self._client, name)


def _check_absent(context: Any, name: str) -> None:  # noqa: ANN401  # typer's own
    """Refuse an empty name that was typed: what is left out has another meaning. Raises ServiceError `bad_request`."""
    source = context.get_parameter_source(name)
    if source is not None and source.name == "COMMANDLINE":
        raise ServiceError("bad_request", f"an empty {name} was given", EMPTY_ADVICE)


def _subject(signature: inspect.Signature) -> tuple[inspect.Parameter | None, list[str]]:
    """Return the first argument of a command, if it is a repo or a branch, and names of the others that it needs."""
    found = [
        one
        for one in signature.parameters.values()
        if one.annotation not in ("Client", typer.Context)
        and not any(isinstance(said, OptionInfo) for said in get_args(one.annotation))
    ]
    if not found or found[0].name not in ("repo", "branch"):
        return None, []
    return found[0], [one.name for one in found[1:] if one.default is inspect.Parameter.empty]


def _left_out(
    context: Any,  # noqa: ANN401  # typer's own
    api: Any,  # noqa: ANN401  # the folder's client
    subject: str,
    values: Mapping[str, object],
    others: Sequence[str],
) -> dict[str, str]:
    """Return the repo that a line means that names none, or its main branch.

    Raises ServiceError, which says how the line was read.
    """
    is_shifted = context.meta.get(REPO_LEFT_OUT, False)
    if not is_shifted:
        _check_absent(context, subject)
    try:
        repo = repo_in_use(settings(context).home, api, is_asked=not values.get("yes"))
        return {subject: repo if subject == "repo" else f"{repo}:{_MAIN}"}
    except ServiceError as error:
        if not is_shifted:
            raise
        read = f"{values[others[0]]!r} was taken for the {others[0]}"
        raise ServiceError(error.code, f"{error.message}; {read}", error.advice) from None


def prints(
    printer: Printer | None = None,
) -> Callable[[Callable[..., Mapping[str, object] | Outcome | None]], Callable[..., None]]:
    """Make a command of a function that returns its answer. The command takes `--json`; without it, the printer prints.

    A parameter of type "Client" gets the API of the folder's daemon. By default all fields are printed.
    """
    show = printer or Fields()

    def decorate(function: Callable[..., Mapping[str, object] | Outcome | None]) -> Callable[..., None]:
        signature = inspect.signature(function)
        given = next(
            (one for one in signature.parameters.values() if one.annotation in ("Client", typer.Context)),
            None,
        )

        subject, others = _subject(signature)
        client = given.name if given is not None and given.annotation == "Client" else ""
        optional = ""  # name of the parameter that a line may leave out
        if client and subject and (subject.default == "" or (subject.name == "repo" and others)):
            optional = subject.name

        @wraps(function)
        def command(*, as_json: bool, **values: object) -> None:
            context: Any = values.pop(_CONTEXT)
            verbose = bool(values.pop(_VERBOSE, False))
            if given is not None:
                values[given.name] = _LateClient(context) if client else context
            try:
                if optional and not values[optional]:
                    values |= _left_out(context, values[client], optional, values, others)
                found = function(**values)
            except ServiceError as error:
                asked = vars(values[given.name]).get("_client") if given is not None else None
                if asked is None or "config set" not in error.advice:
                    raise
                raise _with_pending(error, asked) from None
            if found is None:  # the content that was asked for is on standard output
                return
            outcome = found if isinstance(found, Outcome) else Outcome(found)
            if as_json:
                print_json(outcome.answer)
            else:
                shown: Any = outcome.answer if outcome.shown is None else outcome.shown
                with verbosely(verbose):
                    show(_named_values(values, shown) if isinstance(show, Says) else shown)
                    if verbose and isinstance(show, Says):
                        print_fields(outcome.answer.items())
            if outcome.exit_code != EXIT_OK:
                raise typer.Exit(outcome.exit_code)

        kept = [one for one in signature.parameters.values() if one is not given]
        if optional:
            kept = [one.replace(default="") if one is subject else one for one in kept]
        by_name = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(_CONTEXT, by_name, annotation=typer.Context),
            *(one.replace(kind=by_name) for one in kept),
            inspect.Parameter("as_json", by_name, default=False, annotation=JsonOption),
        ]
        if isinstance(show, Says) or getattr(show, "has_more", False):
            added.append(inspect.Parameter(_VERBOSE, by_name, default=False, annotation=_VerboseOption))
        vars(command).update(printer=show, answer=function.__annotations__.get("return"))  # for the tests
        # typer reads these; it would evaluate the types of answers, which commands do not import.
        del command.__dict__["__wrapped__"]
        command.__annotations__ = {}
        vars(command)["__signature__"] = signature.replace(parameters=added, return_annotation=None)
        return command

    return decorate


def _named_values(arguments: Mapping[str, object], answer: Item) -> dict[str, Any]:
    """Return what a sentence may name: `X` of the answer, `X_given` of the command, `X_short`: an id; `called`: the repo."""
    given = {f"{name}_given": value for name, value in arguments.items()}
    short_ids = {
        f"{name}_short": value[:ID_WIDTH] for name, value in answer.items() if isinstance(value, str)
    }
    called = answer.get("name") or short_ids.get("repo_short", "")
    return {**arguments, **given, "called": called, **answer, **short_ids}


def _with_pending(error: ServiceError, api: Any) -> ServiceError:  # noqa: ANN401  # the folder's client
    """Return an error whose advice is a setting, with a restart as advice where the file has that setting already."""
    try:
        settings = api.list_settings()
    except ServiceError:  # no daemon answers
        return error
    waiting = [
        one["setting"]
        for one in settings["settings"]
        if one["restart"] and f"config set {one['setting']}" in error.advice
    ]
    if not waiting:
        return error
    return ServiceError(
        error.code,
        f"{error.message}, for it was started before {' and '.join(waiting)} was changed",
        f"start the daemon again: {settings['restart_command']}",
    )


def print_json(answer: Mapping[str, object]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(answer, ensure_ascii=False), flush=True)
