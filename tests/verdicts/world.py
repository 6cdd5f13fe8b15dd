"""A world of users with nodes of their own, who see different parts of a repo."""

import random

from .epochs import boxed, due, epochs, latest_held, opens, surely_holds, tips, written_in
from .rules import WRITE, members, permission
from .story import Story

NAMES = ("ann", "ben", "cat", "dan", "eve", "fay", "gus", "hal")


class World(Story):
    """A story whose users hold views. Chance decides who does what; all of it follows from the seed."""

    trusting = True

    def __init__(self, name, seed, shares):
        self.shares = shares
        self.chance = random.Random(seed)
        number = self.chance.choice([1] * 7 + [2] + [3] * 2)
        founders, council = NAMES[:number], 2 if number == 3 else None
        self.seen = {}
        self.hold = {}
        self.secret_of = {}
        self.links = {}
        self.order = []
        self.branches = []
        self.invitations = {}
        self.size = round(self.chance.triangular(5, 30, 27))
        self.groups = None
        self.mood = self.chance.choice(
            ["plain"] * 6 + ["quorum"] * 2 + ["links"] * 2 + ["devices"] * 3 + ["moves"] * 5
        )
        super().__init__(name, ["random"], founders, seed=f"random history {seed}", council=council)
        founding = self.graph.init
        for user in founders:
            self.come(user, founding)
            self.secret_of[user].add(founding)

    # What users see and hold.

    def come(self, user, epoch, giver=None):
        """Let a user follow the repo by a link of an epoch, which a member gives."""
        new = user not in self.seen
        self.seen.setdefault(user, set())
        self.secret_of.setdefault(user, set())
        self.hold.setdefault(user, set()).update(self.all_keys(epoch))
        if new:
            self.links[user] = epoch
        if giver:
            self.sync(user, giver)
        elif new:
            self.learn(user, self.order[:1])

    def all_keys(self, epoch):
        """The epochs to which the keys lead that inits give, from one on."""
        found, waiting = {epoch}, [epoch]
        while waiting:
            init = self.graph.commits.get(waiting.pop())
            for one in (init.given or ()) if init else ():
                if one not in found:
                    found.add(one)
                    waiting.append(one)
        return found

    def learn(self, user, commits):
        """Let a user take in commits, as far as it can open and accept them."""
        seen, hold = self.seen[user], self.hold[user]
        me = self.id(user)
        waiting = [one for one in commits if one not in seen]
        changed = True
        while changed and waiting:
            changed = False
            rest = []
            for one in waiting:
                commit = self.graph.commits[one]
                place = commit.place[1] if commit.place and commit.branch != self.repo else []
                if (
                    (commit.epoch not in hold and one != self.graph.init)
                    or not seen.issuperset(commit.acks)
                    or not seen.issuperset(place)
                ):
                    rest.append(one)
                    continue
                is_init = commit.branch == self.repo and commit.body.tag == "epoch-init3"
                if is_init and one not in hold and me not in boxed(self.graph.before(one), one)[0]:
                    rest.append(one)
                    continue
                seen.add(one)
                changed = True
                self.gain(user, me, commit)
            waiting = rest

    def gain(self, user, me, commit):
        """Note the keys that a user has from a commit."""
        if commit.branch != self.repo:
            return
        if commit.body.tag == "epoch-init3":
            self.hold[user] |= {commit.id, *(commit.given or ())}
            if me in boxed(self.graph.before(commit.id), commit.id)[1]:
                self.secret_of[user].add(commit.id)
        elif commit.body.tag == "epoch-open1":
            self.hold[user].update(epoch for epoch, _ in commit.body.epochs)
        elif commit.body.tag == "epoch-hand1":
            for handed, _, writers in commit.body.boxes:
                if handed == me:
                    self.hold[user].add(commit.body.epoch)
                    if writers is not None:
                        self.secret_of[user].add(commit.body.epoch)

    def sync(self, user, other):
        """Let a user take in what another has."""
        theirs = self.seen[other]
        self.learn(user, [one for one in self.order if one in theirs])

    def view_of(self, user):
        """The root branch as a user sees it."""
        return self.graph.view(
            frozenset(one for one in self.seen[user] if self.graph.commits[one].branch == self.repo)
        )

    def heads_of(self, user, branch=None):
        """The heads of a branch as a user sees it."""
        branch = branch or self.repo
        mine = [self.graph.commits[one] for one in self.seen[user]]
        mine = [one for one in mine if one.of_branch == branch]
        acked = {ack for one in mine for ack in one.acks}
        return sorted(one.id for one in mine if one.id not in acked)

    def write(self, user, body=None, *, branch=None, epoch=None, **how):
        """Write a commit as a user's node does, and return its id where it was accepted."""
        seen = how.pop("seen", None)
        if "acks" not in how and not how.get("first"):
            how["acks"] = self.heads_of(user, branch)
        if (branch or how.get("first")) and "place" not in how:
            how["place"] = self.heads_of(user)
        how.setdefault("expect", None)
        how.setdefault("by_writer", epoch in self.secret_of[user])
        writer = how.pop("writer", self.commit)
        one = (
            writer(user, body, branch=branch, epoch=epoch, **how)
            if body is not None
            else writer(user, epoch=epoch, **how)
        )
        return self.note_accepted(seen or user, one)

    def note_accepted(self, user, one):
        """Note what came of a commit for who wrote it, and what it set free."""
        known = set(self.order)
        for other, state in self.ledger.state.items():
            if state == "accepted" and other not in known:
                self.order.append(other)
        if self.ledger.state.get(one) != "accepted":
            return None
        if user in self.seen:
            self.seen[user].add(one)
            self.gain(user, self.id(user), self.graph.commits[one])
        return one

    def found(self, **how):
        """Write the init, and note it."""
        one = super().found(**how)
        self.order.append(one)
        return one

    # What a writer does before it writes.

    def ready(self, user, view):
        """The epoch in which a user may write now, after what is due; None where it cannot."""
        level = permission(view, self.id(user))
        if due(view):
            if level < WRITE:
                return None
            return self.begin(user, view)
        epoch = written_in(view)
        if level >= WRITE:
            missing = {one.id for one in epochs(view)} - opens(view, epoch)
            if missing:
                self.write(
                    user,
                    ["epoch-open1", sorted([one, self.epochs[one].key] for one in missing)],
                    epoch=epoch,
                )
            if self.chance.random() < 0.3:
                self.pass_on(user, epoch)
        return epoch

    def begin(self, user, view):
        """Start an epoch after all that a user sees."""
        named = min(tips(view), key=lambda one: (len(boxed(view, one)[0]), one), default=None)
        if named is None:
            return None
        one = self.write(user, epoch=named, acks=self.heads_of(user), writer=self.start)
        if one:
            self.secret_of[user].add(one)
            self.hold[user].add(one)
        return one

    def pass_on(self, user, epoch):
        """Hand the epoch in use to members who do not surely hold it (E10)."""
        view = self.view_of(user)
        lacking = {}
        for member in members(view):
            if not surely_holds(view, epoch, member):
                lacking.setdefault(latest_held(view, member) or self.graph.init, []).append(member)
        for published, users in sorted(lacking.items()):
            if self.chance.random() < 0.7:
                writers = [member for member in users if permission(view, member) >= WRITE]
                self.write(
                    user,
                    epoch=published,
                    users=users,
                    writers=writers,
                    handed=self.epochs[epoch],
                    writer=self.hand,
                    acks=self.heads_of(user),
                    by_writer=published in self.secret_of[user],
                )
