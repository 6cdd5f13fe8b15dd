"""Histories told to the model and to the product's pure rules, which must say the same.

A history is text, as the model reads and prints it: steps `author deed arguments < what it follows`, parted by `;`.
Users are numbers. The product judges the same operations by `verifier.membership`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.proof import checker, zoo
from tests.support.memberships import (
    KEY,
    NAME_OF,
    NAMES,
    REPO,
    Step,
    commit_id,
    make_commit,
    make_init,
    parse,
)
from tests.support.reference_membership import ADMIN, OWNER, WRITE
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.refusal import CommitRefused

BEYOND: Final = ("lend", "move", "friends", "recover")
"""Acts that the model does not have."""
PAGE: Final = Path(__file__).resolve().parents[1] / "verdicts/scenarios.txt"
SECONDS_MAX: Final = 120
"""Time to tell some thousands of histories; it takes seconds."""
_DEEDS: Final = ("remove", "remove", "grant", "link", "link", "quorum", "quorum", "act")
USERS_DRAWN: Final = 5
"""Users of random histories."""
TRACES: Final = (("small", "2", "1"), ("large", "1", "1"), ("large", "2", "40"))
"""Traces of `make proof`: menu, operations after the start, and of how many histories one is compared."""


class Outcome(NamedTuple):
    """The number of each step among those kept or None, each member's level, and which of those kept count."""

    kept: tuple[int | None, ...]
    members: dict[int, int]
    counting: tuple[bool, ...]

    @property
    def refused(self) -> set[int]:
        """Return the numbers of the steps that were refused."""
        return {number for number, kept in enumerate(self.kept) if kept is None}


def read_outcome(text: str) -> Outcome:
    """Return what the model printed of one history."""
    kept, members, counting = text.split("|")
    pairs = (pair.split(":") for pair in members.split())
    return Outcome(
        tuple(None if word == "-" else int(word) for word in kept.split()),
        {int(user): int(level) for user, level in pairs},
        tuple(word == "1" for word in counting.split()),
    )


def read_steps(text: str) -> list[Step]:
    """Return the steps of a history."""
    return [_read_step(*part.split("<")) for part in text.split(";")]


def _read_step(said: str, acks: str) -> Step:
    author, kind, *words = said.split()
    numbers = [int(word) for word in words]
    step = Step(NAMES[int(author)], kind, "", 0, tuple(map(int, acks.split())))
    match kind:
        case "found":
            return replace(step, names=tuple(NAMES[one] for one in numbers))
        case "grant" | "remove" | "propose":
            return replace(step, user=NAMES[numbers[0]], level=numbers[1])
        case "invite":
            return replace(step, level=numbers[0], uses=numbers[1], is_late=bool(numbers[2]))
        case "join" | "revoke" | "approve":
            return replace(step, target=numbers[0])
        case "quorum":
            names = tuple(NAMES[one] for one in numbers[2:])
            return replace(step, level=numbers[0], covers=bool(numbers[1]), names=names)
    return replace(step, level=numbers[0])


def write_steps(steps: Sequence[Step]) -> str:
    """Return a history as text."""
    return " ; ".join(
        f"{NAMES.index(one.author)} {_write_deed(one)} < {' '.join(map(str, one.acks))}" for one in steps
    )


def _write_deed(step: Step) -> str:
    user = NAMES.index(step.user) if step.user else 0
    names = " ".join(str(NAMES.index(name)) for name in step.names)
    match step.kind:
        case "found":
            return f"found {names}"
        case "grant" | "remove" | "propose":
            return f"{step.kind} {user} {step.level}"
        case "invite":
            return f"invite {step.level} {step.uses} {int(step.is_late)}"
        case "join" | "revoke" | "approve":
            return f"{step.kind} {step.target}"
        case "quorum":
            return f"quorum {step.level} {int(step.covers)} {names}"
    return f"act {step.level or WRITE}"


def judge(steps: Sequence[Step]) -> Outcome:
    """Return what the product says of a history. What follows a refused step is refused."""
    membership, kept = Membership(REPO), list[int | None]()
    operations = list[Operation]()
    for step in steps:
        acks = [kept[ack] for ack in step.acks]
        operation = None
        if None not in acks:
            known = tuple(ack for ack in acks if ack is not None)
            operation = _judge_step(membership, len(operations), _aim(step, kept), known)
        kept.append(None if operation is None else len(operations))
        if operation is not None:
            operations.append(operation)
    now = membership.now()
    members = {NAMES.index(NAME_OF[user]): int(level) for user, level in now.members().items()}
    here = (membership.operations[commit_id(number)] for number in range(len(operations)))
    return Outcome(tuple(kept), members, tuple(map(now.counts, here)))


def _aim(step: Step, kept: Sequence[int | None]) -> Step:
    target = kept[step.target] if step.target >= 0 else None
    return replace(
        step, target=998 if target is None and step.target >= 0 else -1 if target is None else target
    )


def _judge_step(membership: Membership, number: int, step: Step, acks: tuple[int, ...]) -> Operation | None:
    commit = make_commit(number, step.author, acks)
    body = make_init(step.names) if step.kind == "found" else step.body()
    try:
        operation = membership.authorise_root_commit(commit, body, KEY)
    except CommitRefused:
        return None
    membership.add(operation, tuple(map(commit_id, acks)))
    return operation


def random_history(random: Random, size: int) -> list[Step]:
    """Draw a history, of which some steps will be refused."""
    names = NAMES[:USERS_DRAWN]
    steps = [Step(names[0], "found", "", 0, (), names=names[: random.choice((1, 1, 2))])]
    for name in random.sample(names[1:], 3):
        steps.append(
            Step(names[0], "grant", name, random.choice((ADMIN, ADMIN, OWNER, WRITE)), (len(steps) - 1,))
        )
    deeds = random.choices(_DEEDS, k=4)  # of few kinds, so that they meet
    while len(steps) < size:
        steps.append(_random_step(random, random.choice(deeds), names, steps))
    return steps


def _random_step(random: Random, deed: str, names: Sequence[str], steps: Sequence[Step]) -> Step:
    latest = range(max(0, len(steps) - 5), len(steps))
    acks = tuple(sorted(random.sample(latest, min(len(latest), random.choice((1, 1, 1, 2, 3))))))
    step = Step(random.choice(names), "act", "", WRITE, acks)
    here = {
        kind: [number for number, one in enumerate(steps) if one.kind == kind]
        for kind in ("invite", "propose", "quorum")
    }
    user = random.choice(names)
    match deed:
        case "remove":
            return replace(step, kind=deed, user=user, level=random.choice((0, 0, 0, WRITE, ADMIN)))
        case "grant":
            return replace(step, kind=deed, user=user, level=random.choice((1, WRITE, 3, ADMIN, OWNER)))
        case "link" if here["invite"] and random.random() < 0.8:
            kind = random.choice(("join", "join", "revoke"))
            return replace(step, kind=kind, level=0, target=random.choice(here["invite"]))
        case "link":
            step = replace(step, kind="invite", level=random.choice((1, 2, 2, 4)), uses=random.choice((1, 2)))
            return replace(step, is_late=random.random() < 0.1)
        case "quorum" if here["propose"] and random.random() < 0.5:
            return replace(step, kind="approve", level=0, target=here["propose"][-1])
        case "quorum" if here["quorum"] and random.random() < 0.5:
            return replace(step, kind="propose", user=user, level=0)
        case "quorum" if here["propose"] and random.random() < 0.5:
            proposal = steps[random.choice(here["propose"])]
            return replace(step, kind="remove", user=proposal.user, level=proposal.level)
        case "quorum":
            signers = tuple(random.sample(names, 2))
            step = replace(step, kind=deed, level=random.choice((1, 1, 2, 2, 3)), names=signers)
            return replace(step, covers=random.random() < 0.8)
    return step


def scenarios(page: str) -> Iterator[tuple[str, list[Step], set[int], set[int]]]:
    """Yield title, steps, refused steps and members of each scenario of tests/verdicts/scenarios.txt."""
    for part in page.split("**\n\n```\n")[1:]:
        lines = part.split("```")[0].strip().splitlines()
        title = page.split("**\n\n```\n" + part)[0].rpartition("**")[2]
        told = [line for line in lines if not line.startswith(("refused:", "members:"))]
        refused = {int(word) for line in lines if line.startswith("refused:") for word in line.split()[1:]}
        members = {
            NAMES.index(word) for line in lines if line.startswith("members:") for word in line.split()[1:]
        }
        founding = Step("ann", "found", "", 0, (), names=("ann",))
        yield title, [founding, *parse("\n".join(told))], refused, members


def differences(program: Path, histories: Sequence[Sequence[Step]]) -> Iterator[str]:
    """Yield each history of which the model and the product say different things."""
    texts = [write_steps(steps) for steps in histories]
    lines = "".join(f"{text}\n" for text in texts)
    answers = checker.ask(program, ("tell",), text=lines, seconds=SECONDS_MAX).splitlines()
    for text, steps, answer in zip(texts, histories, answers, strict=True):
        told, judged = read_outcome(answer), judge(steps)
        if told != judged:
            yield f"{text}: model {told}, product {judged}"


def wrong_scenarios(program: Path) -> Iterator[str]:
    """Yield the scenarios of which the model says other than they do. It has no device grants and no moves."""
    told = [
        one
        for one in scenarios(PAGE.read_text(encoding="utf-8"))
        if all(step.kind not in BEYOND for step in one[1])
    ]
    lines = "".join(f"{write_steps(steps)}\n" for _, steps, _, _ in told)
    answers = checker.ask(program, ("tell",), text=lines, seconds=SECONDS_MAX).splitlines()
    for (title, _, refused, members), answer in zip(told, answers, strict=True):
        outcome = read_outcome(answer)
        if (outcome.refused, set(outcome.members)) != (refused, members):
            yield f"{title}: {outcome}"


def wrong_zoo(program: Path) -> Iterator[str]:
    """Yield the histories of the zoo of which the model says other than they do."""
    told = zoo.histories()
    lines = "".join(f"{write_steps(history.steps)}\n" for history in told)
    answers = checker.ask(program, ("tell",), text=lines, seconds=SECONDS_MAX).splitlines()
    for history, answer in zip(told, map(read_outcome, answers), strict=True):
        if (answer.refused, answer.members) != (history.refused, history.members):
            yield f"{history.title}: {answer}"


def trace_differences(program: Path, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each history that the model went through, with what the product says otherwise, or None."""
    for line in checker.ask(program, ("traces", *words)).splitlines():
        text, _, answer = line.partition(" | ")
        told, judged = read_outcome(answer), judge(read_steps(text))
        yield text, None if told == judged else f"{text}: model {told}, product {judged}"


def compare_all(program: Path, random: Random, count: int, traces: Sequence[Sequence[str]] = TRACES) -> int:
    """Compare scenarios, traces of the model and random histories; return how many. Raises ProofFailedError."""
    wrong = [*wrong_scenarios(program), *wrong_zoo(program)]
    compared = 0
    for words in traces:
        for _, difference in trace_differences(program, words):
            compared += 1
            wrong += [difference] if difference else []
    histories = [random_history(random, random.randint(6, 14)) for _ in range(count)]
    wrong += differences(program, histories)
    if wrong:
        raise checker.ProofFailedError(f"{len(wrong)} differ, the first: {min(wrong, key=len)}")
    return compared + count
