"""Follows the branches that were offered to a repo and accepted.

The link in an offer of commits calls the branch REPO:BRANCH, since the repo's name says which fork it is. No name of a
repo or branch that is typed has a colon.
"""

from typing import Final

from msgspec.structs import replace

from node.ingest.people import SHORT_ID_LENGTH, People
from node.ingest.replica import Replica
from protocol.codec import DecodeError
from protocol.formats.body import Offer
from protocol.formats.links import BranchCapability, decode_branch_capability
from protocol.formats.text import id_text
from protocol.ids import RepoId
from protocol.limits.formats import NAME_SIZE_MAX
from protocol.limits.peers import OFFERS_FOLLOWED_MAX
from storage.repos.repos import Repo, add_branch_alone
from verifier.offers import FoundOffer

COMMENTS_REPO: Final = "comments"
"""Name of the repo that holds what a user comments."""


def follow_accepted(replica: Replica, repo: Repo) -> bool:
    """Follow the branches of a repo's accepted offers that are not here yet; whether any is new."""
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        accepted = membership.offers.find(membership.operations, membership.now(), accepted=True)
    here = replica.tables.of_id
    found = [
        (one, capability)
        for one in accepted[-OFFERS_FOLLOWED_MAX:]
        if (capability := decode_link(one.body)) is not None
        and not (capability.repo in here and here[capability.repo].has_members)
        and not all(channel.topic in replica.by_topic for channel in capability.channels)
    ]
    if not found:
        return False
    with replica.change() as change:
        is_new = [
            add_branch_alone(
                replica.database, change.connection, *_named(capability, one, replica.people, repo.repo_id)
            )
            for one, capability in found
        ]
    return any(is_new)


def name_offered(repo_name: str, branch_name: str) -> str:
    """Return the branch's name in the link of an offer; without the repo's name where both are too long."""
    both = f"{repo_name}:{branch_name}"
    return both if len(both) <= NAME_SIZE_MAX else branch_name


def _named(
    capability: BranchCapability, offer: FoundOffer, people: People, repo_id: RepoId
) -> tuple[BranchCapability, str]:
    """Return an offer's link with the branch's own name, and what the branch's repo is called here: "mine by Bob"."""
    author = offer.operation.author
    fork, _, branch = capability.name.rpartition(":")
    kind = (fork or branch) if offer.body.pulls else COMMENTS_REPO
    called = f"{kind} by {people.name(repo_id, author) or id_text(author)[:SHORT_ID_LENGTH]}"
    return replace(capability, name=branch or capability.name), called


def decode_link(offer: Offer) -> BranchCapability | None:
    """Return what opens the offered branch; None where the link has no form that is known here."""
    try:
        return decode_branch_capability(offer.link)
    except DecodeError:
        return None
