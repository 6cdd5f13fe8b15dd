"""Yjs editors of texts, as programs beside a node have them."""

from typing import Any

from pycrdt import Doc, Text

from protocol.crypto.hashing import text_clients
from protocol.formats.document_kinds import TEXT_SESSION_BITS
from protocol.ids import BranchId, UserId
from tests.support.nodes import Node


class Editor:
    """A Yjs editor of the text that a root holds."""

    def __init__(self, client_id: int, root: str = "t") -> None:
        self.client = client_id
        self.document: Doc[Any] = Doc(client_id=client_id)
        self.text = self.document.get(root, type=Text)

    def write(self, place: int, text: str) -> bytes:
        """Type something; return the update that this is."""
        before = self.document.get_state()
        self.text.insert(place, text)
        return self.document.get_update(before)

    def append(self, text: str) -> bytes:
        """Type something at the end."""
        return self.write(len(str(self.text).encode()), text)

    def delete(self, start: int, stop: int) -> bytes:
        """Delete something; return the update that this is, and nothing else."""
        made: list[bytes] = []
        watching = self.document.observe(lambda event: made.append(event.update))
        del self.text[start:stop]
        self.document.unobserve(watching)
        return made[-1]

    def take(self, update: bytes) -> str:
        """Take an update in; return what the text says then."""
        self.document.apply_update(update)
        return str(self.text)


def client_id(user: UserId, branch_id: BranchId, session: int = 1) -> int:
    """Return a client id of a user in a branch's text."""
    return text_clients(user, branch_id) << TEXT_SESSION_BITS | session


def client_of(node: Node, branch: str = "main", session: int = 1) -> int:
    """Return a client id of a node's user in a branch of that name."""
    return client_id(node.author.user, node.branch(branch).branch_id, session)


def editor_of(node: Node, branch: str = "main", session: int = 1, root: str = "t") -> Editor:
    """Return an editor of a node's user."""
    return Editor(client_of(node, branch, session), root)


def shown_by(update: bytes, root: str = "t") -> str:
    """Return what an editor shows who has this update alone."""
    return Editor(99, root).take(update)
