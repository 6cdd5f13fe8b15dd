"""Computes the state of offers in a repo's inbox: the latest counting answer in canonical order wins."""

from dataclasses import dataclass

from protocol.body import Answer, Offer
from verifier.membership import Membership
from verifier.operations import Operation


@dataclass(frozen=True, slots=True)
class FoundOffer:
    """An offer that counts. `is_accepted` is None while nobody has answered."""

    operation: Operation
    body: Offer
    is_accepted: bool | None


def find_offers(membership: Membership) -> list[FoundOffer]:
    """All offers that count, in the order in which they came."""
    now, operations = membership.now(), membership.operations
    found: list[FoundOffer] = []
    for one in operations.offers:
        if not isinstance(one.body, Offer) or not now.counts(one):
            continue
        is_accepted: bool | None = None
        for answer in operations.in_order(operations.answers_to(one.commit_id)):
            if isinstance(answer.body, Answer) and now.counts(answer):
                is_accepted = answer.body.accepts
        found.append(FoundOffer(one, one.body, is_accepted))
    return found
