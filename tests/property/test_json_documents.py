"""JSON documents that authors edit apart, against a model written apart: no item twice, none lost, whatever is void.

The model knows no tree: it looks for each answer through all that stands.
"""

import json
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.support.json_histories import Author, History
from verifier.documents import DocumentEntry
from verifier.json_documents import read_json
from verifier.json_edits import EditRefused

KEYS = ("a", "b", "ä")


def _edit(author: Author, random: Random) -> None:
    """A few random edits; those that cannot be leave the others as they are."""
    editor = author.editor()
    for _ in range(random.randint(1, 3)):
        items = [*{key.split("\0")[1] for key in author.entries() if key.startswith("@")}, ""]
        item = random.choice(sorted(items))
        path = tuple(random.choices(KEYS, k=random.randint(0, 2)))
        try:
            match random.randrange(6):
                case 0:
                    editor.put(
                        path, random.choice([1, "x", {}, {"a": 1}, [], [1, {"b": 2}], {"$text": "t"}]), item
                    )
                case 1:
                    editor.add(path, random.randint(-3, 3), item)
                case 2:
                    editor.insert(
                        path, random.choice([1, {}, {"a": []}]), item, index=random.choice([None, 0])
                    )
                case 3 | 4:
                    editor.move(random.choice(sorted(items)), path, item)
                case _:
                    editor.remove(path, item)
        except EditRefused:
            continue
    author.write(editor)


def _last(entry: DocumentEntry, is_place: bool) -> object:
    """The last readable value that stands, with increments; None if there is none."""
    said = [json.loads(tip.value) for tip in entry.tips if tip.value is not None]
    added = [one["add"] for one in said if isinstance(one, dict) and "add" in one]
    others = [one for one in said if not (isinstance(one, dict) and "add" in one)]
    others = [one for one in others if (isinstance(one, dict) and "in" in one) == is_place]
    last = others[-1] if others else 0 if added else None
    return last + sum(added) if isinstance(last, int) else last


class _Model:
    def __init__(self, entries: dict[str, DocumentEntry]) -> None:
        everything = {tuple(key.split("\0")): entry for key, entry in entries.items()}
        last = {address: _last(entry, address[0] == "@") for address, entry in everything.items()}
        self.values = {address: one for address, one in last.items() if address[0] != "@" and one is not None}
        self.places = {
            address[1]: (tuple(one["in"]), one["at"])
            for address, one in last.items()
            if address[0] == "@" and isinstance(one, dict)
        }

    def is_map(self, address: tuple[str, ...]) -> bool:
        return any(one[: len(address)] == address and len(one) > len(address) for one in self.values)

    def shows(self, item: str) -> bool:
        """True if the list that it is placed in shows as one."""
        at = self.places[item][0]
        return not self.is_map(at) and self.values.get(at) == {"list": 1}

    def is_removed(self, item: str) -> bool:
        """True if its place, or that of what it lies in, does not stand."""
        seen: set[str] = set()
        while item and item not in seen:
            if item not in self.places:
                return True
            seen.add(item)
            item = self.places[item][0][0]
        return False

    def is_placed(self, item: str) -> bool:
        """True if lists that show lead from the root to it. No document here is as deep as it may be."""
        seen: set[str] = set()
        while item:
            if item in seen or item not in self.places or not self.shows(item):
                return False
            seen.add(item)
            item = self.places[item][0][0]
        return True

    def show(self, address: tuple[str, ...]) -> object:
        below = {
            one[len(address)]
            for one in self.values
            if one[: len(address)] == address and len(one) > len(address)
        }
        own = self.values.get(address)
        if below:
            return {key: self.show((*address, key)) for key in below}
        if own == {"list": 1}:
            here = sorted((at[1], item) for item, at in self.places.items() if at[0] == address)
            return [self.show_owner(item) for _, item in here]
        if isinstance(own, dict):
            return {} if own == {"map": 1} else {"$text": own["text"]}
        return own

    def is_marked(self, item: str) -> bool:
        """True if the item is a map, which shows its id."""
        return self.is_map((item,)) or self.values.get((item,)) in (None, {"map": 1})

    def show_owner(self, item: str) -> object:
        value = self.show((item,))
        if self.is_marked(item):
            return {"$id": item, **(value if isinstance(value, dict) else {})}
        return value


def _count_items(value: object) -> list[str]:
    if isinstance(value, list):
        return [one for each in value for one in _count_items(each)]
    if isinstance(value, dict):
        own = [value["$id"]] if "$id" in value else []
        return own + [one for key, each in value.items() if key != "$id" for one in _count_items(each)]
    return []


@given(seed=st.integers(0, 2**32), commits=st.integers(1, 14))
def test_a_document_is_what_the_model_finds_and_each_item_is_shown_once(seed: int, commits: int) -> None:
    random = Random(seed)
    history = History(random)
    authors = [Author(history) for _ in range(3)]
    for _ in range(commits):
        _edit(random.choice(authors), random)
        if random.random() < 0.4:
            one, other = random.sample(authors, 2)
            one.has |= other.has
    everything = set(range(len(history.said)))
    void = {number for number in everything if random.random() < 0.15}
    for counting in (everything, everything - void):
        entries = history.entries(counting)
        model, found = _Model(entries), read_json(entries)
        removed = {item for item in model.places if model.is_removed(item)}
        placed = {item for item in model.places if model.is_placed(item)}
        if placed == model.places.keys() - removed:
            expected = model.show(("",))
            assert found.value == ({} if expected is None else expected)
            assert not found.unplaced
        shown = _count_items([found.value, *(value for _, value in found.unplaced)])
        assert len(shown) == len(set(shown))
        there = {item for item in model.places.keys() - removed if model.is_marked(item)}
        assert set(shown) == there
        assert set(_count_items(found.value)) <= placed
        shuffled = list(entries.items())
        random.shuffle(shuffled)
        assert read_json(dict(shuffled)) == found
