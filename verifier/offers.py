"""Computes the state of offers in a repo's inbox: the latest counting answer in canonical order wins.

Nothing rests on it: no right, no verdict, no order. Any member may offer, as often as it likes, so what is considered is
bounded for each author: its latest offers in canonical order, all that an admin ever accepted, and of its own answers the
latest. What is more says nothing here. All of that follows from the set of commits. Notes and links are kept of the latest
offers, and of those that were accepted while they were among these: of others the store has them. Of an offer that is no
more among the latest, and that nobody has answered, nothing is kept.
"""

from dataclasses import dataclass, field, replace
from heapq import heappush, heappushpop

from protocol.formats.body import Answer, Offer
from protocol.ids import CommitId, UserId
from protocol.limits.formats import OFFER_WITHDRAWALS_MAX, OFFERS_OF_AUTHOR_MAX
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution


@dataclass(frozen=True, slots=True)
class FoundOffer:
    """Offer that counts. `is_accepted` is None while nobody has answered."""

    operation: Operation
    body: Offer
    is_accepted: bool | None
    answers: tuple[CommitId, ...]
    """All that are considered, in canonical order, whether they count or not."""
    decided_by: CommitId | None = None
    """The answer that says so."""
    is_stripped: bool = False
    """True where the body lacks note and link, which the store has."""


@dataclass(slots=True)
class _Kept:
    """Offer, and what was answered to it: by its author a bounded number, by admins all.

    `body` is None where it was no more among the latest before it was accepted.
    """

    operation: Operation
    body: Offer | None
    answers: list[Operation] = field(default_factory=list)
    withdrawals: list[tuple[tuple[int, CommitId], Operation]] = field(default_factory=list)  # a heap


class OfferStatements:
    """Offers of one repo that are considered."""

    def __init__(self) -> None:
        self._kept: dict[CommitId, _Kept] = {}
        self._latest: dict[UserId, list[tuple[int, CommitId]]] = {}  # by author: heaps of places
        self._accepted: dict[CommitId, None] = {}  # by admins, whose right may be gone

    def add(self, operation: Operation, body: Offer, operations: Operations) -> None:
        """Consider an offer that was added to `operations`, where it has no text and no link."""
        self._kept[operation.commit_id] = _Kept(operation, body)
        places = self._latest.setdefault(operation.author, [])
        place = operations.place(operation)
        if len(places) < OFFERS_OF_AUTHOR_MAX:
            heappush(places, place)
            return
        _, gone = heappushpop(places, place)
        kept = self._kept[gone]
        if not kept.answers and not kept.withdrawals:
            del self._kept[gone]
        elif gone not in self._accepted:
            kept.body = None

    def add_answer(self, operation: Operation, operations: Operations) -> None:
        """Consider an answer that was added to `operations`."""
        assert isinstance(operation.body, Answer), "it is called so"
        offer = self._kept.get(operation.body.offer)
        if offer is None:  # it is no more among the latest
            offer = self._kept[operation.body.offer] = _Kept(operations[operation.body.offer], None)
        if operation.author != offer.operation.author or operation.body.accepts:  # only an admin accepts
            offer.answers.append(operation)
            if operation.body.accepts:
                self._accepted[offer.operation.commit_id] = None
        elif len(offer.withdrawals) < OFFER_WITHDRAWALS_MAX:
            heappush(offer.withdrawals, (operations.place(operation), operation))
        else:
            heappushpop(offer.withdrawals, (operations.place(operation), operation))

    def find_body(self, commit_id: CommitId) -> Offer | None:
        """Return the body of an offer, or None where its note and link are not kept."""
        kept = self._kept.get(commit_id)
        return None if kept is None else kept.body

    def find(self, operations: Operations, now: Resolution, *, accepted: bool = False) -> list[FoundOffer]:
        """Find all offers that count, or only those that are accepted, in canonical order: the same on all nodes.

        Costs O(offers that are considered), however many were made.
        """
        latest = () if accepted else (one for places in self._latest.values() for _, one in places)
        considered = (self._kept[one] for one in dict.fromkeys((*self._accepted, *latest)))
        counting = [_found(one, operations, now) for one in considered if now.counts(one.operation)]
        return _in_order([one for one in counting if one.is_accepted or not accepted], operations)

    def find_answered(self, operations: Operations, now: Resolution) -> list[FoundOffer]:
        """Find offers that an admin ever accepted, in canonical order; one that does not count is not accepted now."""
        answered = [_found(self._kept[one], operations, now) for one in self._accepted]
        return _in_order(
            [one if now.counts(one.operation) else replace(one, is_accepted=False) for one in answered],
            operations,
        )


def _found(one: _Kept, operations: Operations, now: Resolution) -> FoundOffer:
    is_accepted: bool | None = None
    by: CommitId | None = None
    answers = operations.in_order([*one.answers, *(late for _, late in one.withdrawals)])
    for answer in answers:
        if isinstance(answer.body, Answer) and now.counts(answer):
            is_accepted, by = answer.body.accepts, answer.commit_id
    ids = tuple(answer.commit_id for answer in answers)
    if one.body is not None:
        return FoundOffer(one.operation, one.body, is_accepted, ids, by)
    assert isinstance(one.operation.body, Offer), "it is one"
    return FoundOffer(one.operation, one.operation.body, is_accepted, ids, by, is_stripped=True)


def _in_order(found: list[FoundOffer], operations: Operations) -> list[FoundOffer]:
    return sorted(found, key=lambda one: operations.place(one.operation))
