"""Plans what several do about one place at once: who passes it on or lost it, its devices, friends, and an admin."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from protocol.formats.body import Permission
from tests.promise.steps import Step

PLACE_QUARRELS: Final = frozenset({"moved", "moved back", "turncoat", "moved signer", "friends"})


def plan_place(
    rng: Random, kind: str, held: Mapping[str, int], devices: Sequence[str], hostile: frozenset[str]
) -> list[Step]:
    """Plan one of PLACE_QUARRELS; nothing where too few are there."""
    members = [name for name in held if held[name] and name not in devices]
    free = [name for name in devices if name in held and not held[name]]
    judges = [name for name in members if held[name] >= Permission.ADMIN and name not in hostile]
    if len(members) < 3 or not free or not judges:
        return []
    judge = rng.choice(judges)
    person, *others = rng.sample([one for one in members if one != judge], len(members) - 1)
    device = rng.choice(free)
    cast = _Cast(rng, held, person, device, judge, others, [one for one in free if one != device])
    plan = {
        "moved": cast.move,
        "moved back": cast.move_back,
        "turncoat": cast.turn,
        "moved signer": cast.sign,
        "friends": cast.recover,
    }[kind]()
    return [*plan, *(Step(one, "write", (rng.randrange(1 << 20),)) for one in (person, device, judge))]


class _Cast:
    """Who takes part in a quarrel about a place."""

    def __init__(
        self,
        rng: Random,
        held: Mapping[str, int],
        person: str,
        device: str,
        judge: str,
        others: Sequence[str],
        free: Sequence[str],
    ) -> None:
        self._rng, self._held = rng, held
        self._person, self._device, self._judge = person, device, judge
        self._others, self._free = others, free

    def _paired(self, device: str, level: str = "") -> list[Step]:
        """Let a device in, of which all hear."""
        told = Step(self._person, "gather", (device, self._judge, *self._others[:2], 7))
        return [Step(self._person, "pair", (device, level)), told]

    def _judged(self) -> Step:
        kind = self._rng.choice(("exclude", "exclude", "demote"))
        return Step(self._judge, kind, (self._person, "read")[: 1 + (kind == "demote")])

    def _acted(self, who: str) -> list[Step]:
        """Do some of what its permission allows."""
        other = self._rng.choice((self._judge, *self._others))
        acts = [
            Step(who, "exclude", (other,)),
            Step(who, "grant", (other, "write")),
            Step(who, "invite", ("write", 1)),
            Step(who, "renew"),
            Step(who, "write", (self._rng.randrange(1 << 20),)),
            *(Step(who, "pair", (one, "")) for one in self._free[:1]),
        ]
        return self._rng.sample(acts, 2)

    def move(self) -> list[Step]:
        """Pass the place on beside what an admin does to the person; the admin excludes the old key, or the new one."""
        moved = [Step(self._person, "move", (self._device,)), Step(self._person, "meet", (self._device, 7))]
        plan = [*self._paired(self._device), *moved]
        if self._rng.random() < 0.7:
            plan += [self._judged(), *self._acted(self._device)]
        plan.append(Step(self._device, "meet", (self._judge, 12)))
        late = self._rng.choice((self._person, self._person, self._device))
        plan.append(Step(self._judge, "exclude", (late,)))
        if self._rng.random() < 0.4:
            plan.append(Step(self._judge, "grant", (late, "write")))
        return [*plan, *self._acted(self._device)]

    def move_back(self) -> list[Step]:
        """Pass the place on, and back again, beside what an admin does who knows the first of it or nothing."""
        plan = [*self._paired(self._device), Step(self._person, "move", (self._device,))]
        plan.append(Step(self._person, "gather", (self._device, *self._others[:1], 7)))
        back = self._person
        if self._free and self._rng.random() < 0.4:
            back = self._free[0]
        plan += [Step(self._device, "pair", (back, "")), Step(self._device, "meet", (back, 7))]
        plan += [Step(self._device, "move", (back,)), Step(self._device, "meet", (back, 7))]
        who = self._rng.choice((self._person, self._device))
        plan += [Step(self._judge, "exclude", (who,)), *self._acted(back)]
        return plan

    def turn(self) -> list[Step]:
        """Let a device remove its person, while the person removes it, or passes it the place, or names another."""
        plan = self._paired(self._device)
        if self._free:
            plan += self._paired(self._free[0])
        plan += [Step(self._device, self._rng.choice(("exclude", "demote")), (self._person, "read"))]
        heir = self._rng.choice((self._device, *self._free[:1]))
        plan.append(
            self._rng.choice(
                (
                    Step(self._person, "take back", (self._rng.randrange(1 << 20),)),
                    Step(self._person, "move", (heir,)),
                    Step(self._person, "exclude", (self._device,)),
                )
            )
        )
        return [*plan, *self._acted(self._device), *self._acted(self._person)]

    def sign(self) -> list[Step]:
        """Pass the place of a signer on, beside a quorum's decision about its owner, who may move too."""
        owner = next((one for one in self._held if self._held[one] == Permission.OWNER), None)
        signers = [self._person, *self._others[:2]]
        if owner is None or owner == self._person:
            return []
        signers = [one for one in signers if one != owner]
        if self._rng.random() < 0.6:
            signers.append(owner)
        told = Step(
            self._person, "gather", (*[one for one in (owner, *self._others) if one != self._person], 7)
        )
        plan = [*self._paired(self._device), Step(owner, "quorum", (0, *signers)), told]
        target = self._rng.choice((owner, owner, *self._others[:1]))
        plan += [Step(self._person, "propose", (target, "")), told]
        plan += [Step(one, "approve", (number,)) for one in signers for number in (0, 1)]
        moved = [Step(self._person, "move", (self._device,)), Step(self._person, "meet", (self._device, 7))]
        plan += [told, *(moved if self._rng.random() < 0.6 else [])]
        if self._free and self._rng.random() < 0.5:
            plan += [Step(owner, "pair", (self._free[0], "")), Step(owner, "move", (self._free[0],))]
        plan += [Step(one, "exclude", (target,)) for one in (self._device, self._person, *self._others[:1])]
        return plan

    def recover(self) -> list[Step]:
        """Let friends bring a person back, twice beside each other, while others are named and an admin excludes one."""
        friends = self._rng.sample([self._judge, *self._others], min(3, 1 + len(self._others)))
        told = Step(self._person, "gather", (*dict.fromkeys((*friends, self._judge)), 7))
        plan = [Step(self._person, "friends", tuple(friends)), told]
        keys = [self._device, *self._free[:1]]
        plan += [Step(one, "vouch", (self._person, key)) for one in friends for key in keys]
        ways = [
            Step(self._person, "friends", self._rng.choice(((), tuple(friends[:1])))),
            self._judged(),
            Step(self._person, "pair", (self._device, "")),
            Step(self._person, "exclude", (friends[0],)),
        ]
        plan += self._rng.sample(ways, self._rng.choice((0, 1, 2)))
        for one, key in zip(friends, [*keys, *keys], strict=False):
            plan.append(Step(one, "let in", (key, 1)))
        plan += [Step(friends[0], "let in", (self._device, 1)), Step(friends[0], "meet", (self._device, 12))]
        plan += self._acted(self._device)
        if self._rng.random() < 0.5:
            plan += [Step(self._person, "take back", (1,)), Step(self._person, "exclude", (self._device,))]
            plan += [Step(friends[-1], "let in", (self._device, 1))]
        return plan
