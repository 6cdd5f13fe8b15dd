"""Result of a query as it is found: the first documents of an order, which single changes keep right. Pure."""

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from node.content.document_orders import BEGIN
from ravel.types.document_queries import FoundDocument

DIGEST_SIZE: Final = 16
"""Bytes of a digest: equal ones are taken for equal documents and results."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that meets a query: its key in the result, its place in the order, its size as JSON, and a digest of it."""

    key: str
    place: bytes
    document: FoundDocument
    size: int
    digest: bytes

    @classmethod
    def of(cls, place: bytes, document: FoundDocument, encoded: bytes) -> "Found":
        """Make one of a document and its JSON."""
        digest = blake3(encoded).digest(length=DIGEST_SIZE)
        return cls(document["name"], place, document, len(encoded), digest)

    def in_branch(self, repo_id: str, branch_id: str, place: bytes) -> "Found":
        """Return the window as part of several branches' windows, with its place among them."""
        key = f"{branch_id}/{self.key}"
        document: FoundDocument = {**self.document, "repo": repo_id, "branch": branch_id, "key": key}
        size = self.size + len(key) + len(repo_id) + len(branch_id)
        return Found(
            key, place, document, size, blake3(self.digest + key.encode()).digest(length=DIGEST_SIZE)
        )


class ResultWindow:
    """The documents of a query's order up to `bound`, as far as they meet it; the bound is None where it has all.

    A change costs O(log n), and moving places in a list of n; what is told of the result costs O(`limit`).
    """

    def __init__(self, limit: int, spare: int, begin: bytes = BEGIN) -> None:
        """Make an empty one, of documents behind `begin`."""
        self._limit = limit
        self._spare = spare
        self._places: list[bytes] = []
        self._by_place: dict[bytes, Found] = {}
        self._by_key: dict[str, bytes] = {}
        self._begin = begin
        self.bound: bytes | None = begin

    @property
    def is_short(self) -> bool:
        """Return True if it has less than is wanted, and more may come behind its bound."""
        return self.bound is not None and len(self._places) < self._limit

    def put(self, found: Found) -> None:
        """Put a document in its place, if that is within the bounds."""
        self.drop(found.key)
        is_outside = self.bound is not None and found.place > self.bound
        if is_outside or (self._begin and found.place <= self._begin):
            return
        insort(self._places, found.place)
        self._by_place[found.place] = found
        self._by_key[found.key] = found.place

    def drop(self, key: str) -> None:
        """Let go of a document, if it is here."""
        place = self._by_key.pop(key, None)
        if place is not None:
            del self._by_place[place]
            del self._places[bisect_left(self._places, place)]

    def trim(self, size_max: int) -> bool:
        """Forget documents behind the wanted ones and some to spare; the last that stays becomes the bound.

        Also forget documents that exceed `size_max` bytes together with those before them, but never the first. Return
        False if such a one was wanted.
        """
        size = 0
        for number, place in enumerate(self._places):
            size += self._by_place[place].size
            if number == self._limit + self._spare or (number and size > size_max):
                self.bound = self._places[number - 1]
                for gone in self._places[number:]:
                    del self._by_key[self._by_place.pop(gone).key]
                del self._places[number:]
                return number >= self._limit
        return True

    def first(self) -> list[Found]:
        """Return the documents that are wanted."""
        return [self._by_place[place] for place in self._places[: self._limit]]


def digest_of(result: list[Found]) -> str:
    """Return a digest of a result: of its documents in their order. Costs O(their number)."""
    return blake3(b"".join(one.digest for one in result)).hexdigest(length=DIGEST_SIZE)
