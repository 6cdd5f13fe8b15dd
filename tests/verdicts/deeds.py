"""What users of a world do: they admit and exclude, write, join, agree, and start epochs."""

from . import statements
from .epochs import due, epochs, opens, written_in
from .family_rights import said
from .rules import (
    ADMIN,
    MANAGE,
    NONE,
    OWNER,
    READ,
    WRITE,
    council,
    covering,
    enough,
    first_approvals,
    in_force,
    is_void,
    members,
    permission,
    rights_of,
    senior,
    signed_for,
    used_up,
)
from .views import View
from .world import NAMES, World


class Deeds(World):
    """A world whose users act by chance, each as its view allows."""

    def prelude(self):
        """Let ann admit some, most of them to much, so that deep states are reached early."""
        for other in self.chance.sample(NAMES[1:6], self.chance.randint(1, 4)):
            to = self.chance.choice([READ, WRITE, WRITE, MANAGE, ADMIN, ADMIN, ADMIN, OWNER])
            if permission(self.view_of("ann"), self.id(other)) < to:
                self.write("ann", ["grant2", self.id(other), to], epoch=self.graph.init)
                self.come(other, self.graph.init, "ann")
        view = self.view_of("ann")
        for _ in range(self.chance.choice([0, 1, 1, 2])):
            self.make_branch("ann", view, OWNER)
        if self.mood == "quorum":
            self.name_quorum("ann", self.view_of("ann"), OWNER)
        if self.mood == "links":
            self.invite_somebody("ann", self.view_of("ann"), OWNER)
        for user in sorted(self.seen):
            if self.chance.random() < 0.8:
                self.sync(user, "ann")
        if council(self.view_of("ann")) and self.chance.random() < 0.8:
            self.ask_council()

    def ask_council(self):
        """Let two founders approve of a removal, of another founder as a rule, for some or all to know."""
        users = [*self.founders[:3], self.chance.choice(self.founders)]
        founders = [user.name for user in users]
        target = self.chance.choice([*founders, *sorted(self.seen)])
        signers = [user for user in dict.fromkeys(founders) if user != target]
        for user in signers:
            self.sync(user, "ann")
        proposal = self.write(signers[0], ["propose-removal1", self.id(target), None], epoch=self.graph.init)
        for number, user in enumerate(signers[:2]):
            self.sync(user, signers[0])
            if proposal in self.seen[user]:
                self.write(user, ["approve1", proposal], epoch=self.graph.init)
            if number:
                self.sync(signers[0], user)

    # One step.

    def step(self):
        """Let somebody do something."""
        chance = self.chance
        users = sorted(self.seen)
        if chance.random() < (0.15 if self.groups else 0.3):
            self.groups = None if self.groups else {user: chance.randrange(2) for user in NAMES}
        user = chance.choice(users)
        near = [
            other
            for other in users
            if other != user and (not self.groups or self.groups[other] == self.groups[user])
        ]
        for other in near:
            if chance.random() < 0.4:
                self.sync(user, other)
        if chance.random() < 0.06:
            self.contest(user)
            return
        view = self.view_of(user)
        level = permission(view, self.id(user))
        deeds = self.deeds(user, view, level)
        total = sum(weight for weight, _ in deeds)
        at = chance.random() * total
        for weight, deed in deeds:
            at -= weight
            if at <= 0:
                deed(user, view, level)
                return

    def contest(self, first):
        """Let several admins who know the same remove others beside each other."""
        view = self.view_of(first)
        admins = [user for user in sorted(self.seen) if permission(view, self.id(user)) >= ADMIN]
        for user in admins:
            self.sync(user, first)
        started = [(user, self.view_of(user)) for user in self.chance.sample(admins, min(3, len(admins)))]
        for user, view in started:
            self.exclude(user, view, permission(view, self.id(user)))

    def deeds(self, user, view, level):
        """Return the deeds that a user may do, with weights."""
        found = [(1, self.rest)]
        links = self.mood == "links"
        if level == NONE:
            return [*found, (4, self.come_in)]
        if level == READ:
            return [*found, (1, self.leave), (1, self.offer), (2, self.approve), (1, self.come_in)]
        proposals = bool(view.all("propose-removal1") or view.all("propose-checkpoint1"))
        asks = in_force(view) or council(view)
        found += [
            (16 if self.branches else 0, self.post),
            (20 if proposals else 0, self.approve),
            (1, self.leave),
            (12 if asks and not proposals else 3 if asks else 0.3, self.propose),
            (16 if proposals else 0, self.act_on_proposals),
            (0.5, self.offer),
            (1, self.say),
        ]
        if level >= MANAGE:
            found += [(6 if len(self.branches) < 2 else 0, self.make_branch), (1, self.manage)]
        if level >= ADMIN:
            found += [
                (6 if len(members(view)) < 5 else 2, self.admit),
                (9 if links else 2, self.invite_somebody),
                (16 if len(members(view)) > 2 else 4, self.exclude),
                (8 if links else 1, self.revoke_something),
                (8, self.adopt),
                (3, self.begin_freely),
                (2, self.sign_members),
                (1, self.answer),
            ]
        if level >= OWNER:
            found.append((0.5 if in_force(view) else 3, self.name_quorum))
        return found

    def rest(self, user, view, level):
        """Merge the heads, or do nothing."""
        if level >= WRITE and len(self.heads_of(user)) > 1:
            self.say(user, view, level)

    def say(self, user, view, level):
        """Write something in the root branch that decides nothing."""
        epoch = self.ready(user, view)
        if epoch:
            body = self.chance.choice([["post1", "root"], ["profile1", user, None], ["later-kind1", 1]])
            self.write(user, body, epoch=epoch)

    def sign_members(self, user, view, level):
        """Sign the statement of all that is known, or another."""
        epoch = self.ready(user, view)
        if epoch:
            is_true = self.chance.random() < 0.8
            signed = statements.digest(self.view_of(user)) if is_true else self.secret()
            self.write(user, ["members-checkpoint1", signed], epoch=epoch)

    def post(self, user, view, level):
        """Write in a branch."""
        known = [one for one in self.branches if one in self.seen[user]]
        if not known:
            return
        epoch = self.ready(user, view)
        if not epoch:
            return
        branch = self.chance.choice(known)
        roll = self.chance.random()
        if roll < 0.1 and level >= MANAGE:
            self.write(user, ["compaction1", []], branch=branch, epoch=epoch)
        elif roll < 0.5:
            self.write(
                user, ["post1", f"post {self.count}"], branch=branch, epoch=epoch, metadata=said("post1")
            )
        else:
            body = self.chance.choice(
                [["post1", "text"], ["set1", ["a"], [], []], ["grant2", self.id("hal"), 5]]
            )
            self.write(user, body, branch=branch, epoch=epoch)

    def make_branch(self, user, view, level):
        """Make a branch and add it."""
        epoch = self.ready(user, view)
        if not epoch or len(self.branches) > 1:
            return
        one = self.commit(
            user,
            ["branch-root1"],
            first=True,
            epoch=epoch,
            place=self.heads_of(user),
            expect=None,
            by_writer=epoch in self.secret_of[user],
        )
        added = self.write(user, ["branch-add2", one, "branch", [one, self.blocks[one][0]]], epoch=epoch)
        if added and self.note_accepted(user, one):
            self.branches.append(one)

    def manage(self, user, view, level):
        """Name something."""
        epoch = self.ready(user, view)
        if epoch:
            branch = self.branches[0] if self.branches else self.repo
            self.write(
                user,
                self.chance.choice([["tag1", "tag", branch, None], ["branch-edit1", branch, "new", None]]),
                epoch=epoch,
            )

    def admit(self, user, view, level):
        """Grant a permission to somebody who holds less."""
        epoch = self.ready(user, view)
        if not epoch:
            return
        other = self.chance.choice(NAMES[1:6])
        held = permission(self.view_of(user), self.id(other))
        best = level if level == OWNER and self.chance.random() < 0.3 else ADMIN
        if held < best:
            to = self.chance.randint(held + 1, best)
            if self.write(user, ["grant2", self.id(other), to], epoch=epoch):
                self.come(other, epoch, user)

    def invite_somebody(self, user, view, level):
        """Invite, and let somebody join soon."""
        epoch = self.ready(user, view)
        if not epoch:
            return
        to = self.chance.choice([READ, WRITE, WRITE])
        one = self.write(
            user,
            epoch=epoch,
            level=to,
            uses=self.chance.randint(1, 3),
            writer=self.invite,
            acks=self.heads_of(user),
        )
        if one:
            self.invitations[one] = (epoch, user, to)
            if self.chance.random() < 0.7:
                self.enter(self.chance.choice(NAMES[2:]), one)

    def come_in(self, user, view, level):
        """Join by an invitation."""
        known = [one for one in self.invitations if one in self.seen[user]]
        if known:
            self.enter(user, self.chance.choice(known))

    def enter(self, user, invitation):
        """Follow a link and join by it, as far as it lets its holder in."""
        epoch, giver, to = self.invitations[invitation]
        self.come(user, epoch, giver)
        if to == WRITE:
            self.secret_of[user].add(epoch)
        view = self.view_of(user)
        if invitation not in self.seen[user] or permission(view, self.id(user)) >= to:
            return
        if any(
            op.body.user == self.id(user) and op.id not in self.graph.past[invitation]
            for op in view.all("remove1")
        ) or any(op.body.invitation == invitation for op in view.all("revoke1")):
            return
        # A newcomer names only heads whose past its epoch opens.
        now = written_in(view)
        epoch = now if now in self.hold[user] else epoch
        acks = self.open_heads(user, epoch)
        if acks and invitation in self.graph.closure(acks):
            self.write(user, epoch=epoch, invitation=invitation, writer=self.join, acks=acks, by_writer=False)

    def open_heads(self, user, epoch):
        """The heads whose past an epoch opens."""
        view = self.view_of(user)
        inside = opens(view, epoch)
        right = [
            one
            for one in view.ops
            if all(init.id in inside for init in epochs(view) if init.id in self.graph.closure([one]))
            and epoch in self.graph.closure([one])
        ]
        return sorted(one for one in right if not any(one in self.graph.past[other] for other in right))

    def exclude(self, user, view, level):
        """Remove or demote somebody who is junior."""
        if covering(view):
            return
        me = self.id(user)
        mine = [right for right in rights_of(view, me) if right[1] >= ADMIN]
        others = [one for one in sorted(members(view)) if one != me]
        self.chance.shuffle(others)
        for other in others:
            held = permission(view, other)
            keeps = self.chance.choice([None, None, None, READ, WRITE, MANAGE])
            above = [right for right in rights_of(view, other) if right[1] > (keeps or NONE)]
            if held > (keeps or NONE) and all(
                any(senior(self.graph, by, right) for by in mine) for right in above
            ):
                epoch = self.ready(user, view)
                if epoch:
                    self.write(user, ["remove1", other, keeps, self.ends(user, other)], epoch=epoch)
                    if self.chance.random() < 0.8:
                        self.ready(user, self.view_of(user))
                return

    def ends(self, user, other):
        """The ends of a member's feeds as a user sees them; sometimes none, sometimes others."""
        if self.chance.random() < 0.3:
            return []
        found = []
        for branch in sorted(self.branches):
            feed = [self.graph.commits[one] for one in self.seen[user]]
            feed = sorted(
                (one.sequence, one.id) for one in feed if one.of_branch == branch and one.author == other
            )
            if feed:
                sequence, last = self.chance.choice(feed) if self.chance.random() < 0.2 else feed[-1]
                if self.chance.random() < 0.1:
                    sequence += self.chance.choice([-1, 1])
                found.append([branch, max(sequence, 1), last])
        return found

    def leave(self, user, view, level):
        """Leave, or take less."""
        if level == OWNER or self.chance.random() < 0.5:
            return
        keeps = self.chance.choice([None, None, READ])
        epoch = self.ready(user, view)
        if epoch and permission(self.view_of(user), self.id(user)) > (keeps or NONE):
            acks = self.heads_of(user) if level >= WRITE else self.open_heads(user, epoch)
            if acks:
                self.write(user, ["remove1", self.id(user), keeps, []], epoch=epoch, acks=acks)

    def revoke_something(self, user, view, level):
        """Revoke an invitation."""
        known = [
            one
            for one in self.invitations
            if one in self.seen[user] and not any(op.body.invitation == one for op in view.all("revoke1"))
        ]
        epoch = self.ready(user, view) if known else None
        if epoch:
            self.write(user, ["revoke1", self.chance.choice(known)], epoch=epoch)

    def adopt(self, user, view, level):
        """Adopt some of what is void."""
        self.graph.accepted_content = [
            self.graph.commits[one]
            for one in self.order
            if self.graph.commits[one].branch != self.repo and one in self.seen[user]
        ]
        fresh = View(self.graph, view.ops)
        void = [one.id for one in self.graph.accepted_content if is_void(fresh, one.id)]
        epoch = self.ready(user, view) if void else None
        if epoch:
            one = self.chance.choice(void)
            self.write(user, ["adopt1", self.graph.commits[one].of_branch, [one]], epoch=epoch)

    def begin_freely(self, user, view, level):
        """Start an epoch though none is due."""
        if not due(view) and {one.id for one in epochs(view)} <= self.hold[user]:
            self.begin(user, view)

    def offer(self, user, view, level):
        """Offer a branch."""
        known = [one for one in self.branches if one in self.seen[user]]
        epoch = written_in(view)
        if known and epoch and epoch in self.hold[user]:
            acks = self.open_heads(user, epoch)
            if acks and any(op.body.branch == known[0] for op in self.view(acks).all("branch-add2")):
                self.write(user, ["offer1", known[0], True, "offer", b""], epoch=epoch, acks=acks)

    def answer(self, user, view, level):
        """Answer an offer."""
        offers = view.all("offer1")
        epoch = self.ready(user, view) if offers else None
        if epoch:
            self.write(
                user, ["answer1", self.chance.choice(offers).id, self.chance.random() < 0.5], epoch=epoch
            )

    # Quorums.

    def name_quorum(self, user, view, level):
        """Name a quorum."""
        signers = sorted(members(view))
        epoch = self.ready(user, view)
        if epoch and len(signers) > 1:
            signers = sorted(self.chance.sample(signers, min(len(signers), self.chance.randint(1, 3))))
            threshold = min(self.chance.choice([1, 1, 2, 3]), len(signers))
            self.write(user, ["quorum1", signers, threshold, self.chance.random() < 0.8], epoch=epoch)

    def propose(self, user, view, level):
        """Propose a removal or a checkpoint, where a quorum is in force."""
        if not in_force(view) and not council(view) and self.chance.random() < 0.9:
            return
        epoch = self.ready(user, view)
        others = [one for one in sorted(members(view)) if council(view) or one != self.id("ann")]
        if council(view) and self.chance.random() < 0.6:
            others = sorted(council(view)[1]) or others
        known = [one for one in self.branches if one in self.seen[user]]
        if epoch and known and self.chance.random() < 0.4:
            branch = self.chance.choice(known)
            self.write(user, ["propose-checkpoint1", branch, self.heads_of(user, branch)], epoch=epoch)
        elif epoch and others:
            self.write(user, ["propose-removal1", self.chance.choice(others), None], epoch=epoch)

    def approve(self, user, view, level):
        """Approve of what was proposed."""
        me = self.id(user)
        signs = any(me in quorum.body.signers for quorum in in_force(view))
        if not signs and me not in (council(view) or (0, {}))[1]:
            return
        done = {op.body.proposal for op in view.all("approve1") if op.author == me}
        open_ones = [
            op
            for op in (*view.all("propose-removal1"), *(view.all("propose-checkpoint1") if signs else ()))
            if op.id not in done
        ]
        epoch = (self.ready(user, view) if level >= WRITE else written_in(view)) if open_ones else None
        if not epoch:
            return
        acks = self.heads_of(user) if level >= WRITE else self.open_heads(user, epoch)
        one = self.chance.choice(open_ones).id
        if acks and one in self.graph.closure(acks):
            self.write(user, ["approve1", one], epoch=epoch, acks=acks)

    def act_for_council(self, user, view):
        """Do what the council approved of; return whether there was anything."""
        number, signers = council(view) or (1, {})
        for proposal in view.all("propose-removal1"):
            removed = proposal.body.user
            if (
                len(signed_for(view, signers, proposal)) >= number
                and removed != self.id(user)
                and permission(view, removed)
                and not used_up(view, proposal)
            ):
                epoch = self.ready(user, view)
                if epoch:
                    self.write(user, ["remove1", removed, None, self.ends(user, removed)], epoch=epoch)
                return True
        return False

    def act_on_proposals(self, user, view, level):
        """Do what enough signers approved of."""
        if self.act_for_council(user, view):
            return
        for proposal in view.all("propose-removal1"):
            removed = proposal.body.user
            right = next(((quorum.id, OWNER) for quorum in covering(view)), None)
            if (
                right
                and removed != self.id(user)
                and permission(view, removed)
                and not used_up(view, proposal)
                and enough(covering(view), first_approvals(view, proposal, right))
            ):
                above = rights_of(view, removed)
                if all(senior(self.graph, right, one) for one in above):
                    epoch = self.ready(user, view)
                    if epoch:
                        self.write(user, ["remove1", removed, None, self.ends(user, removed)], epoch=epoch)
                    return
        for proposal in view.all("propose-checkpoint1"):
            branch = proposal.body.branch
            if (
                in_force(view)
                and set(proposal.body.commits) <= self.seen[user]
                and enough(in_force(view), first_approvals(view, proposal, None))
            ):
                epoch = self.ready(user, view)
                if epoch:
                    self.write(
                        user,
                        ["checkpoint1", proposal.id],
                        branch=branch,
                        epoch=epoch,
                        acks=sorted(proposal.body.commits),
                    )
                return
