"""Draws histories from seeds: who takes part, and what each does next.

A step names people and numbers alone. What a number stands for (which branch, which link) is looked up when it is done: a
history stays one when steps are left out of it. A step that cannot be done then is passed over. Steps are drawn while the
history is played, of what people can do as they see it: most that are drawn blindly would come to nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

from protocol.formats.body import Permission
from tests.promise.frequencies import ACTS, FORGED, LEVELS, OUTSIDE, PLACE_ACTS, QUARRELS, RULES
from tests.promise.place_quarrels import PLACE_QUARRELS, plan_place
from tests.promise.steps import Step

if TYPE_CHECKING:
    from tests.promise.world import World

NAMES: Final = ("ann", "ben", "cat", "dan", "eve", "fay", "gus")
"""The founder, then others."""
STRANGERS: Final = ("hal", "ivy")
"""Who are not there at first, and may come by links."""
DEVICES: Final = ("phone", "tablet", "desk")
"""Strangers who come as devices, if somebody lets them in."""
RELAY: Final = "rel"
LAST: Final = "zoe"
"""Who joins last."""
_WAITS: Final = (1, 6, 11, 30, 65, 130, 700)
"""Seconds: between and beyond the delays of duties."""

_RULES_AT_ONCE: Final = 6
_FORGE_AT: Final = 6
"""Adversaries break rules at this step, while they are members, and as many steps before the last."""

_QUARRELS_EACH: Final = 3
"""Quarrels of one history, about."""


@dataclass(frozen=True)
class History:
    """A history: who is a member at first and holds what, who is hostile, and the steps, if these are known already."""

    seed: int
    levels: tuple[tuple[str, str], ...]
    """Members beside the founder, each with what the founder grants it. All come by a link to write, or to read."""
    strangers: tuple[str, ...]
    hostile: frozenset[str]
    has_relay: bool
    has_sessions: bool
    """Whether people meet by sessions; else each hands over all that the other lacks, which takes less time."""
    length: int
    """How many steps are drawn."""
    steps: tuple[Step, ...] | None = None
    """None: they are drawn."""
    founders: tuple[str, ...] = ()
    """Members who own the repo from its founding, beside the founder."""
    council: int | None = None
    """Number of founders who remove one of them together; None: they have no council."""

    @property
    def names(self) -> tuple[str, ...]:
        """Everybody who is there before the last."""
        return (NAMES[0], *(name for name, _ in self.levels), *self.strangers)

    def with_steps(self, steps: Sequence[Step]) -> "History":
        """Return it with these steps."""
        return replace(self, steps=tuple(steps))

    def describe(self) -> str:
        """Say it in a line."""
        levels = ", ".join(f"{name} {level}" for name, level in self.levels)
        founds = f"{NAMES[0]} founds"
        if self.council:
            founds = f"{' '.join((NAMES[0], *self.founders))} found, {self.council} of them as council"
        said = (
            f"seed {self.seed}: {founds}; members: {levels}; strangers: {' '.join(self.strangers) or 'none'}"
        )
        said += f"; hostile: {' '.join(sorted(self.hostile)) or 'nobody'}; they meet "
        return f"{said}{'by sessions' if self.has_sessions else 'and hand over'}{', and by a relay' * self.has_relay}"


def draw_history(seed: int) -> History:
    """Draw who takes part."""
    rng = Random(f"history {seed}")
    count = rng.choice((2, 3, 3, 4, 4, 5, 6))
    levels = tuple((name, rng.choices(LEVELS, (2, 4, 1, 7, 2))[0]) for name in NAMES[1 : 1 + count])
    strangers = STRANGERS[: rng.choice((0, 0, 1, 1, 2))]
    names = [name for name, _ in levels]
    hostile = frozenset(rng.sample(names, rng.choice((0, 1, 1, 1, 1, 2)) if count > 2 else 0))
    drawn = History(
        seed, levels, strangers, hostile, rng.random() < 0.2, rng.random() < 0.3, rng.randint(20, 60)
    )
    drawn = _draw_council(drawn, rng) if count > 2 and rng.random() < 0.3 else drawn
    return _draw_devices(drawn, rng)


def _draw_devices(history: History, rng: Random) -> History:
    """Let there be devices, one of them perhaps an adversary's."""
    devices = DEVICES[: rng.choice((0, 1, 2, 2, 3))]
    bad = devices[:1] if history.hostile and rng.random() < 0.3 else ()
    return replace(history, strangers=(*history.strangers, *devices), hostile=history.hostile.union(bad))


def _draw_council(history: History, rng: Random) -> History:
    """Let some found the repo together, with a council of more than half. Adversaries are fewer than decide alone."""
    founders = tuple(name for name, _ in history.levels[: rng.choice((2, 2, 3, 3, 3, 4))])
    least = (1 + len(founders)) // 2 + 1
    council = rng.choice((least, least, least, 1 + len(founders)))
    levels = tuple((name, "owner" if name in founders else level) for name, level in history.levels)
    liars = [name for name in founders if name in history.hostile]
    hostile = history.hostile - set(liars[council - 1 :])
    return replace(history, levels=levels, hostile=hostile, founders=founders, council=council)


class Drawing:
    """Draws steps. People meet in groups that change now and then."""

    def __init__(self, history: History) -> None:
        self._rng = rng = Random(f"steps {history.seed}")
        self._names = list(history.names)
        self._hostile = history.hostile
        self._strangers = history.strangers
        self._founders = (NAMES[0], *history.founders)
        self._council = history.council
        self._groups: list[list[str]] = [self._names]
        self._meets = rng.choice((0.1, 0.2, 0.3, 0.45))
        """How often people meet: histories with few meetings have more side by side."""
        self._forges = rng.choice((0.2, 0.35, 0.6))
        self._planned: list[Step] = []
        self._drawn = 0
        self._against: list[str] = []
        """Rules that are still to be broken."""
        self._named: list[str] = []
        """Names of people who named the one who acts as a friend."""
        self._moves = rng.choice((1, 1, 3))
        """Factor by which places are passed on and recovered more often than usual."""
        self._quarrels = _QUARRELS_EACH * history.seed
        """Number of quarrels done, with those of the histories before."""

    def draw_step(self, known: "World") -> Step:
        """Draw the next one."""
        rng, states, history = self._rng, known.states(), known.history
        self._drawn += 1
        if rng.random() < 0.12:
            self._part()
        stopped = [name for name in self._names if states[name] is None]
        if stopped and rng.random() < 0.12:
            return Step(rng.choice(stopped), "start")
        running = [name for name in self._names if states[name] is not None]
        if not running:
            return Step(stopped[0], "start")
        hostile = [name for name in running if name in history.hostile]
        if self._drawn in (_FORGE_AT, history.length - _FORGE_AT):
            self._planned += [self._draw_forging(name, states, is_sure=True) for name in hostile]
        if not self._planned and rng.random() < 0.12:
            self._planned = self._draw_quarrel({name: states[name] or 0 for name in running})
        if self._planned:
            return self._planned.pop(0)
        if rng.random() < self._meets:
            meeting = self._draw_meeting(running, has_relay=history.has_relay)
            if meeting is not None:
                return meeting
        if hostile and rng.random() < self._forges:
            return self._draw_forging(rng.choice(hostile), states)
        # Who may more does more: twice as likely as a reader.
        who = max(rng.sample(running, min(2, len(running))), key=lambda name: states[name] or 0)
        held = states[who] or 0
        if not held and rng.random() < 0.8:
            kind = _choose(rng, OUTSIDE)
        else:
            acts = {
                act: weight * (self._moves if act in PLACE_ACTS else 1)
                for act, (weight, needs) in ACTS.items()
                if held >= needs
            }
            if not any(giver == who for giver, _ in known.lent):
                acts.pop("take back", None)
                acts.pop("move", None)
            self._named = [member for member, friend in known.named if friend == who]
            if not self._named:
                acts.pop("vouch", None)
            if not known.signed:
                acts.pop("let in", None)
            kind = _choose(rng, acts)
        return self._with_args(who, kind, running, known.levels_at(who))

    def _draw_forging(self, who: str, states: Mapping[str, int | None], *, is_sure: bool = False) -> Step:
        """Draw what an adversary forges: half of the time (`is_sure`: always) against rules, each in turn."""
        rng, held = self._rng, states[who] or 0
        names: list[str] = []
        if is_sure or rng.random() < 0.5:
            if not any(_can_forge(held, one) for one in self._against):
                self._against = rng.sample(list(RULES), len(RULES))
            names = [one for one in self._against if _can_forge(held, one)][:_RULES_AT_ONCE]
            self._against = [one for one in self._against if one not in names]
        kind = "against" if names else _choose(rng, FORGED)
        return Step(who, f"forge {kind}", (rng.randrange(1 << 30), *names))

    def _draw_quarrel(self, held: Mapping[str, int]) -> list[Step]:
        """Draw what several do at once, nobody knowing of the others: the next of which they are able.

        Half of the time it is what founders decide together, where they have a council.
        """
        if self._council and self._rng.random() < 0.5 and (plan := self._plan_council(held)):
            return plan
        for _ in QUARRELS:
            kind = QUARRELS[self._quarrels % len(QUARRELS)]
            self._quarrels += 1
            if plan := self._plan_quarrel(kind, held):
                return plan
        return []

    def _plan_quarrel(self, kind: str, held: Mapping[str, int]) -> list[Step]:
        rng = self._rng
        if kind in PLACE_QUARRELS:
            return plan_place(rng, kind, held, self._strangers, self._hostile)
        admins = [name for name in held if held[name] >= Permission.ADMIN]
        rng.shuffle(admins)
        some = admins[: rng.choice((2, 2, 3))]
        rest = sorted((name for name in held if name not in some), key=lambda name: held[name] > 0)
        others = rest[:1] if rng.random() < 0.5 else rng.sample(rest, min(len(rest), 2))
        if len(some) < 2:
            return []
        circle = list(zip(some, (*some[1:], some[0]), strict=True))
        match kind:
            case "circle":
                plan = [
                    Step(one, rng.choice(("exclude", "demote")), (other, "write")) for one, other in circle
                ]
            case "two circles":
                pairs = zip(admins[::2], admins[1::2], strict=False)
                plan = [Step(one, "exclude", (other,)) for pair in pairs for one, other in (pair, pair[::-1])]
            case "renewals":
                plan = [Step(one, "renew") for one in some] * rng.choice((1, 2))
            case "branches":
                plan = [Step(one, "branch") for one in some]
            case "back":
                plan = [Step(some[0], "exclude", (one,)) for one in others]
                plan += [Step(one, "join", (self._number(),)) for one in others]
                plan += [Step(some[1], "grant", (one, "write")) for one in others]
            case "devices":
                below = [name for name in rest if 0 < held[name] < held[some[0]]] or others or some[1:]
                device = rng.choice(below)
                plan = [
                    Step(some[0], "lend", (device, LEVELS[held[some[0]] - 1])),
                    Step(some[0], "gather", (device, some[1], 7)),
                ]
                plan += [Step(device, "grant", (name, "write")) for name in others if name != device]
                plan += [Step(device, "invite", ("write", 1)), Step(device, "write", (self._number(),))]
                plan += [Step(some[1], rng.choice(("demote", "grant")), (device, "write"))]
                plan += [Step(some[0], "take back", (self._number(),))]
            case "let in":
                plan = [Step(some[0], "exclude", (some[1],))]
                for one in others:
                    plan += [Step(some[1], "invite", ("write", 1)), Step(one, "join", (-1,))]
                    plan += [Step(one, "meet", (some[1], 12)), Step(some[1], "wait", (130,))]
            case "revoked":
                plan = [Step(some[0], "invite", ("write", 5)), Step(some[0], "meet", (some[1], 2))]
                for one in others:
                    plan += [Step(one, "join", (-1,)), Step(one, "meet", (some[0], 12))]
                plan.append(Step(some[1], "revoke", (-1,)))
            case "quorum":
                return self._plan_quorum(held, admins)
            case "raised":
                return self._plan_raise(held, admins)
            case "revoked beside":
                return self._plan_revocation(held, admins)
            case "claimed":
                return self._plan_claims(held, admins)
            case "followed":
                return self._plan_follower(held, admins)
            case _:
                plan = [
                    Step(one, rng.choice(("demote", "grant")), (other, rng.choice(LEVELS[:4])))
                    for other in others
                    for one in some
                ]
        return [*plan, *(Step(one, "write", (self._number(),)) for one in (*some, *others))]

    def _plan_quorum(self, held: Mapping[str, int], admins: Sequence[str]) -> list[Step]:
        """Plan what a quorum decides, and an exclusion of a signer by an owner who does not know of it.

        The quorum may be named again meanwhile, and what it decided undone and done again without it.
        """
        rng = self._rng
        owner = next((name for name in admins if held[name] == Permission.OWNER), None)
        admin = next((name for name in admins if name not in (owner, *self._hostile)), None)
        rest = [name for name in held if name not in (owner, admin, *self._hostile) and held[name]]
        if owner is None or admin is None or len(rest) < 2:
            return []
        target, *others = rng.sample(rest, min(len(rest), 3))
        signers = (admin, *others)
        told = Step(admin, "gather", (*rest, 7))
        plan = [Step(owner, "grant", (admin, "owner")), Step(owner, "meet", (admin, 7)), told]
        if rng.random() < 0.7:
            plan.append(Step(owner, "exclude", (others[0],)))
        if rng.random() < 0.3:
            plan += [Step(admin, "quorum", (0, *rest)), told]
        plan += [Step(admin, "quorum", (0, *signers)), Step(admin, "propose", (target, ""))]
        plan += [Step(admin, "checkpoint", (self._number(),)), told]
        plan += [Step(one, "approve", (number,)) for one in (*rest, admin) for number in (0, 1)]
        exclude = Step(admin, "exclude", (target,))
        plan += [told, Step(admin, "finish", (0,)), exclude]
        if rng.random() < 0.3:
            plan += [Step(admin, "grant", (target, "write")), exclude]
        return [*plan, *(Step(one, "write", (self._number(),)) for one in (owner, admin))]

    def _plan_council(self, held: Mapping[str, int]) -> list[Step]:
        """Plan a founder's removal by the others, while that one acts by an older past, or removes one of them as they do.

        Who hears of two proposals approves of both.
        """
        rng = self._rng
        founders = [name for name in self._founders if held.get(name) == Permission.OWNER]
        if self._council is None or len(founders) < 3:
            return []
        rng.shuffle(founders)
        removed, first, *others = founders
        signers = rng.sample(others, min(len(others), rng.choice((self._council - 1, len(others)))))
        members = [name for name in held if held[name] and name not in founders]
        keeps = rng.choice(("", "", "write", "admin"))
        plan = self._plan_decision(first, signers, removed, keeps)
        kind = rng.choice(("acts", "acts", "both", "back"))
        if kind == "both":
            plan = [*self._plan_decision(removed, signers, first, ""), *plan]
            plan.append(Step(removed, "exclude", (first,)))
        elif kind == "acts":
            for name in rng.sample([*members, first], min(1 + len(members), 2)):
                plan.append(Step(removed, rng.choice(("exclude", "grant")), (name, "admin")))
            plan += [
                Step(removed, rng.choice(("invite", "renew")), ("write", 2)),
                Step(removed, "quorum", (0, first)),
            ]
        plan.append(Step(first, "demote", (removed, keeps)) if keeps else Step(first, "exclude", (removed,)))
        if kind == "back":
            plan += [Step(signers[-1] if signers else first, "grant", (removed, "owner"))]
            plan += [Step(removed, "exclude", (one,)) for one in members[:1]]
        return [*plan, *(Step(one, "write", (self._number(),)) for one in (removed, first, *members[:2]))]

    def _plan_decision(self, first: str, signers: Sequence[str], removed: str, keeps: str) -> list[Step]:
        """Plan a proposal of a removal, and approvals that come to who proposed it: 0 and 1 are the latest proposals."""
        approvals = [Step(one, "approve", (number,)) for one in signers for number in (0, 1)]
        told = [Step(first, "gather", (*signers, 7))] if signers else []
        return [Step(first, "propose", (removed, keeps)), *told, *approvals, *told]

    def _plan_raise(self, held: Mapping[str, int], admins: Sequence[str]) -> list[Step]:
        """Plan an admin's exclusion of a member whom an owner makes an owner beside it."""
        owner = next((name for name in admins if held[name] == Permission.OWNER), None)
        admin = next((name for name in admins if held[name] == Permission.ADMIN), None)
        rest = [name for name in held if 0 < held[name] < Permission.ADMIN and name not in self._hostile]
        if owner is None or admin is None or not rest:
            return []
        raised = self._rng.choice(rest)
        plan = [Step(admin, "exclude", (raised,)), Step(owner, "grant", (raised, "owner"))]
        return [*plan, *(Step(one, "write", (self._number(),)) for one in (owner, admin, raised))]

    def _plan_revocation(self, held: Mapping[str, int], admins: Sequence[str]) -> list[Step]:
        """Plan a revocation beside a join, where an epoch that knows neither is handed to who joined afterwards.

        Who writes knows the revocation, and nothing of the hand-over.
        """
        inviter, revoker, *_ = *(name for name in admins if name not in self._hostile), "", ""
        honest = [name for name in held if name not in (inviter, revoker, *self._hostile)]
        writer = next((name for name in honest if held[name] >= Permission.WRITE), None)
        joining = next((name for name in honest if not held[name]), None)
        if not revoker or writer is None or joining is None:
            return []
        return [
            Step(inviter, "invite", ("write", 1)),
            Step(inviter, "gather", (revoker, writer, 2)),
            Step(revoker, "renew"),
            Step(revoker, "gather", (inviter, writer, 2)),
            Step(joining, "join", (-1,)),
            Step(joining, "meet", (writer, 2)),
            Step(joining, "meet", (writer, 2)),
            Step(revoker, "revoke", (-1,)),
            Step(revoker, "meet", (writer, 2)),
            Step(writer, "write", (self._number(),)),
            Step(joining, "meet", (inviter, 12)),
        ]

    def _plan_claims(self, held: Mapping[str, int], admins: Sequence[str]) -> list[Step]:
        """Plan false keys of an epoch, told to who joins from a member who is two epochs behind, before the right one."""
        admin = next((name for name in admins if name not in self._hostile), None)
        liar = next((name for name in held if name in self._hostile and held[name]), None)
        honest = [name for name in held if name not in (admin, *self._hostile)]
        behind = next((name for name in honest if held[name]), None)
        joining = next((name for name in honest if not held[name]), None)
        if admin is None or liar is None or behind is None or joining is None:
            return []
        return [
            Step(admin, "invite", ("write", 1)),
            Step(admin, "gather", (behind, liar, 2)),
            Step(admin, "renew"),
            Step(admin, "renew"),
            Step(admin, "meet", (liar, 2)),
            *(Step(liar, "forge claims", (self._rng.randrange(1 << 30),)) for _ in range(3)),
            Step(joining, "join", (-1,)),
            Step(joining, "meet", (behind, 2)),
            Step(joining, "meet", (behind, 2)),
            Step(joining, "meet", (liar, 2)),
            Step(behind, "meet", (admin, 2)),
            Step(admin, "meet", (joining, 12)),
        ]

    def _plan_follower(self, held: Mapping[str, int], admins: Sequence[str]) -> list[Step]:
        """Plan to make a member of who follows by a link that is two epochs old."""
        admin = next((name for name in admins if name not in self._hostile), None)
        following = next((name for name in held if not held[name] and name not in self._hostile), None)
        if admin is None or following is None:
            return []
        return [
            Step(following, "follow", (admin,)),
            Step(following, "meet", (admin, 2)),
            Step(admin, "renew"),
            Step(admin, "renew"),
            Step(admin, "grant", (following, "read")),
            Step(admin, "meet", (following, 12)),
        ]

    def _number(self) -> int:
        return self._rng.randrange(1 << 20)

    def _part(self) -> None:
        places = self._rng.choice((1, 2, 2, 3))
        of = {name: self._rng.randrange(places) for name in self._names}
        groups = [[name for name in self._names if of[name] == place] for place in range(places)]
        self._groups = [group for group in groups if group]

    def _draw_meeting(self, running: Sequence[str], *, has_relay: bool) -> Step | None:
        rng = self._rng
        groups = [[name for name in group if name in running] for group in self._groups]
        groups = [group for group in groups if len(group) > 1]
        seconds = rng.choice((2, 2, 2, 7, 12))
        if has_relay and rng.random() < 0.4:
            return Step(rng.choice(running), "visit", (RELAY, seconds))
        if not groups:
            return None
        group = rng.choice(groups)
        if len(group) > 2 and rng.random() < 0.25:
            return Step(group[0], "gather", (*group[1:], seconds))
        one, other = rng.sample(group, 2)
        return Step(one, "meet", (other, seconds))

    def _with_args(self, who: str, kind: str, running: Sequence[str], held: Mapping[str, int]) -> Step:
        rng = self._rng
        number = self._number()
        others = [name for name in self._names if name != who]
        members = [name for name in others if 0 < held[name] <= held[who]] or others
        other = rng.choice(
            members if kind in ("exclude", "exclude and stop", "demote", "propose") else others
        )
        if kind == "demote" and rng.random() < 0.1:
            return Step(who, kind, (who, rng.choice(LEVELS[:2])))
        if kind in PLACE_ACTS:
            return self._with_places(who, kind, held, others)
        match kind:
            case "exclude" | "exclude and stop" | "device":
                return Step(who, kind, (other,))
            case "follow":
                return Step(who, kind, (rng.choice(running),))
            case "demote":
                below = LEVELS[: max(held[other] - 1, 1)]
                return Step(who, kind, (other, rng.choice((*below, "write") if "write" in below else below)))
            case "grant":
                weights = [weight if place < held[who] else 0 for place, weight in enumerate((2, 5, 1, 6, 2))]
                return Step(who, kind, (other, rng.choices(LEVELS, weights)[0]))
            case "lend":
                return Step(who, kind, (other, rng.choice(LEVELS[: held[who]])))
            case "invite":
                return Step(who, kind, (rng.choice(LEVELS[:2]), rng.choice((1, 1, 2, 5))))
            case "propose":
                return Step(who, kind, (other, rng.choice(("", "write", "read"))))
            case "wait":
                return Step(who, kind, (rng.choice(_WAITS),))
            case "leave" | "restart" | "erase" | "stop" | "renew" | "refresh" | "branch" | "quorum" | "sign":
                return Step(who, kind, (number,) if kind == "quorum" else ())
            case _:
                return Step(who, kind, (number,))

    def _with_places(self, who: str, kind: str, held: Mapping[str, int], others: Sequence[str]) -> Step:
        rng = self._rng
        free = [name for name in others if name in self._strangers and not held[name]] or others
        members = [name for name in others if held[name]] or others
        match kind:
            case "friends":
                return Step(
                    who, kind, tuple(rng.sample(members, min(len(members), rng.choice((0, 1, 1, 2, 3)))))
                )
            case "vouch":
                return Step(who, kind, (rng.choice(self._named), rng.choice(free)))
            case "let in":
                return Step(who, kind, (rng.choice(free), self._number()))
            case "pair":
                return Step(who, kind, (rng.choice(free), rng.choice((*LEVELS[: held[who]], "", ""))))
            case _:
                return Step(
                    who, kind, (rng.choice([one for one in others if one in self._strangers] or others),)
                )


def _can_forge(held: int, name: str) -> bool:
    least, most = RULES[name]
    return least <= held <= most


def _choose(rng: Random, table: Mapping[str, int]) -> str:
    return rng.choices(list(table), list(table.values()))[0]
