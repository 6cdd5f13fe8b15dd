"""What users of a world do with devices: they grant them what they hold, and remove them."""

from .deeds import Deeds
from .membership import direct_rights
from .rules import (
    ADMIN,
    NONE,
    READ,
    WRITE,
    given_to_devices,
    grants,
    members,
    permission,
    rights_of,
    senior,
)
from .world import NAMES


class DeviceDeeds(Deeds):
    """A world whose users have devices of their own."""

    def prelude(self):
        """Let some whom ann admitted have devices early."""
        super().prelude()
        for user in sorted(self.seen) if self.mood == "devices" else ():
            if self.chance.random() < 0.5:
                self.sync(user, "ann")
                view = self.view_of(user)
                self.lend(user, view, permission(view, self.id(user)))

    def step(self):
        """Let somebody do something, or several who have to do with one device."""
        if self.chance.random() < (0.15 if self.mood == "devices" else 0.03):
            self.strife(self.chance.choice(sorted(self.seen)))
        else:
            super().step()

    def deeds(self, user, view, level):
        """Return the deeds that a user may do, with weights."""
        found = super().deeds(user, view, level)
        if level > NONE:
            weight = 8 if self.mood == "devices" else 1
            found += [(weight, self.lend), (2 * weight, self.take_back)]
        return found

    def most_to_give(self, view, me):
        """The highest permission that a user may give to a device."""
        return max((top for _, top in direct_rights(view, me)), default=NONE)

    def lend(self, user, view, level):
        """Grant to a device something that the user holds."""
        most = self.most_to_give(view, self.id(user))
        others = [one for one in NAMES[1:] if permission(view, self.id(one)) < most]
        epoch = self.ready(user, view) if others else None
        if epoch is None:
            return
        acks = self.heads_of(user) if level >= WRITE else self.open_heads(user, epoch)
        if not acks:
            return
        other = self.chance.choice(others)
        held = permission(self.view(acks), self.id(other))
        if held < most:
            to = most if self.chance.random() < 0.5 else self.chance.randint(held + 1, most)
            if self.write(user, ["device-grant1", self.id(other), to], epoch=epoch, acks=acks):
                self.come(other, epoch, user)

    def devices_of(self, view, me):
        """The members who hold rights by device grants of a user."""
        given = given_to_devices(view, me)
        return [one for one in sorted(members(view)) if any(by in given for by, _ in rights_of(view, one))]

    def take_back(self, user, view, level):
        """Take down a device, as far as its person may; now and then also where it may not."""
        me = self.id(user)
        devices = self.devices_of(view, me)
        epoch = self.ready(user, view) if devices else None
        if epoch is None:
            return
        acks = self.heads_of(user) if level >= WRITE else self.open_heads(user, epoch)
        if not acks:
            return
        past = self.view(acks)
        mine, given = rights_of(past, me), given_to_devices(past, me)
        device = self.chance.choice(devices)
        keeps = self.chance.choice([None, None, READ, WRITE])
        above = [right for right in rights_of(past, device) if right[1] > (keeps or NONE)]
        may = (
            all(one[0] in given and any(senior(self.graph, by, one) for by in mine) for one in above)
            or self.chance.random() < 0.2
        )
        if above and may:
            body = ["remove1", device, keeps, self.ends(user, device)]
            self.write(user, body, epoch=epoch, acks=acks)
            if self.chance.random() < 0.6:
                self.ready(user, self.view_of(user))

    def strife(self, first):
        """Let a person, a device of it and an admin who know the same act beside each other."""
        view = self.view_of(first)
        names = {self.id(user): user for user in self.seen}
        pairs = [
            (names[op.author], names[op.body.user])
            for op in view.all("device-grant1")
            if op.author in names and op.body.user in names and permission(view, op.body.user)
        ]
        if not pairs:
            return
        person, device = self.chance.choice(pairs)
        admins = [user for user in sorted(self.seen) if permission(view, self.id(user)) >= ADMIN]
        judge = self.chance.choice(admins) if admins else None
        for user in sorted({person, device, judge} - {None, first}, key=str):
            self.sync(user, first)
        person_deeds = [self.take_back] * 4 + [self.lend] * 2 + [self.leave]
        admin_deeds = [self.exclude] * 3 + [self.admit] * 2 + [self.revoke_something]
        device_deeds = [self.admit, self.invite_somebody, self.post, self.exclude, self.lend, self.leave]
        acting = [
            (person, person_deeds, 1),
            (device, device_deeds, self.chance.randint(1, 3)),
            (judge, admin_deeds, 1),
        ]
        for user, deeds, times in acting:
            for _ in range(times if user else 0):
                mine = self.view_of(user)
                held = permission(mine, self.id(user))
                deed = self.chance.choice(deeds)
                needed = {self.exclude: ADMIN, self.admit: ADMIN, self.invite_somebody: ADMIN}
                needed |= {self.revoke_something: ADMIN, self.post: WRITE}
                if held >= needed.get(deed, READ):
                    deed(user, mine, held)

    def device_body(self, view):
        """A device grant or a removal of a device, by whomever."""
        chance = self.chance
        removals = [
            ["remove1", op.body.user, chance.choice([None, None, READ, WRITE]), []] for op in grants(view)
        ]
        made = ["device-grant1", self.id(chance.choice(NAMES)), chance.randint(1, 5)]
        return chance.choice([made, chance.choice(removals or [made])])
