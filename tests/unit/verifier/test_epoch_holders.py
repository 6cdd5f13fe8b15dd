"""Who surely holds an epoch, beside the same over plain sets, written for clarity alone."""

from random import Random

import pytest

from verifier.epoch_holders import EpochReach, SureHolders


class Reference:
    """All that was ever said, looked through again for each question."""

    def __init__(self) -> None:
        self.opens: list[set[int]] = []
        self.latest: dict[int, set[int]] = {}
        self.has: set[tuple[int, int]] = set()  # user, epoch
        self.boxes: set[tuple[int, int, int, int]] = set()  # user, epoch, in which, for which prekey
        self.told: set[tuple[int, int, int, int]] = set()

    def box(self, user: int, epoch: int, place: int, prekey: int, *, is_hand: bool) -> None:
        self.boxes.add((user, epoch, place, prekey))
        if is_hand:
            self.told.add((user, epoch, place, prekey))

    def forget(self, user: int, prekey: int) -> None:
        for kept in (self.boxes, self.told):
            kept -= {one for one in kept if (one[0], one[3]) == (user, prekey)}

    def opened_by(self, epoch: int) -> set[int]:
        found, ahead = {epoch}, [epoch]
        while ahead:
            fresh = self.opens[ahead.pop()] - found
            found |= fresh
            ahead += fresh
        return found

    def held(self) -> set[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        more, told = set(self.has), {one[:3] for one in self.told}
        more |= {
            (user, epoch)
            for user, epoch, _ in told
            if (latest := self.latest.get(epoch)) and all((user, epoch, place) in told for place in latest)
        }
        while more - found:
            found |= more
            more = {(user, opened) for user, epoch in found for opened in self.opened_by(epoch)}
            more |= {(user, epoch) for user, epoch, place, _ in self.boxes if (user, place) in found}
        return found


@pytest.mark.parametrize("seed", range(120))
def test_random_epochs_are_held_as_the_reference_says(seed: int) -> None:
    rng = Random(seed)
    reach, reference = EpochReach(), Reference()
    sure = SureHolders(reach)
    users = range(5)

    def start(given: set[int], author: int) -> int:
        num = reach.start(sum(1 << one for one in given))
        reference.opens.append(given)
        reference.has.add((author, num))
        sure.start(num, 1 << author)
        return num

    start(set(), 0)
    for _ in range(40):
        known = range(len(reference.opens))
        author, place, some = rng.choice(users), rng.choice(known), set(rng.sample(users, rng.randint(0, 4)))
        bits = sum(1 << user for user in some)
        kind = rng.choice(("start", "start", "hand", "hand", "open", "write", "forget"))
        to_prekeys = {user: rng.randrange(1, 4) for user in some if rng.random() < 0.6}
        prekeys = {1 << user: prekey for user, prekey in to_prekeys.items()}
        if kind == "start" and len(known) < 12:
            given = set(rng.sample(known, rng.randint(0, min(3, len(known)))))
            num, latest = start(given, author), set(rng.sample(known, rng.randint(1, min(2, len(known)))))
            reference.latest[num] = latest
            for user in some:
                reference.box(user, num, place, to_prekeys.get(user, 0), is_hand=False)
            sure.seal(num, place, sum(1 << one for one in latest), bits, 0, prekeys)
        elif kind == "hand":
            handed = rng.choice(known)
            for user in some:
                reference.box(user, handed, place, to_prekeys.get(user, 0), is_hand=True)
            sure.hand(handed, place, bits, 0, prekeys)
        elif kind == "open":
            opened = rng.choice(known)
            reference.opens[place].add(opened)
            reach.open(place, 1 << opened)
            sure.open()
        elif kind == "forget":
            prekey = rng.randrange(1, 4)
            reference.forget(author, prekey)
            sure.forget(1 << author, {prekey})
        else:
            reference.has.add((author, place))
            sure.write(place, 1 << author, by_writer=False)
        held = {
            (user, epoch)
            for epoch in range(len(reference.opens))
            for user in users
            if sure.of(epoch) >> user & 1
        }
        assert held == reference.held()
        by_user = {(user, epoch) for user in users for epoch in known if sure.held_by(1 << user) >> epoch & 1}
        assert by_user == {one for one in held if one[1] in known}


def test_a_chain_of_unread_boxes_may_be_longer_than_the_stack() -> None:
    reach = EpochReach()
    sure = SureHolders(reach)
    sure.start(reach.start(0), 1)
    for _ in range(1100):
        num = reach.start(0)  # which opens nothing, so that each box is read for itself
        sure.start(num, 1)
        sure.seal(num, num - 1, 1 << num - 1, 1 | 2, 0, {})
    assert not sure.of(num) & 2
    sure.write(0, 2, by_writer=False)
    assert sure.of(num) & 2
