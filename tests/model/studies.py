"""Floods of claims and of commits that wait, against a member who was away: how long honest commits take.

The history is real: epochs forked on two levels, a member holds the founding epoch alone, and a hand-over by somebody whom
it does not know yet gives it the epoch in use. A changed node fills the topics that it can sign on.
"""

import random
from dataclasses import replace

from tests.model.cases import POST, RENEW, TEND, invited, step
from tests.model.commits import ALL, ROOT, START, Commit, Open, Text, number_of
from tests.model.promise import find_fault
from tests.model.replicas import Bounds, Replica
from tests.model.switches import use
from tests.model.views import Given, Topic, view
from tests.model.views import number_of as publication_of
from tests.model.worlds import World

SESSIONS_MAX = 400


def away() -> frozenset[int]:
    """Return a healed set in which N, who joined by A and went away, is handed the epoch in use by M, whom N does not know.

    F, who did not know N, renewed twice: N sees the first init without a key. The second is published in the first.
    """
    use()
    world = World("away", "FAMN", {"F": (), "A": (), "M": (), "N": ()}, 0)
    state = world.start()
    steps = (
        step("N", invited("A")), step("F", RENEW), step("F", RENEW), step("M", invited("F")), step("M", ("pull",), "A"),
        step("M", ("pull",), "N"), step("M", TEND), step("F", POST, "M"),
    )  # fmt: skip
    for one in steps:
        state = world.step(state, one)
    return frozenset().union(*(place.held for _, place in state))


def flood(count: int, kind: str, by_writer: bool, authors: int) -> frozenset[int]:
    """Return junk on a topic of the founding epoch: commits that wait for ever, with claims of false keys.

    `kind` is "claims" of epochs that do not exist, "same" for false keys of the epochs that do, or "notes" without claims.
    """
    ghost = number_of(Commit("note", "ghost", 0, False, ROOT, frozenset(START), frozenset(), 2, Text(99)))
    topic = Topic("W" if by_writer else "T", 0)
    real = [one for one in range(len(ALL)) if ALL[one].kind == "init"][1:]
    made = set()
    for number in range(count):
        author = f"x{number % authors}"
        body: Open | Text = Text(number)
        if kind == "claims":
            body = Open(frozenset({10_000 + number}), frozenset({10_000 + number}))
        elif kind == "same":
            body = Open(frozenset({real[number % len(real)]}), frozenset({real[number % len(real)]}))
        said = "open" if isinstance(body, Open) else "note"
        acks, rank = frozenset({ghost}), 3 + number
        junk = Commit(said, author, 0, by_writer, ROOT, acks, frozenset(), rank, body)
        made.add(publication_of(number_of(junk), topic))
    return frozenset(made)


def sessions_until(
    bounds: Bounds, source: frozenset[int], whole: frozenset[int], order: str, seed: int
) -> int | None:
    """Return after how many comparisons N has accepted all that can be; None if never. It must say that something waits."""
    given = frozenset({Given("key", 0), Given("writers", 0)})
    target = view("N", given, whole).accepted
    chance = random.Random(seed)
    replica = Replica("N", given, bounds)
    for count in range(1, SESSIONS_MAX):
        replica.compare(source, chance, order)
        if replica.accepted >= target:
            return count
        came = replica.came - replica.accepted - replica.rejected
        if came and replica.standing().is_level:
            raise AssertionError("a node says that it is level while something waits")
    return None


BASE = Bounds(waiting_max=10**6, claims_max=8)
CLAIMS = {
    "as proposed": BASE,
    "no classes": replace(BASE, has_classes=False),
    "no turns": replace(BASE, has_turns=False),
    "one claim an epoch": replace(BASE, has_false_beside=False),
}
FLOODS = (
    ((200, "T", 200),), ((200, "W", 200),), ((200, "W", 1),), ((200, "W", 200), (200, "T", 200)), ((1000, "T", 1000),),
)  # fmt: skip
FEW = Bounds(waiting_max=10, claims_max=8)
WAITING = {
    "as proposed": FEW,
    "no share for an author": replace(FEW, has_author_share=False),
    "keys of what is kept alone": replace(FEW, has_keys_of_dropped=False),
}


def run_claims(seed: int) -> tuple[list[str], list[str]]:
    """Return lines and faults: false claims against a member who was away, 8 claims at a time."""
    lines, faults = [], []
    whole = away()
    calm = {
        order: sessions_until(Bounds(), whole, whole, order, seed) for order in ("causal", "random", "worst")
    }
    lines.append(f"without a flood, comparisons until all is accepted: {calm}")
    for floods in FLOODS:
        for kind in ("claims", "same"):
            whole = away()
            source = whole.union(
                *(flood(count, kind, topic == "W", authors) for count, topic, authors in floods)
            )
            row = {
                name: sessions_until(bounds, source, whole, "random", seed) for name, bounds in CLAIMS.items()
            }
            what = " and ".join(
                f"{count} by {authors} authors on {topic}" for count, topic, authors in floods
            )
            lines.append(f"{kind:>6}: {what}: {_said(row)}")
            bound = 4 + sum(count for count, _, _ in floods) * len(floods) // BASE.claims_max
            if (row["as proposed"] or SESSIONS_MAX) > bound:
                faults.append(f"claims: {what}: more than {bound} comparisons")
    return lines, faults


def run_waiting(seed: int) -> tuple[list[str], list[str]]:
    """Return lines and faults: more waits than is kept (10 of a topic, 5 of an author)."""
    lines, faults = [], []
    for count, topic, authors in ((5, "T", 1), (300, "T", 1), (300, "T", 300), (300, "W", 300)):
        for order in ("causal", "random", "worst"):
            whole = away()
            source = whole | flood(count, "notes", topic == "W", authors)
            row = {
                name: sessions_until(bounds, source, whole, order, seed) for name, bounds in WAITING.items()
            }
            lines.append(f"{count} that wait for ever, by {authors} on {topic}, order {order}: {_said(row)}")
            if row["as proposed"] is None:
                faults.append(f"waiting: never, {count} by {authors} on {topic}")
    return lines, faults


def run_heads(_: int) -> tuple[list[str], list[str]]:
    """Return lines and faults: a reader floods the root branch with leaves; a commit names at most 4 heads."""
    lines, faults = [], []
    for count in (3, 10, 40, 100):
        for name, steps in HEADS.items():
            world = World("heads", "FAMR", {}, 0, evil="R", settings={"heads_max": 4})
            use("", **world.settings)
            state = world.start()
            for one in (step("M", invited("A")), step("R", ("leave-old", count)), *steps):
                state = world.step(state, one)
            written = [c for c in ALL if c.author == "M" and c.kind != "join"]
            held = dict(state)["M"].held
            posts = [c for c in view("F", dict(state)["F"].given, held).accepted if ALL[c].kind == "note"]
            merges = len(written) - 1 - sum(c.kind == "init" for c in written)
            lines.append(
                f"{count} leaves of a reader, {name}: M writes {merges} merges; F accepts the post: {bool(posts)}"
            )
            fault = find_fault(state, world.evil, "some")
            if fault or not posts or merges > count // 3 + 2:
                faults.append(f"heads: {count}, {name}: {fault}")
    return lines, faults


HEADS = {
    "an epoch is due, M starts it": (step("M", POST, "AR"),),
    "none is due (F knew of a leave)": (step("F", TEND, "R"), step("M", POST, "FAR")),
}


def _said(row: dict[str, int | None]) -> str:
    return ", ".join(f"{name} {'never' if count is None else count}" for name, count in row.items())
