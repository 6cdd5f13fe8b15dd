"""Tracks who may hold and who surely holds each epoch of a repo (E8, E10), by all that is here, commit by commit.

Sets of users and of epochs are integers, with a bit for each (`UserNumbers`). Who holds an epoch holds all that it opens:
that is computed when it is asked, from the epochs that open the one asked about. For the epoch in use these are few. So what
comes of one member costs the same however many members and epochs there are.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from verifier.user_sets import bit_numbers


class EpochReach:
    """Epochs that each epoch opens, itself included, by all that is here."""

    def __init__(self) -> None:
        self._opened: list[int] = []
        """By epoch: those that it opens."""
        self._openers: list[int] = []
        """By epoch: those that open it."""

    def close(self, epochs: int) -> int:
        """Return some epochs, as bits, and all that their keys open."""
        for num in bit_numbers(epochs):
            epochs |= self._opened[num]
        return epochs

    def start(self, given: int) -> int:
        """Add an epoch whose key opens the epochs `given`, as bits; return its number. Costs O(epochs)."""
        num = len(self._opened)
        opened = self.close(given) | 1 << num
        self._opened.append(opened)
        self._openers.append(0)
        self._note(num, opened)
        return num

    def open(self, num: int, given: int) -> None:
        """Note that the key of an epoch opens the epochs `given` too.

        Costs O(epochs), and O(epochs) for each epoch whose key opens more by that.
        """
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
        """Add an epoch with the users who have its boxes."""
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


@dataclass(slots=True)
class _Boxes:
    """Users who have boxes of an epoch in another: of its key, of its writers' secret, and of its key by a hand-over."""

    members: int = 0
    writers: int = 0
    handed: int = 0

    def add(self, members: int, writers: int, *, is_hand: bool) -> None:
        """Note more boxes."""
        self.members |= members
        self.writers |= writers
        self.handed |= members if is_hand else 0

    def remove(self, user: int) -> None:
        """Forget the boxes of a user."""
        self.members &= ~user
        self.writers &= ~user
        self.handed &= ~user


class _PrekeyBox(NamedTuple):
    """A box that goes to a prekey."""

    prekey: int  # the number of what states it
    num: int
    place: int
    has_writers: bool
    is_hand: bool


class SureHolders:
    """Users who surely hold an epoch, and its writers' secret. Once held, an epoch stays so while its box counts."""

    def __init__(self, reach: EpochReach) -> None:
        self._reach: Final = reach
        self._own: list[int] = []
        """By epoch: who holds it without another that opens it. Some may hold it so, too."""
        self._authors: list[int] = []
        """By epoch: who started it, or has written in it."""
        self._wrote: list[int] = []
        """By epoch: who has written on its writers' topic, or started it."""
        self._boxes: list[dict[int, _Boxes]] = []
        """By epoch, and by the epoch in which they are published: whose boxes count."""
        self._lasting: list[dict[int, _Boxes]] = []
        """Of these, the boxes that go to no prekey."""
        self._to_prekeys: dict[int, list[_PrekeyBox]] = {}
        """The others, by user."""
        self._unread: dict[int, dict[int, int]] = {}
        """By epoch that they do not hold: who has a box there, of which other epoch."""
        self._latest: dict[int, list[int]] = {}
        """By epoch: the latest of its init's past. Who was handed it in all of these can read one of them."""

    def start(self, num: int, author: int) -> None:
        """Add an epoch."""
        self._own.append(0)
        self._authors.append(author)
        self._wrote.append(author)
        self._boxes.append({})
        self._lasting.append({})
        self._gain(author, num)

    def seal(
        self, num: int, place: int, latest: int, members: int, writers: int, prekeys: Mapping[int, int]
    ) -> None:
        """Note the boxes of an epoch's init, the epoch in which it is published, and the latest epochs of its past.

        `prekeys` are the numbers of the prekeys that boxes go to, by user.
        """
        self._latest[num] = bit_numbers(latest)
        self._seal(num, place, members, writers, prekeys, is_hand=False)

    def hand(self, num: int, place: int, members: int, writers: int, prekeys: Mapping[int, int]) -> None:
        """Note who is handed an epoch, and who its writers' secret. Costs O(EPOCHS_TOLD_IN_MAX)."""
        self._seal(num, place, members, writers, prekeys, is_hand=True)
        self._gain(self._told(num, members), num)

    def write(self, num: int, author: int, *, by_writer: bool) -> None:
        """Note who has written in an epoch."""
        self._authors[num] |= author
        if by_writer:
            self._wrote[num] |= author
        self._gain(author, num)

    def open(self) -> None:
        """Take into account that epochs open more. Costs O(epochs in which there are unread boxes)."""
        for place in list(self._unread):
            self._gain_all(self._open_boxes(place, self.of(place)))

    def forget(self, user: int, prekeys: Collection[int]) -> None:
        """Stop counting boxes for some prekeys of a user. Costs O(boxes for the user's prekeys).

        If the user has not written in an epoch that opens theirs, costs O(epochs and their hand-overs).
        """
        boxes = self._to_prekeys.get(user, [])
        gone = [box for box in boxes if box.prekey in prekeys]
        if not gone:
            return
        left = self._to_prekeys[user] = [box for box in boxes if box.prekey not in prekeys]
        for _, num, place, *_ in gone:
            counting, lasting = self._boxes[num][place], self._lasting[num].get(place, _Boxes())
            counting.remove(user)
            counting.add(lasting.members & user, lasting.writers & user, is_hand=False)
            counting.handed |= lasting.handed & user
            for box in left:
                if (box.num, box.place) == (num, place):
                    counting.add(user, user if box.has_writers else 0, is_hand=box.is_hand)
        if not all(self._reach.union(self._authors, box.num) & user for box in gone):
            self._count_again(user)

    def of(self, num: int) -> int:
        """Return the users who hold an epoch. Costs O(epochs that open it)."""
        return self._reach.union(self._own, num)

    def of_writers(self, num: int) -> int:
        """Return the users who hold the writers' secret of an epoch. Costs O(epochs in which it was handed over)."""
        found = self._wrote[num]
        for place, boxes in self._boxes[num].items():
            if boxes.writers & ~found:
                found |= boxes.writers & self.of(place)
        return found

    def held_by(self, user: int) -> int:
        """Return the epochs that a user holds. Costs O(epochs)."""
        return self._reach.held_with(self._own, user)

    def _seal(
        self, num: int, place: int, members: int, writers: int, prekeys: Mapping[int, int], *, is_hand: bool
    ) -> None:
        lasting = ~sum(prekeys)
        self._boxes[num].setdefault(place, _Boxes()).add(members, writers, is_hand=is_hand)
        if members & lasting:
            boxes = self._lasting[num].setdefault(place, _Boxes())
            boxes.add(members & lasting, writers & lasting, is_hand=is_hand)
        for user, prekey in prekeys.items():
            box = _PrekeyBox(prekey, num, place, bool(writers & user), is_hand)
            self._to_prekeys.setdefault(user, []).append(box)
        unread = self._unread.setdefault(place, {})
        unread[num] = unread.get(num, 0) | members
        self._gain_all(self._open_boxes(place, self.of(place)))

    def _told(self, num: int, users: int) -> int:
        """Return who of these was handed an epoch in each of the latest of its init's past."""
        latest, boxes = self._latest.get(num), self._boxes[num]
        if not latest:
            return 0
        for place in latest:
            users &= boxes[place].handed if place in boxes else 0
        return users

    def _count_again(self, user: int) -> None:
        """Find what a user holds from the beginning."""
        for unread in self._unread.values():
            for num in unread:
                unread[num] &= ~user
        ahead = []
        for num, by_place in enumerate(self._boxes):
            self._own[num] &= ~user
            ahead.append((num, self._authors[num] & user | self._told(num, user)))
            for place, boxes in by_place.items():
                if boxes.members & user:
                    unread = self._unread.setdefault(place, {})
                    unread[num] = unread.get(num, 0) | user
        self._gain_all(ahead)

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
