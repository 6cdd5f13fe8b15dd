"""import ssb: a log of classic Scuttlebutt messages into a repo, a branch for each feed."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from node.cli.progress import show_progress
from node.cli.shared import (
    JsonOption,
    client,
    imported_ids,
    print_fields,
    print_json,
    print_table,
)
from node.runtime.errors import ServiceError
from ravel.characters import display_safe

if TYPE_CHECKING:
    from node.importers.item import PackedItem
    from node.importers.ssb_log import RefusedLine
    from ravel import Client


def import_ssb(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(help="JSON Lines of {key, value, timestamp}, or the same with .gz.")
    ],
    repo: Annotated[str, typer.Option("--repo", help="Repo to import into: name, id or prefix.")],
    hmac_key: Annotated[
        str, typer.Option(help="The network's HMAC key, 32 bytes in base64, where it has one.")
    ] = "",
    refused: Annotated[
        Path | None, typer.Option(help="Write every refused message to this file, one JSON object a line.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import a Scuttlebutt log. Verifies each message; each feed becomes a branch ssb/... ; lists what is refused."""
    from node.importers.ssb_log import hmac_key_of, import_ssb_log, reasons_of

    key = hmac_key_of(hmac_key)
    if hmac_key and key is None:
        raise ServiceError("bad_request", "the HMAC key is not 32 bytes in base64", "give the network's key")
    target = _RepoTarget(client(context), repo)
    with _refusals(refused) as on_refusal, show_progress("imported", "message", None) as progress:
        report = import_ssb_log(file, target, key, progress=progress, on_refusal=on_refusal)
    if not report.imported + report.already + report.refused.total():
        raise ServiceError("bad_input", "there is nothing in it to import", "give a log that has messages")
    answer = report.as_json()
    if as_json:
        print_json(answer)
        return
    counts = [("imported", report.imported), ("already", report.already), ("feeds", len(report.feeds))]
    print_fields([*counts, ("refused", report.refused.total())])
    if report.refused:
        print_table(("reason", "messages"), reasons_of(answer))


class _RepoTarget:
    """The branches of a repo, by the API."""

    def __init__(self, api: "Client", repo: str) -> None:
        self._api = api
        self._repo = repo
        self._ids = {one["name"]: one["branch"] for one in api.list_branches(repo)["branches"]}

    def load(self, branch: str) -> Iterator[str]:
        """Yield the ids that were imported into a branch."""
        from node.importers.ssb_log import SSB_SOURCE

        if branch in self._ids:
            yield from imported_ids(self._api, self._ids[branch], SSB_SOURCE)

    def send(self, branch: str, batch: "list[PackedItem]") -> None:
        """Import a batch."""
        from node.importers.ssb_log import SSB_SOURCE

        if branch not in self._ids:
            self._ids[branch] = self._api.create_branch(self._repo, branch)["branch"]
        self._api.import_commits(self._ids[branch], batch, SSB_SOURCE)


@contextmanager
def _refusals(path: Path | None) -> Iterator[Callable[["RefusedLine"], None]]:
    """Writes refusals to a file, if there is one."""
    if path is None:
        yield lambda _: None
        return
    try:
        with path.open("w", encoding="utf-8") as file:
            yield lambda entry: print(json.dumps(entry), file=file)
    except OSError as error:
        raise ServiceError("bad_input", f"{display_safe(str(path))} cannot be written: {error}") from None
