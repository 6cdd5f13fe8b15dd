"""Tracks who may hold and who surely holds each epoch of a repo (E8, E10), by all that is here, commit by commit.

Sets of users and of epochs are integers, with a bit for each (`UserNumbers`). Who holds an epoch holds all that it opens:
that is computed when it is asked, from the epochs that open the one asked about. For the epoch in use these are few. So what
comes of one member costs the same however many members and epochs there are.
"""

from collections.abc import Sequence
from typing import Final

from verifier.operations import bit_numbers


class EpochReach:
    """Epochs that each epoch opens, itself included, by all that is here."""

    def __init__(self) -> None:
        self._opened: list[int] = []
        """By epoch: those that it opens."""
        self._openers: list[int] = []
        """By epoch: those that open it."""

    def close(self, given: int) -> int:
        """Return these epochs and all that they open."""
        for num in bit_numbers(given):
            given |= self._opened[num]
        return given

    def start(self, given: int) -> int:
        """Add an epoch that opens some; return its number. Costs O(epochs)."""
        num = len(self._opened)
        opened = self.close(given) | 1 << num
        self._opened.append(opened)
        self._openers.append(0)
        self._note(num, opened)
        return num

    def open(self, num: int, given: int) -> None:
        """Note that an epoch opens some more. Costs O(epochs), and O(epochs) for each that opens more by that."""
        fresh = self.close(given)
        for other in bit_numbers(self._openers[num]):
            more = fresh & ~self._opened[other]
            self._opened[other] |= more
            self._note(other, more)

    def _note(self, num: int, opened: int) -> None:
        for one in bit_numbers(opened):
            self._openers[one] |= 1 << num

    def opens(self, num: int, other: int) -> bool:
        """Return True if an epoch opens another, or is it."""
        return bool(self._opened[num] >> other & 1)

    def union(self, holders: Sequence[int], num: int) -> int:
        """Return who holds any epoch that opens this one, of those who hold each. Costs O(epochs that open it)."""
        found = 0
        for opener in bit_numbers(self._openers[num]):
            found |= holders[opener]
        return found

    def held_with(self, holders: Sequence[int], user: int) -> int:
        """Return the epochs that a user holds with those that the user holds by themselves. Costs O(epochs)."""
        found = 0
        for num, users in enumerate(holders):
            if users & user:
                found |= self._opened[num]
        return found


class PossibleHolders:
    """Users who may hold an epoch, and its writers' secret."""

    def __init__(self, reach: EpochReach) -> None:
        self._reach: Final = reach
        self._own: list[int] = []
        """By epoch: who may hold it without another that opens it."""
        self._writers: list[int] = []

    def start(self, members: int, writers: int) -> None:
        """Add an epoch, with who has its boxes."""
        self._own.append(members)
        self._writers.append(writers)

    def add(self, num: int, users: int) -> None:
        """Note who may hold an epoch."""
        self._own[num] |= users

    def add_writers(self, num: int, users: int) -> None:
        """Note who may hold the writers' secret of an epoch."""
        self._writers[num] |= users

    def of(self, num: int) -> int:
        """Return who may hold an epoch, also by an epoch that opens it."""
        return self._reach.union(self._own, num)

    def of_writers(self, num: int) -> int:
        """Return who may hold the writers' secret of an epoch."""
        return self._writers[num]


class SureHolders:
    """Users who surely hold an epoch, and its writers' secret. Once held, an epoch stays so."""

    def __init__(self, reach: EpochReach) -> None:
        self._reach: Final = reach
        self._own: list[int] = []
        """By epoch: who holds it without another that opens it. Some may hold it so, too."""
        self._unread: dict[int, dict[int, int]] = {}
        """By epoch that they do not hold: who has a box there, of which other epoch."""
        self._told: dict[int, dict[int, int]] = {}
        """By epoch: who was handed it, by the epoch in which."""
        self._latest: dict[int, int] = {}
        """By epoch: the latest of its init's past. Who was handed it in all of these can read one of them."""
        self._boxes: list[tuple[int, int]] = []
        """By epoch: who has a writers' box in its init, and the epoch in which that is published."""
        self._handed: dict[int, dict[int, int]] = {}
        """By epoch: who was handed its writers' secret, by the epoch in which."""
        self._wrote: list[int] = []
        """By epoch: who has written on its writers' topic, or started it."""

    def start(self, num: int, author: int) -> None:
        """Add an epoch."""
        self._own.append(0)
        self._wrote.append(author)
        self._boxes.append((0, num))
        self._gain(author, num)

    def seal(self, num: int, published_in: int, latest: int, members: int, writers: int) -> None:
        """Note the boxes of an epoch's init, and the latest epochs of its past."""
        self._latest[num] = latest
        self._boxes[num] = writers, published_in
        self._read(members, num, published_in)

    def hand(self, num: int, published_in: int, users: int, writers: int) -> None:
        """Note who is handed an epoch, and who its writers' secret. Costs O(EPOCHS_TOLD_IN_MAX)."""
        handed = self._handed.setdefault(num, {})
        handed[published_in] = handed.get(published_in, 0) | writers
        self._read(users, num, published_in)
        told = self._told.setdefault(num, {})
        told[published_in] = told.get(published_in, 0) | users
        if latest := bit_numbers(self._latest.get(num, 0)):
            for other in latest:
                users &= told.get(other, 0)
            self._gain(users, num)

    def write(self, num: int, author: int, *, by_writer: bool) -> None:
        """Note who has written in an epoch."""
        if by_writer:
            self._wrote[num] |= author
        self._gain(author, num)

    def open(self) -> None:
        """Take into account that epochs open more. Costs O(epochs in which there are unread boxes)."""
        for place in list(self._unread):
            self._gain_all(self._open_boxes(place, self.of(place)))

    def of(self, num: int) -> int:
        """Return who holds an epoch. Costs O(epochs that open it)."""
        return self._reach.union(self._own, num)

    def of_writers(self, num: int) -> int:
        """Return who holds the writers' secret of an epoch. Costs O(epochs in which it was handed over)."""
        boxed, published_in = self._boxes[num]
        found = self._wrote[num] | (boxed & self.of(published_in) if boxed else 0)
        for place, users in self._handed.get(num, {}).items():
            if users & ~found:
                found |= users & self.of(place)
        return found

    def held_by(self, user: int) -> int:
        """Return the epochs that a user holds. Costs O(epochs)."""
        return self._reach.held_with(self._own, user)

    def _read(self, users: int, num: int, published_in: int) -> None:
        """Note the boxes of an epoch in another: who holds that one can read them, now or once it does."""
        boxes = self._unread.setdefault(published_in, {})
        boxes[num] = boxes.get(num, 0) | users
        self._gain_all(self._open_boxes(published_in, self.of(published_in)))

    def _gain(self, users: int, num: int) -> None:
        self._gain_all([(num, users)])

    def _gain_all(self, ahead: list[tuple[int, int]]) -> None:
        """Note who holds which epochs, and what they can read there, and in all that these open."""
        while ahead:  # a closure: the order of the walk decides nothing
            num, users = ahead.pop()
            fresh = users & ~self._own[num]
            if fresh:
                self._own[num] |= fresh
                for place in [one for one in self._unread if self._reach.opens(num, one)]:
                    ahead += self._open_boxes(place, fresh)

    def _open_boxes(self, place: int, users: int) -> list[tuple[int, int]]:
        """Take the boxes that users can read in an epoch; return whose they are, by the epochs that they give."""
        boxes = self._unread.pop(place, {})
        left = {num: boxed & ~users for num, boxed in boxes.items() if boxed & ~users}
        if left:
            self._unread[place] = left
        return [(num, boxed & users) for num, boxed in boxes.items() if boxed & users]
