"""Random histories: a world that runs for a while, now and then with somebody who breaks the rules."""

from . import crypto
from .epochs import boxed, epochs, opens
from .family_rights import SMALL
from .judge import judge
from .move_deeds import MoveDeeds
from .rules import WRITE, members, permission
from .world import NAMES


class Hostile(MoveDeeds):
    """A world in which some write what they should not."""

    def harm(self):
        """Let somebody do one wrong or odd thing."""
        chance = self.chance
        deeds = (
            [self.backdated] * 5
            + [self.odd_commit] * 4
            + [self.unpermitted] * 3
            + [self.bad_epoch_commit] * 3
            + [self.old_epoch] * 2
            + [self.publication] * 2
            + [self.gone]
            + [self.odd_device] * 4
            + [self.odd_place] * (12 if self.mood == "moves" else 2)
            + [self.on_top] * 2
        )
        user = chance.choice(sorted(self.seen))
        chance.choice(deeds)(user)

    def any_epoch(self, user, closure):
        """An epoch of a past that opens all of it, if a user holds one."""
        view = self.graph.view(closure)
        started = {one.id for one in epochs(view)}
        fit = [one for one in sorted(started) if started <= opens(view, one) and one in self.hold[user]]
        return self.chance.choice(fit) if fit else None

    def backdated(self, user):
        """An operation that leaves out much of what its author had seen."""
        mine = [
            one
            for one in self.order
            if one in self.seen[user] and self.graph.commits[one].branch == self.repo
        ]
        picked = self.chance.sample(mine, min(len(mine), self.chance.randint(1, 2)))
        acks = sorted(one for one in picked if not any(one in self.graph.past[other] for other in picked))
        closure = self.graph.closure(acks)
        epoch = self.any_epoch(user, closure)
        if epoch is None:
            return
        view = self.graph.view(closure)
        others = sorted(members(view)) or [self.id(user)]
        other = self.chance.choice(others)
        bodies = [
            ["remove1", other, None, []],
            ["remove1", self.id(user), None, []],
            ["post1", "old"],
            ["grant2", self.id(self.chance.choice(NAMES)), self.chance.randint(1, 4)],
            ["remove1", other, 1, []],
            self.device_body(view),
            self.device_body(view),
        ]
        bodies += [self.place_body(view, self.id(user))] * (8 if self.mood == "moves" else 1)
        bodies += [["revoke1", one] for one in self.invitations if one in closure]
        known = [one for one in self.branches if one in self.seen[user]]
        if known and self.chance.random() < 0.4:
            branch = self.chance.choice(known)
            self.write(
                user,
                ["post1", "old"],
                branch=branch,
                epoch=epoch,
                place=acks,
                acks=[branch] if self.chance.random() < 0.5 else self.heads_of(user, branch),
            )
        elif self.chance.random() < 0.2 and permission(view, self.id(user)) >= WRITE:
            self.write(user, epoch=epoch, acks=acks, writer=self.start)
        else:
            self.write(user, self.chance.choice(bodies), epoch=epoch, acks=acks)

    def odd_commit(self, user):
        """A commit that is broken in one way."""
        view = self.view_of(user)
        closure = view.ops
        epoch = self.any_epoch(user, closure) if closure else None
        if epoch is None:
            return
        how = self.chance.choice(
            [
                {"rank": 77},
                {"mark": bytes(8), "expect": "bad_mark"},
                {"sign_with": bytes(32), "expect": "bad_signature"},
                {"body_data": b"\x92\xa5post1\x01", "expect": "bad_body"},
                {"feed_previous": None, "sequence": 2, "expect": "bad_commit"},
                {"acks": []},
                {"tangles": [["group", self.graph.init, [self.graph.init]]]},
                {"tangles": [["group", self.secret(), [self.graph.init]]]},
                {"acks": self.heads_of(user, self.chance.choice([None, *self.branches]))},
                {"sequence": 1, "feed_previous": None},
                {"whole": False},
                {"timestamp": 0},
            ]
        )
        known = [one for one in self.branches if one in self.seen[user]]
        branch = self.chance.choice([None, *known])
        if branch is None and len(self.graph.past[self.heads_of(user)[0]]) and self.chance.random() < 0.2:
            head = self.heads_of(user)[0]
            how = {"acks": sorted({head, *self.graph.commits[head].acks})}
        if how.get("expect") == "bad_mark" and epoch not in self.secret_of[user]:
            how["by_writer"] = False
        self.write(user, ["post1", "odd"], branch=branch, epoch=epoch, **how)

    def unpermitted(self, user):
        """Something that its author may not do."""
        view = self.view_of(user)
        epoch = self.any_epoch(user, view.ops) if view.ops else None
        if epoch is None:
            return
        other = self.chance.choice(sorted(members(view)) or [self.id(user)])
        body = self.chance.choice(
            [
                ["grant2", self.id("hal"), 5],
                ["grant2", other, 1],
                ["remove1", self.id("ann"), None, []],
                ["remove1", other, 3, []],
                ["invite1", self.id(user), 3, 1, 1],
                ["branch-add2", self.repo, "r", [self.repo] * 2],
                ["join1", next(iter(self.invitations), self.repo), bytes(64)],
                ["quorum1", [other, other], 1, True],
                ["approve1", self.graph.init],
                ["tag1", "t", self.repo, None],
                ["adopt1", self.repo, [self.repo]],
                ["branch-add2", self.secret(), "other", [self.repo] * 2],
                ["branch-link1", self.secret()],
                ["offer1", self.secret(), False, "", b""],
                ["answer1", self.graph.init, True],
                ["revoke1", self.graph.init],
                ["grant2", self.chance.choice(SMALL), 1],
                ["remove1", other, None, [[self.repo, 1, self.repo]] * 2],
                ["quorum1", [other], 2, True],
                ["quorum1", [self.id("stranger")], 1, False],
                ["files1", [["a file", 1]]],
            ]
        )
        self.write(user, body, epoch=epoch)

    def odd_device(self, user):
        """A device grant or a removal of a device that its author may not make, as a rule."""
        view = self.view_of(user)
        epoch = self.any_epoch(user, view.ops) if view.ops else None
        if epoch is None:
            return
        bodies = [
            self.device_body(view),
            self.device_body(view),
            ["device-grant1", self.id(user), self.chance.randint(1, 5)],
            ["device-grant1", self.chance.choice(SMALL), 1],
        ]
        acks = self.heads_of(user) if self.chance.random() < 0.7 else self.open_heads(user, epoch)
        self.write(user, self.chance.choice(bodies), epoch=epoch, acks=acks)

    def odd_place(self, user):
        """A move, a naming or a recovery grant that its author may not make, as a rule; or one by an older past."""
        if self.chance.random() < 0.3:
            self.move_by_older_past(user)
            return
        view = self.view_of(user)
        epoch = self.any_epoch(user, view.ops) if view.ops else None
        if epoch:
            acks = self.heads_of(user) if self.chance.random() < 0.7 else self.open_heads(user, epoch)
            self.write(user, self.place_body(view, self.id(user)), epoch=epoch, acks=acks)

    def bad_epoch_commit(self, user):
        """An init, a hand-over or an opening that is wrong."""
        view = self.view_of(user)
        epoch = self.any_epoch(user, view.ops) if view.ops else None
        if epoch is None:
            return
        roll = self.chance.randrange(10)
        mine = self.epochs[epoch]
        if roll == 0:
            self.write(user, ["epoch-open1", [[epoch, bytes(32)]]], epoch=epoch)
        elif roll == 1:
            stranger = self.chance.choice(NAMES)
            self.write(
                user, epoch=epoch, users=[stranger], handed=mine, writer=self.hand, acks=self.heads_of(user)
            )
        elif roll == 2:
            self.write(
                user,
                ["epoch-hand1", epoch, mine.mark, mine.mark, [[self.id(user), bytes(32), None]]],
                epoch=epoch,
            )
        elif roll == 3 and boxed(view, epoch)[0]:
            self.write(user, epoch=epoch, key=mine.key, writer=self.start, acks=self.heads_of(user))
        elif roll == 4:
            after = sorted(members(view))
            key = self.secret()
            boxes = b"".join(crypto.key_box(key, self.repo, one) for one in [*after, self.id("hal")])
            self.write(user, epoch=epoch, key=key, boxes=boxes, writer=self.start, acks=self.heads_of(user))
        elif roll == 5:
            boxes = self.secret(32 * len(members(view)))
            self.write(user, epoch=epoch, boxes=boxes, writer=self.start, acks=self.heads_of(user))
        elif roll == 6:
            sealed = {"sealed": bytes(72)}
            self.write(user, epoch=epoch, twist_states=sealed, writer=self.start, acks=self.heads_of(user))
        elif roll == 7:
            gives = [self.chance.choice([(epoch, bytes(32)), (self.secret(), mine.key)]), (epoch, mine.key)]
            self.write(user, epoch=epoch, gives=gives, writer=self.start, acks=self.heads_of(user))
        elif roll == 8:
            others = sorted(one for one in view.ops if one in self.epochs and one != epoch)
            self.write(user, epoch=epoch, gives=others, writer=self.start, acks=self.heads_of(user))
        else:
            self.write(user, epoch=epoch, writers_boxes=b"", writer=self.start, acks=self.heads_of(user))

    def old_epoch(self, user):
        """A commit in an epoch that does not open its past, or was not started there."""
        mine = sorted(self.hold[user] & set(self.graph.past))
        if mine and self.seen[user]:
            epoch = self.chance.choice(mine)
            acks = self.heads_of(user) if self.chance.random() < 0.5 else [self.graph.init]
            self.write(user, ["post1", "in an old epoch"], epoch=epoch, acks=acks)

    def publication(self, user):
        """A publication that is at fault, duplicated, or bare."""
        known = [
            one
            for one in self.order
            if one in self.seen[user] and one in self.blocks and one != self.graph.init
        ]
        known = [one for one in known if self.graph.commits[one].body.tag != "epoch-init3"]
        if not known:
            return
        one = self.chance.choice(known)
        commit = self.graph.commits[one]
        epoch = self.epochs[commit.epoch]
        how = self.chance.choice(
            [
                {"bare": True},
                {"read_key": bytes(32)},
                {"seed": bytes(32)},
                {
                    "seed": bytes(32),
                    "topic": epoch.writers_topic if commit.by_writer else crypto.public(epoch.topic_seed),
                },
                {"blocks": self.blocks[one][1][:1]},
                {},
                {"blocks": self.blocks[one][1] * 2},
            ]
        )
        self.publish(one, epoch, commit.by_writer, **how)
        if self.chance.random() < 0.3:
            self.publish(one, epoch, not commit.by_writer)

    def gone(self, user):
        """A commit that acks something that nobody has."""
        view = self.view_of(user)
        epoch = self.any_epoch(user, view.ops) if view.ops else None
        if epoch:
            self.write(user, ["post1", "early"], epoch=epoch, acks=[self.secret()], rank=3)

    def on_top(self, user):
        """A commit on top of one that was rejected."""
        bad = [
            one
            for one, state in self.ledger.state.items()
            if state == "rejected"
            and one not in self.ledger.bad
            and self.ledger.commits[one].branch == self.repo
            and self.ledger.commits[one].body.tag != "epoch-init3"
        ]
        view = self.view_of(user)
        epoch = self.any_epoch(user, view.ops) if view.ops else None
        if bad and epoch:
            self.write(user, ["post1", "on top"], epoch=epoch, acks=[self.chance.choice(bad)])


def tell(number):
    """Run a world, and choose the node and what comes to it."""
    # Each tenth has keys of its own: all repos in which one store takes part are others, with other topics.
    world = Hostile(f"random {number}", f"{number}", shares=number % 10 != 0)
    chance = world.chance
    hostile = chance.random() < 0.5
    steps = 0
    world.prelude()
    while len(world.ledger.commits) < world.size and steps < 6 * world.size:
        steps += 1
        if hostile and chance.random() < 0.12:
            world.harm()
        else:
            world.step()
    user = "ann" if chance.random() < 0.6 else chance.choice(sorted(world.seen))
    keys = [world.epochs[world.links[user]]]
    if chance.random() < 0.07:
        user = "outsider"
        keys = [world.epochs[chance.choice(sorted(one for one in world.epochs if one in world.order))]]
    come = list(world.publications)
    if chance.random() < 0.1:
        for _ in range(chance.randint(1, 2)):
            come.pop(chance.randrange(len(come)))
    chance.shuffle(come)
    return world, world.history(user, keys, come)


def random_history(number):
    """The random history of a number, judged."""
    _, history = tell(number)
    history["expect"] = judge(history)
    return history
