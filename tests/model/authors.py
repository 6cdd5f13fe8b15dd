"""Honest nodes' commits: heads, merges, epochs, openings, hand-overs (E4, E8 to E10)."""

from tests.model.commits import (
    ADMIN,
    ALL,
    MANAGE,
    NEW,
    PAST,
    ROOT,
    WRITE,
    Body,
    Branch,
    Commit,
    Hand,
    Init,
    Open,
    causes_of,
    deciding,
    followed_by,
    identity,
    inits,
    key_of,
    number_of,
    writers_topic,
)
from tests.model.epochs import (
    boxes_after,
    counts,
    is_due,
    opened,
    preferred,
    surely_hold,
    surely_write_in,
    tips,
)
from tests.model.members import invitation_of, members, permission
from tests.model.switches import SETTINGS, memo, on
from tests.model.views import Given, Topic, View, published, view


@memo
def heads(commits: frozenset[int]) -> frozenset[int]:
    """Return those that no other of these names as a cause."""
    return commits.difference(*(causes_of(one) for one in commits))


def latest(commits: frozenset[int] | set[int]) -> list[int]:
    """Return commits with the last by (rank, id) first."""
    return sorted(commits, key=lambda one: (ALL[one].rank, identity(one)), reverse=True)


def roots_of(acks: frozenset[int]) -> frozenset[int]:
    """Return root branch commits among these and their past."""
    return frozenset(one for one in acks.union(*(PAST[a] for a in acks)) if ALL[one].branch == ROOT)


class Node:
    """A user's node while it writes: what is written is added to what it holds."""

    def __init__(self, user: str, given: frozenset[Given], held: frozenset[int]) -> None:
        self.user, self.given, self.held = user, given, held

    @property
    def view(self) -> View:
        """Return what the node makes of what it holds."""
        return view(self.user, self.given, self.held)

    def may(self, level: int) -> bool:
        """Return True if the user holds this permission by all that is accepted."""
        return permission(deciding(self.view.roots), self.user) >= level

    def held_epochs(self) -> list[int]:
        """Return accepted epochs, the last by (rank, id) first."""
        return latest(set(inits(self.view.roots)))

    # --- commits ---

    def put(self, commit: Commit) -> int:
        """Publish a commit."""
        one = number_of(commit)
        self.held |= published(one)
        return one

    def write(
        self,
        kind: str,
        epoch: int,
        body: Body,
        branch: int = ROOT,
        acks: frozenset[int] | None = None,
        at: int | None = None,
    ) -> int:
        """Write on the heads of the branch, after root merges where there are too many heads.

        `at` is the epoch of the merges, if the commit is published in another: merges open what others may not hold.
        """
        places: frozenset[int] = frozenset()
        if branch == ROOT:
            if acks is None:
                self.merge(epoch if at is None or not on("merges in the epoch in use") else at)
                acks = heads(self.view.roots)
        else:
            self.merge(epoch)
            places = heads(self.view.roots)
            acks = frozenset() if branch == NEW else self._branch_heads(branch)
        rank = 1 + max((ALL[a].rank for a in acks), default=-1)
        return self.put(
            Commit(kind, self.user, epoch, self.signs_in(epoch), branch, acks, places, rank, body)
        )

    def signs_in(self, epoch: int) -> bool:
        """Return True if the node holds the secret of the writers' topic that the epoch states."""
        topic = Topic("W", writers_topic(epoch))
        return topic in self.view.topics and topic.secret in self.view.secrets

    def _branch_heads(self, branch: int) -> frozenset[int]:
        """Return the heads to acknowledge: the author's own last one, then the latest. Void ones are left out."""
        here = frozenset(one for one in self.view.accepted if ALL[one].branch == branch)
        if not SETTINGS.acks_void:
            standing = [one for one in here if one == branch or counts(one, self.view.roots)]
            here = frozenset(standing).union(*(PAST[one] for one in standing)) & here
        found = heads(here)
        own = [one for one in latest(found) if ALL[one].author == self.user]
        chosen = [*own[:1], *(one for one in latest(found) if one not in own[:1])]
        return frozenset(chosen[: SETTINGS.heads_max])

    def merge(self, epoch: int) -> None:
        """Acknowledge root heads in several commits until one commit can name those that are left.

        Each merge is an opening: of the epochs of what it acks that its epoch does not open there. It begins with a head
        that has the epoch's init in its past (E5).
        """
        while len(found := heads(self.view.roots)) > SETTINGS.heads_max:
            acks = self._choose(found, epoch)
            if not acks or not on("merges of too many heads"):
                return
            merged = self.write("open", epoch, Open(self.closed(epoch, acks)), acks=acks)
            if merged not in self.view.accepted:
                return

    def _choose(
        self,
        found: frozenset[int],
        epoch: int | None,
        is_init: bool = False,
        needs: int = WRITE,
        named: frozenset[int] = frozenset(),
        must_be_due: bool = False,
    ) -> frozenset[int]:
        """Return as many heads as a commit may name, such that the author may write it (A20); none if that cannot be.

        They begin with one that has the epoch's init in its past, and one that has what the author needs. `named` are
        commits that must be in the past, too.
        """

        def may_on(acks: list[int]) -> bool:
            if must_be_due and not is_due(roots_of(frozenset(acks))):
                return False
            return self._may_on(acks, is_init, needs, named)

        ahead = latest(found)
        base = [one for one in ahead if epoch is not None and (epoch == one or epoch in PAST[one])][:1]
        if epoch is not None and not base:
            return frozenset()
        if not on("merges have the author's membership in their past"):
            return frozenset([*base, *(one for one in ahead if one not in base)][: SETTINGS.heads_max])
        if not may_on(base):
            both = [[one, other] for one in ahead for other in ahead[: 1 if not is_init else None]]
            base = next(
                ([*base, *more] for more in [*([one] for one in ahead), *both] if may_on([*base, *more])),
                [],
            )
        chosen = [*dict.fromkeys(base)][: SETTINGS.heads_max]
        for one in ahead:
            if one not in chosen and len(chosen) < SETTINGS.heads_max and may_on([*chosen, one]):
                chosen.append(one)
        return frozenset(chosen) if may_on(chosen) else frozenset()

    def _may_on(self, acks: list[int], is_init: bool, needs: int, named: frozenset[int]) -> bool:
        roots = roots_of(frozenset(acks))
        level = permission(deciding(roots), self.user)
        return bool(acks) and named <= roots and level >= (ADMIN if is_init and not is_due(roots) else needs)

    def closed(self, epoch: int, acks: frozenset[int]) -> frozenset[int]:
        """Return the epochs of what these acks follow that the epoch does not open yet."""
        roots = roots_of(acks)
        return frozenset(inits(roots)) - opened(epoch, roots)

    # --- duties ---

    def start(self) -> int | None:
        """Start an epoch after all that is known; where there are too many tips, one after the other."""
        if is_due(self.view.roots) and on("merges open nothing while an epoch is due"):
            self._merge_closed()
        else:
            at = preferred(self.view.roots, self.user)
            self.merge(self.held_epochs()[0] if at is None else at)
        while True:
            found = heads(self.view.roots)
            acks = found
            if len(found) > SETTINGS.heads_max:  # such that it is due after these, else as an admin may
                due = is_due(self.view.roots) and self._choose(found, None, True, must_be_due=True)
                acks = due or self._choose(found, None, True)
            one = self._start_over(acks) if acks else None
            if one is None or acks == found or one not in self.view.accepted or not is_due(self.view.roots):
                return one
            if len(heads(self.view.roots)) >= len(found):
                return one  # it named one head alone

    def _start_over(self, acks: frozenset[int]) -> int:
        """Start an epoch over these heads, in the epoch in use or the last one that they follow."""
        roots = roots_of(acks)
        there = [e for e in self.held_epochs() if e in roots]
        at = preferred(self.view.roots, self.user)
        boxes, writers = boxes_after(roots)
        opens = frozenset(inits(roots)) if on("E4 authors: inits open") else frozenset()
        body = Init(boxes, writers, opens)
        one = self.write("init", at if at in there else there[0], body, acks=acks)
        self.given |= {Given("key", key_of(one)), Given("writers", writers_topic(one))}
        return one

    def _merge_closed(self) -> None:
        """Merge heads that one epoch opens already: nothing is opened while no tip is clean."""
        while len(found := heads(self.view.roots)) > SETTINGS.heads_max:
            groups: dict[int, list[int]] = {}
            for one in latest(found):
                groups.setdefault(followed_by(one), []).append(one)
            merges = ((e, self._choose(frozenset(group), e)) for e, group in groups.items())
            epoch, acks = max(merges, key=lambda item: len(item[1]))
            if (
                len(acks) < 2
                or self.write("open", epoch, Open(frozenset()), acks=acks) not in self.view.accepted
            ):
                return

    def prepare(self) -> int | None:
        """Return the epoch to write in, after all that is to be done first; None where nothing can be written."""
        if not self.may(WRITE):
            return None
        if is_due(self.view.roots):
            if not on("E9 nothing else while one is due"):
                return tips(self.view.roots)[0]
            if not self.may(WRITE if on("E9 writers") else ADMIN):
                return self.held_epochs()[0]
            self.start()
        at = preferred(self.view.roots, self.user)
        if at is None or key_of(at) not in self.view.keys:
            return None
        if self._to_open(at):
            self.merge(at)
        if closed := self._to_open(at):
            self.write("open", at, Open(closed))
        return at

    def _to_open(self, at: int) -> frozenset[int]:
        """Return the epochs that this one does not open yet."""
        if not on("E4 authors: openings"):
            return frozenset()
        closed = self.closed(at, heads(self.view.roots))
        if not on("E4 authors: what does not count is opened"):
            closed = frozenset(e for e in closed if counts(e, self.view.roots))
        return closed

    def tend(self) -> None:
        """Do what a node does by itself (E8 to E10)."""
        at = self.prepare()
        if at is None or is_due(self.view.roots) or not on("E10"):
            return
        if self.may(WRITE if on("E10 writers") else ADMIN):
            self._hand_over(at)

    def _hand_over(self, at: int) -> None:
        roots = self.view.roots
        sure, writers = surely_hold(roots), surely_write_in(roots)
        has_secret = self.signs_in(at)
        by_place: dict[int, list[tuple[str, bool]]] = {}
        for user in sorted(members(deciding(roots)) - {self.user}):
            wants_key = user not in sure[at]
            wants_secret = has_secret and on("E10 writers' secrets") and user not in writers[at]
            wants_secret = wants_secret and permission(deciding(roots), user) >= WRITE
            if not wants_key and not wants_secret:
                continue
            for place in self._places_for(user, at, roots, wants_secret):
                by_place.setdefault(place, []).append((user, wants_secret))
        for place in sorted(by_place):
            users = tuple(user for user, _ in by_place[place])
            secret = tuple(user for user, wants in by_place[place] if wants)
            self.write("hand", place, Hand(at, users, secret), at=at)

    def _places_for(self, user: str, at: int, roots: frozenset[int], wants_secret: bool) -> list[int]:
        """E10: the latest epoch that the member surely holds; for who surely holds none, the latest of all, once in each."""
        sure, held = surely_hold(roots), self.held_epochs()
        there = [e for e in held if user in sure[e]]
        if there and on("E10 in an epoch that is held"):
            return there[:1]
        if not there and not on("E10 followers who were granted a permission"):
            return []
        done = set()
        for one in roots:
            body = ALL[one].body
            if (
                isinstance(body, Hand)
                and body.epoch == at
                and user in (body.writers if wants_secret else body.users)
            ):
                done.add(ALL[one].epoch)
        if not there:  # it may follow by a link of the epoch in use, too, and then lacks the secret alone
            held = [at] * wants_secret + [e for e in held if e != at][: SETTINGS.latest_max]
        return [e for e in (held[:1] if there else held) if e not in done]

    # --- what a reader may do ---

    def write_without_opening(self, kind: str, body: Body) -> int | None:
        """Write a root branch commit that names only heads whose past its epoch opens (readers: leave, join, offer)."""
        roots, held = self.view.roots, self.held_epochs()
        if not held:
            return None
        at = preferred(roots, self.user)
        at = held[0] if at is None or at not in held else at
        able = opened(at, roots)
        seen = roots
        if on("readers name what their epoch opens"):
            seen = frozenset(o for o in roots if all(e in able for e in inits(PAST[o] | {o})))
        acks = latest(heads(seen))
        first = [one for one in acks if at == one or at in PAST[one]]
        if not first:
            return None
        chosen, needs = frozenset(acks), permission(deciding(roots), self.user)
        named = frozenset([invitation_of(body)]) if kind == "join" else frozenset()

        def is_right(acks: frozenset[int]) -> bool:
            return self._may_on([*acks], False, needs, named)

        if on("readers keep their membership") and (len(acks) > SETTINGS.heads_max or not is_right(chosen)):
            chosen = self._choose(chosen, at, needs=needs, named=named)
            able_too = frozenset(o for o in seen if is_right(frozenset([o])))
            chosen = chosen or self._choose(heads(able_too), at, needs=needs, named=named)
        if not chosen:
            return None
        return self.write(kind, at, body, acks=chosen)

    # --- users' actions ---

    def branches(self) -> list[int]:
        """Return the accepted branches, by their first commits."""
        return sorted(one for one in self.view.accepted if ALL[one].kind == "first")

    def add_branch(self, at: int) -> None:
        """Write a branch's first commit, then the commit that pins it."""
        if self.may(MANAGE):
            first = self.write("first", at, Branch(0), branch=NEW)
            self.write("add", at, Branch(first))
