"""What a branch's bodies reduce to beside its timeline: a set, a dict, a text. Functions of the set of commits alone.

Each reducer takes what accepted commits say that are not void, in any order, and gives the same for the same commits.

**Words.** A `set1` or `dict1` says one word about each item or key that it has: there (with a value), or gone. A word is
named by its commit's id (of a carried commit that of its origin), and *stands* unless a commit says something about the
same item or key and names it. So an author replaces what it had seen, and what it had not seen stays beside that:

    add a                     a is there
    add a <- delete a         a is gone: the delete names the add
    add a <- delete a         a is there: the second add was not seen, and stands
    add a

What a commit names without saying anything of the same item, or what never was, changes nothing. Where a word is void,
what it had replaced stands again. No clock, hash or locale decides whether a word stands; of several values of one key
the last in canonical order is shown first.

**Texts.** Updates of a text are unordered: it is the union of them all. A *snapshot* stands for those that it names. It
counts while all of these are here and count themselves, so that it shows nothing of a commit that became void.

What Yjs updates mean is not looked at here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from protocol.content import DictEdit, SetEdit, TextSnapshot, TextUpdate

Place = tuple[int, int, int, bytes]
"""Where a commit stands in canonical order: its branch among those that continue one another (the first is 0),
checkpoints passed, rank, commit id."""
DocumentBody = SetEdit | DictEdit | TextUpdate | TextSnapshot
DOCUMENTS: Final[dict[str, tuple[type[DocumentBody], ...]]] = {
    "set": (SetEdit,),
    "dict": (DictEdit,),
    "text": (TextUpdate, TextSnapshot),
}
"""Which bodies each document is reduced from."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one commit says: `name` is the id that it had first."""

    name: bytes
    place: Place
    body: DocumentBody


@dataclass(frozen=True, slots=True)
class Word:
    """A word that stands: the value of an item or key, or None where it says that it is gone. An item's value is ""."""

    name: bytes
    place: Place
    value: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """All standing words about one item or key, in canonical order: its *tips*, which the next word replaces."""

    tips: tuple[Word, ...]

    @property
    def values(self) -> tuple[Word, ...]:
        """Those that say it is there, the last in canonical order first. None at all: it is gone."""
        return tuple(word for word in reversed(self.tips) if word.value is not None)


@dataclass(frozen=True, slots=True)
class TextState:
    """The updates that a text is the union of, in canonical order, and how many snapshots do not count."""

    standing: tuple[Said, ...]
    passed_over: int


def reduce_set(said: Iterable[Said]) -> dict[str, Entry]:
    """Entries of all items that anything stands about; an item is in the set where its entry has values."""
    return _reduce_words(
        [(one, _set_words(one.body), one.body.replaces) for one in said if isinstance(one.body, SetEdit)]
    )


def reduce_dict(said: Iterable[Said]) -> dict[str, Entry]:
    """Entries of all keys that anything stands about; the first of an entry's values is the key's."""
    return _reduce_words(
        [(one, _dict_words(one.body), one.body.replaces) for one in said if isinstance(one.body, DictEdit)]
    )


def reduce_text(said: Iterable[Said]) -> TextState:
    """The updates and counting snapshots that no counting snapshot names."""
    updates = [one for one in said if isinstance(one.body, TextUpdate | TextSnapshot)]
    snapshots = [(one, one.body.replaces) for one in updates if isinstance(one.body, TextSnapshot)]
    counting = {one.name for one in updates if isinstance(one.body, TextUpdate)}
    missing = [len(set(names) - counting) for _, names in snapshots]
    named_by: dict[bytes, list[int]] = {}
    for number, (_, names) in enumerate(snapshots):
        for name in set(names) - counting:
            named_by.setdefault(name, []).append(number)
    # From the updates up: snapshots that name each other in a circle, which only liars write, never count.
    ready = [number for number, count in enumerate(missing) if not count]
    for number in ready:  # grows while it is read
        name = snapshots[number][0].name
        if name not in counting:
            counting.add(name)
            for other in named_by.get(name, ()):
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
    replaced = {name for number in ready for name in snapshots[number][1]}
    unready = {id(one) for number, (one, _) in enumerate(snapshots) if missing[number]}
    standing = [one for one in updates if one.name not in replaced and id(one) not in unready]
    return TextState(tuple(sorted(standing, key=lambda one: one.place)), len(unready))


def _set_words(body: SetEdit) -> dict[str, str | None]:
    return dict[str, str | None](dict.fromkeys(body.deleted)) | dict.fromkeys(body.added, "")


def _dict_words(body: DictEdit) -> dict[str, str | None]:
    return dict[str, str | None](dict.fromkeys(body.erased)) | {entry.key: entry.value for entry in body.put}


def _reduce_words(
    said: list[tuple[Said, dict[str, str | None], tuple[bytes, ...]]],
) -> dict[str, Entry]:
    """Entries by item or key. Costs O(words * names), where a commit has at most DEP_COUNT_MAX names."""
    keys_of: dict[bytes, set[str]] = {}
    for one, words, _ in said:
        keys_of.setdefault(one.name, set()).update(words)
    replaced: dict[bytes, set[str]] = {}
    for _, words, names in said:
        for name in names:
            both = keys_of.get(name, set()) & words.keys()
            if both:
                replaced.setdefault(name, set()).update(both)
    tips: dict[str, dict[tuple[bytes, str | None], Word]] = {}
    for one, words, _ in sorted(said, key=lambda item: item[0].place):
        gone = replaced.get(one.name, set())
        for key, value in words.items():
            if key not in gone:
                # What two members carried from the same commit is one word.
                tips.setdefault(key, {}).setdefault((one.name, value), Word(one.name, one.place, value))
    return {key: Entry(tuple(words.values())) for key, words in tips.items()}


def count_words(body: DocumentBody) -> int:
    """How many words a commit says, which is what reducing it costs."""
    match body:
        case SetEdit(added, deleted):
            return len(added) + len(deleted)
        case DictEdit(put, erased):
            return len(put) + len(erased)
        case _:
            return 1


def in_byte_order(entries: Mapping[str, Entry]) -> list[str]:
    """Items or keys that are there, by their UTF-8 bytes: in the same order on every machine."""
    return sorted((key for key, entry in entries.items() if entry.values), key=lambda key: key.encode())
