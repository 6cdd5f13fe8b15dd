"""Follows the branches that were offered to a repo and accepted."""

from node.ingest.replica import Replica
from protocol.body import Offer
from protocol.codec import DecodeError
from protocol.limits.peers import OFFERS_FOLLOWED_MAX
from protocol.links import BranchCapability, decode_branch_capability
from storage.repos.repos import Repo
from storage.repos.single_branch import add_branch_alone
from verifier.offers import find_offers


def follow_accepted(replica: Replica, repo: Repo) -> bool:
    """Follow the branches of a repo's accepted offers that are not here yet; whether any is new."""
    with replica.membership_lock:
        accepted = [one for one in find_offers(replica.membership(repo.repo_id)) if one.is_accepted]
    whole = {one.repo_id for one in replica.repos.values() if one.has_members}
    capabilities = [
        capability
        for one in accepted[-OFFERS_FOLLOWED_MAX:]
        if (capability := decode_link(one.body)) is not None
        and capability.repo not in whole
        and not all(channel.topic in replica.by_topic for channel in capability.channels)
    ]
    if not capabilities:
        return False
    with replica.change() as change:
        is_new = [add_branch_alone(replica.database, change.connection, one) for one in capabilities]
    return any(is_new)


def decode_link(offer: Offer) -> BranchCapability | None:
    """What opens the offered branch; None where the link is of no form that is known here."""
    try:
        return decode_branch_capability(offer.link)
    except DecodeError:
        return None
