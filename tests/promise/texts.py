"""Types into texts, as an editor beside a node does; and shows what nodes say of documents.

Texts are looked at in this process: only what honest editors make comes here as an update, and forged bytes that no library
would survive have tests of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from node.content import texts
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import DICT, SET
from protocol.formats.text import id_text
from protocol.ids import BranchId
from tests.promise.people import Person
from tests.support.editors import Editor
from tests.support.looking import look_here

_ROOT = "t"


@contextmanager
def texts_in_this_process() -> Iterator[None]:
    """Look at texts without processes of their own, which take as long as the rest of a history."""
    with patch.object(texts, "run_worker", look_here):
        yield


async def type_into(person: Person, branch: str, number: int) -> None:
    """Type or delete something, perhaps in an editor that has been offline for a while."""
    editor = person.editors.get(branch)
    if editor is None or number % 3:
        client = (await person.texts.open(branch))["client"]
        editor = person.editors[branch] = Editor(client, _ROOT)
        editor.take((await person.texts.version(person.find_branch(branch))).update)
    size = len(str(editor.text))
    if size > 3 and number % 5 == 0:
        update = editor.delete(number % (size - 2), number % (size - 2) + 2)
    else:
        update = editor.write(number % (size + 1), f"{person.name[0]}{number % 89} ")
    try:
        await person.texts.push(branch, update)
    except ServiceError:
        del person.editors[branch]
        raise


async def show_documents(person: Person, branch_id: BranchId) -> dict[str, str]:
    """Say what a node shows of a branch's set, dict and text."""
    branch, shown = id_text(branch_id), {}
    for kind in (SET, DICT):
        try:
            shown[kind.name] = str((await person.documents.read_window(kind, branch, 0, 1000)).entries)
        except ServiceError as error:
            shown[kind.name] = error.code
    try:
        view = await person.texts.pull(branch, _ROOT)
        shown["text"] = f"{view['text']!r} {view['update']} {view['faults']}"
    except ServiceError as error:
        shown["text"] = error.code
    return shown
