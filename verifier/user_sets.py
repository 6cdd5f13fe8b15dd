"""Sets of a repo's users, a bit for each: who has a box in an epoch, who may hold it, who may write."""

from collections.abc import Collection, Iterable, Iterator

from protocol.ids import UserId


class UserNumbers:
    """Numbers of a repo's users, in the order in which they were first named. A set of users is an integer: a bit for each.

    Of thousands of members over hundreds of epochs, one bit for each pair is all that is kept.
    """

    def __init__(self) -> None:
        self._nums: dict[UserId, int] = {}
        self._users: list[UserId] = []

    def add(self, users: Iterable[UserId]) -> None:
        """Give numbers to users who have none yet."""
        for user in users:
            if user not in self._nums:
                self._nums[user] = len(self._users)
                self._users.append(user)

    def bit(self, user: UserId) -> int:
        """Return the set of one user; it is empty for a user who was never numbered."""
        num = self._nums.get(user)
        return 0 if num is None else 1 << num

    def bits(self, users: Iterable[UserId]) -> int:
        """Return the set of some users."""
        found = 0
        for user in users:
            found |= self.bit(user)
        return found

    def users(self, chosen: int) -> list[UserId]:
        """Return the users of a set, sorted by id. Costs O(users found), and next to nothing for each that is not."""
        return sorted(map(self._users.__getitem__, bit_numbers(chosen)))


def bit_numbers(mask: int) -> list[int]:
    """Return the numbers of the bits that are set, in order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


class UserSet(Collection[UserId]):
    """Some users of a repo, in the order of their ids. It costs a bit for each user of the repo, and no more."""

    __slots__ = ("_numbers", "bits")

    def __init__(self, numbers: UserNumbers, bits: int) -> None:
        """`bits` are those of the `numbers`."""
        self._numbers = numbers
        self.bits = bits

    def __iter__(self) -> Iterator[UserId]:
        return iter(self._numbers.users(self.bits))

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __contains__(self, user: object) -> bool:
        return isinstance(user, bytes) and bool(self.bits & self._numbers.bit(UserId(user)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserSet) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))
