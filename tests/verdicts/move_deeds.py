"""Deeds with places: users pass them to devices, name friends, and let devices in for friends."""

from . import crypto
from .device_deeds import DeviceDeeds
from .membership import direct_rights
from .rules import (
    ADMIN,
    NONE,
    READ,
    WRITE,
    acting,
    credentials,
    given_to_devices,
    is_leave,
    members,
    permission,
    removals_of,
    rights_of,
    senior,
)
from .world import NAMES


class MoveDeeds(DeviceDeeds):
    """A world whose users move, and have friends who recover what they lost."""

    def prelude(self):
        """Let some whom ann admitted have devices and friends early, or move at once."""
        super().prelude()
        for user in sorted(self.seen) if self.mood == "moves" else ():
            if self.chance.random() < 0.6:
                self.sync(user, "ann")
                deeds = [self.lend, self.pass_place, self.pass_place, self.name_friends]
                view = self.view_of(user)
                self.chance.choice(deeds)(user, view, permission(view, self.id(user)))

    def step(self):
        """Let somebody do something, or several who have to do with one place."""
        if self.chance.random() < (0.2 if self.mood == "moves" else 0.02):
            self.quarrel(self.chance.choice(sorted(self.seen)))
        else:
            super().step()

    def deeds(self, user, view, level):
        """Return the deeds that a user may do, with weights."""
        found = super().deeds(user, view, level)
        weight = 6 if self.mood == "moves" else 0.5
        if level > NONE:
            found += [
                (weight, self.pass_place),
                (weight, self.name_friends),
                (weight * 5 if view.all("recovery-friends1") else 0, self.recover),
            ]
        if level >= ADMIN:
            found.append((weight if any(map(is_leave, self.removals(view))) else 0, self.exclude_gone))
        return found

    def removals(self, view):
        """All removals and moves of a view."""
        return [*view.all("remove1"), *view.all("move1")]

    def where(self, user, view, level):
        """The epoch and the heads by which a user writes what a reader may; None where it cannot."""
        epoch = self.ready(user, view)
        if epoch is None:
            return None
        acks = self.heads_of(user) if level >= WRITE else self.open_heads(user, epoch)
        return (epoch, acks) if acks else None

    def place_of(self, view, me):
        """A credential that a user may pass on; as a rule the one that gives most."""
        held = [(level, by) for by, level in direct_rights(view, me)]
        if not held:
            return None
        return max(held)[1] if self.chance.random() < 0.8 else self.chance.choice(sorted(held))[1]

    def heirs_of(self, view, me):
        """The members who hold by a user's own device grants alone."""
        given = given_to_devices(view, me)
        return [
            one
            for one in sorted(members(view))
            if one != me and all(by in given for by, _ in rights_of(view, one))
        ]

    def pass_place(self, user, view, level):
        """Move to a device; where there is none, make one. Now and then move twice, beside oneself."""
        me = self.id(user)
        if not self.heirs_of(view, me):
            self.lend(user, view, level)
            view = self.view_of(user)
        found = self.where(user, view, level) if self.heirs_of(view, me) else None
        if found is None:
            return
        epoch, acks = found
        past = self.view(acks)
        heirs, place = self.heirs_of(past, me), self.place_of(past, me)
        if not heirs or place is None:
            return
        times = 2 if self.chance.random() < 0.2 else 1
        for heir in self.chance.sample(heirs, min(times, len(heirs))):
            self.write(user, ["move1", heir, place], epoch=epoch, acks=acks)
        names = {self.id(one): one for one in self.seen}
        heir = names.get(heirs[0])
        if heir and self.chance.random() < 0.5:
            self.sync(heir, user)

    def name_friends(self, user, view, level):
        """Name some friends, or nobody."""
        found = self.where(user, view, level)
        if found is None:
            return
        epoch, acks = found
        friends = self.chance.sample(
            [one for one in NAMES if one != user], self.chance.choice([0, 1, 1, 2, 2, 3])
        )
        most = len(friends)
        threshold = self.chance.randint(most // 2 + 1, most) if friends else 0
        times = 2 if self.chance.random() < 0.15 else 1
        for _ in range(times):
            body = ["recovery-friends1", sorted(map(self.id, friends)), threshold]
            self.write(user, body, epoch=epoch, acks=acks)

    def recovery_body(self, naming, fault=False):
        """A recovery grant under a naming, as a rule one that is signed as it should be."""
        chance = self.chance
        names = {self.id(one): one for one in NAMES}
        friends = [names[one] for one in naming.body.friends if one in names]
        number = chance.randint(naming.body.threshold, len(friends)) if friends else 0
        number -= 1 if fault and chance.random() < 0.5 and number else 0
        other, level = chance.choice(NAMES), chance.choice([READ, WRITE, WRITE, 3, 4, 5])
        signed = self.signed(naming.id, other, level, chance.sample(friends, number))
        if fault and chance.random() < 0.5:
            how = chance.randrange(4)
            signed = (
                signed[::-1],
                [*signed, *signed[:1]],
                sorted([*signed, *self.signed(naming.id, other, level, ["stranger"])]),
                sorted([one, crypto.sign(bytes(32), bytes(32))] for one, _ in signed),
            )[how]
        return other, ["recovery-grant1", naming.id, self.id(other), level, signed]

    def recover(self, user, view, level):
        """Publish what friends of a member signed, now and then a second time beside the first."""
        namings = view.all("recovery-friends1")
        found = self.where(user, view, level) if namings else None
        if found is None:
            return
        epoch, acks = found
        past = self.view(acks)
        good = [one for one in namings if one.id in past.ops and one.body.friends]
        if not good:
            return
        naming = self.chance.choice(good)
        most = self.most_to_give(past, naming.author)
        for _ in range(8):
            other, body = self.recovery_body(naming)
            if permission(past, self.id(other)) < body[3] <= most:
                break
        one = self.write(user, body, epoch=epoch, acks=acks)
        if one:
            self.come(other, epoch, user)
            if self.chance.random() < 0.2:
                self.write(user, body, epoch=epoch, acks=acks)

    def exclude_gone(self, user, view, level):
        """Remove somebody who left or moved, also from what it does beside that."""
        mine = rights_of(view, self.id(user))
        gone = sorted({op.author for op in self.removals(view) if is_leave(op)} - members(view).keys())
        for other in self.chance.sample(gone, len(gone)):
            above = rights_of(view, other, past_leaves=True)
            if above and all(any(senior(self.graph, by, one) for by in mine) for one in above):
                found = self.where(user, view, level)
                if found:
                    body = ["remove1", other, None, self.ends(user, other)]
                    self.write(user, body, epoch=found[0], acks=found[1])
                return

    def quarrel(self, first):
        """Let who may pass on a place, its devices, a friend and an admin who know the same act beside each other."""
        view = self.view_of(first)
        names = {self.id(user): user for user in self.seen}
        persons = {
            acting(self.graph, op) for tag in ("device-grant1", "recovery-grant1") for op in view.all(tag)
        }
        persons |= {op.author for op in self.removals(view) if is_leave(op)}
        persons = [names[one] for one in sorted(persons) if one in names]
        if not persons:
            return
        person = self.chance.choice(persons)
        given = given_to_devices(view, self.id(person))
        devices = sorted(
            names[one] for one in members(view) if one in names and self.holds_by(view, one, given)
        )
        admins = [one for one in sorted(self.seen) if permission(view, self.id(one)) >= ADMIN]
        device = self.chance.choice(devices) if devices else None
        judge = self.chance.choice(admins) if admins else None
        for user in sorted({person, device, judge} - {None, first}, key=str):
            self.sync(user, first)
        acting_users = [
            (person, [self.pass_place] * 4 + [self.take_back, self.leave, self.lend, self.name_friends]),
            (device, [self.pass_place] * 3 + [self.admit, self.post, self.exclude, self.lend, self.recover]),
            (judge, [self.exclude] * 3 + [self.exclude_gone] * 2 + [self.admit, self.recover]),
        ]
        started = [(user, deeds, self.view_of(user)) for user, deeds in acting_users if user]
        for user, deeds, mine in started:
            held = permission(mine, self.id(user))
            deed = self.chance.choice(deeds)
            needed = {self.exclude: ADMIN, self.exclude_gone: ADMIN, self.admit: ADMIN, self.post: WRITE}
            if held >= needed.get(deed, READ):
                deed(user, mine, held)
        if self.chance.random() < 0.5:
            self.move_by_older_past(person)

    def holds_by(self, view, user, given):
        """Return True if a user holds by one of some credentials."""
        return any(by in given for by, _ in rights_of(view, user))

    def move_by_older_past(self, user):
        """Let who holds an old key move by what it held before it left, or was removed."""
        me = self.id(user)
        lost = [op for op in removals_of(self.view_of(user), me) if op.acks]
        if not lost:
            return
        acks = self.chance.choice(lost).acks
        past = self.view(acks)
        epoch = self.any_epoch(user, past.ops)
        heirs = self.heirs_of(past, me)
        place = self.place_of(past, me)
        if epoch and heirs and place:
            self.write(user, ["move1", self.chance.choice(heirs), place], epoch=epoch, acks=acks)

    def place_body(self, view, me):
        """A move, a naming or a recovery grant, which as a rule its author may not make."""
        chance = self.chance
        mine = [by for by, _ in credentials(view, me)]
        others = sorted(view.ops)
        credential = chance.choice(mine) if mine and chance.random() < 0.7 else chance.choice(others)
        heirs = self.heirs_of(view, me)
        heir = chance.choice(heirs) if heirs and chance.random() < 0.6 else self.id(chance.choice(NAMES))
        bodies = [["move1", heir, credential]] * 3
        friends = [self.id(one) for one in chance.sample(NAMES, chance.randint(0, 3))]
        bodies.append(["recovery-friends1", friends, chance.randint(0, 3)])
        namings = view.all("recovery-friends1")
        bodies += [self.recovery_body(chance.choice(namings), chance.random() < 0.7)[1] for _ in namings[:2]]
        return chance.choice(bodies)
