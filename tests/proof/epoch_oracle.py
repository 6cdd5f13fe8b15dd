"""Traces of the model of epochs, judged by the product's epoch rules with real keys and boxes (`verifier.epochs`)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from protocol.formats.epochs import EpochOpen, GivenEpoch
from tests.proof import checker, oracle
from tests.support.memberships import NAMES, USERS, commit_id
from tests.unit.verifier.test_epochs import History, epoch, key_of, make_hand
from verifier.refusal import CommitRefused

USER_COUNT: Final = 5


class Epochs(NamedTuple):
    """Clean epochs, the one in use, and by user those that are surely held; numbers of the inits."""

    clean: frozenset[int]
    used: int | None
    held: tuple[frozenset[int], ...]


def read_epochs(clean: str, used: str, held: str) -> Epochs:
    """Return what the model printed."""
    users = tuple(frozenset(map(int, one.split())) for one in held.split(","))
    return Epochs(frozenset(map(int, clean.split())), None if used.strip() == "-" else int(used), users)


def judge(text: str) -> Epochs:
    """Return what the product says of a history. Raises CommitRefused or AssertionError where it refuses a step."""
    history = History()
    for part in text.split(" ; ")[1:]:
        said, place = part.split(" @ ")
        _do(history, said, int(place))
    number_of = {commit_id(number): number for number in range(history.count)}
    used = history.written_in()
    held = (history.epochs.find_held(USERS[name]) for name in NAMES[:USER_COUNT])
    return Epochs(
        frozenset(
            number_of[commit_id(number)]
            for number in range(history.count)
            if epoch(number) in history.clean()
        ),
        None if used is None else next(number for number in range(history.count) if epoch(number) == used),
        tuple(frozenset(number_of[one.commit_id] for one in those) for those in held),
    )


def _do(history: History, said: str, into: int) -> None:
    deed, _, acks = said.partition("<")
    author, kind, *words = deed.split()
    name, after = NAMES[int(author)], tuple(map(int, acks.split()))
    number, main = history.count, into
    match kind:
        case "start":
            boxes, _, given = (tuple(map(int, group.split())) for group in " ".join(words).split("/"))
            history.start(name, *after, into=into, gives=given)
            start = history.membership.operations[commit_id(number)].start
            assert start is not None
            assert set(start.members) == {USERS[NAMES[user]] for user in boxes}
            main = number
        case "open":
            opened = sorted((epoch(int(word)), key_of(int(word))) for word in words)
            history.do(name, EpochOpen(tuple(GivenEpoch(*one) for one in opened)), *after, into=into)
        case "hand":
            main = int(words[0])
            users, writers = " ".join(words[1:]).split("/")
            handed = make_hand(
                main, *(NAMES[int(user)] for user in users.split()), by_writers=bool(writers.split())
            )
            history.do(name, handed, *after, into=into)
        case _:
            history.do(name, oracle.read_steps(said)[0].body(), *after, into=into)
    assert history.epochs.opens_all(epoch(main), (commit_id(number),)), "E4"
    assert history.epochs.is_within(epoch(into), tuple(map(commit_id, after))), "E5"


def differences(program: Path, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each history that the model went through, with what the product says otherwise, or None."""
    for line in checker.ask(program, ("epoch-traces", *words)).splitlines():
        text, *answer = line.split(" | ")
        told = read_epochs(*answer)
        try:
            judged: Epochs | str = judge(text)
        except (CommitRefused, AssertionError) as error:
            judged = f"refused: {error}"
        yield text, None if told == judged else f"{text}: model {told}, product {judged}"


def compare(program: Path, words: Sequence[str]) -> int:
    """Compare traces of the model with the product; return how many. Raises ProofFailedError."""
    compared = [difference for _, difference in differences(program, words)]
    if wrong := [difference for difference in compared if difference]:
        raise checker.ProofFailedError(f"{len(wrong)} differ, the first: {min(wrong, key=len)}")
    return len(compared)
