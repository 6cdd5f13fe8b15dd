"""JSON documents that several authors edit apart, without nodes: operations, and what stands of those an author has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tests.support.ids import as_commit_id
from verifier.documents import DocumentEntry, DocumentValue
from verifier.json_contents import Json
from verifier.json_documents import read_json
from verifier.json_edits import JsonEditor
from verifier.json_registers import HeldRegisters


@dataclass(frozen=True)
class Said:
    """A commit: its operations by key, each with the numbers of the commits that it replaces there."""

    number: int
    operations: Mapping[str, tuple[str | None, frozenset[int]]]


@dataclass
class Author:
    """What one author has of a document."""

    history: "History"
    has: set[int] = field(default_factory=set)

    def entries(self) -> dict[str, DocumentEntry]:
        """What stands, as this author has it."""
        return self.history.entries(self.has)

    def editor(self) -> JsonEditor:
        """An editor of what this author sees."""
        return JsonEditor(HeldRegisters(self.entries()), self.history.random.randrange)

    def write(self, editor: JsonEditor) -> None:
        """Write a commit of what was edited."""
        entries = self.entries()
        operations = {}
        for one in editor.operations():
            tips = entries[one.key].tips if one.key in entries and not one.is_increment else ()
            operations[one.key] = (one.value, frozenset(tip.name[0] for tip in tips))
        self.has.add(self.history.say(operations))

    def value(self) -> Json:
        """The document's value."""
        return read_json(self.entries()).value


class History:
    """All commits of a document. Numbers are places in canonical order."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.said: list[Said] = []

    def say(self, operations: Mapping[str, tuple[str | None, frozenset[int]]]) -> int:
        """Add a commit, and return its number."""
        self.said.append(Said(len(self.said), operations))
        return len(self.said) - 1

    def entries(self, counting: set[int]) -> dict[str, DocumentEntry]:
        """What stands of the commits with these numbers."""
        replaced = {
            (number, key)
            for one in self.said
            if one.number in counting
            for key, (_, names) in one.operations.items()
            for number in names
        }
        tips: dict[str, list[DocumentValue]] = {}
        for one in self.said:
            if one.number in counting:
                for key, (value, _) in one.operations.items():
                    if (one.number, key) not in replaced:
                        name = as_commit_id(bytes([one.number]) * 32)
                        tips.setdefault(key, []).append(DocumentValue(name, (0, 0, one.number, name), value))
        return {key: DocumentEntry(tuple(found)) for key, found in tips.items()}
