"""Follows the branches that were offered to a repo and accepted, and reads which comments a document's branch states.

Who follows a branch by its link has not the root branch, where offers stand, but a dict of the branch (`stated_comments`).
Followers believe that as all that writers say there, follow the comment's branch by the link in it, and read the comment as
its author wrote it.

The link in an offer of commits calls the branch REPO:BRANCH, since the repo's name says which fork it is. No name of a
repo or branch that is typed has a colon.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from node.ingest.people import SHORT_ID_LENGTH, People
from node.ingest.replica import Replica, open_stored
from node.timelines.commit_fields import load_whole_blocks
from protocol.codec import DecodeError
from protocol.formats.body import Body, Offer, UnknownBody, decode_body, encode_body
from protocol.formats.links import BranchCapability, decode_branch_capability
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, BranchId, CommitId, RepoId, UserId
from protocol.limits.formats import NAME_SIZE_MAX
from protocol.limits.peers import OFFERS_FOLLOWED_MAX
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import load_rows
from storage.repos.repos import Repo, add_branch_alone
from verifier.documents import DocumentEntry
from verifier.offers import FoundOffer

log = structlog.get_logger()

_ANSWERS: Final = re.compile(r">>([a-z2-7]{51}[aq])\n")
COMMENTS_REPO: Final = "comments"
"""Name of the repo that holds what a user comments."""
STATED_COMMENTS: Final = ".comments"
"""Name of the dict of a branch's accepted comments, by the ids of their offers."""


@dataclass(frozen=True, slots=True)
class AcceptedOffer:
    """Offer that an admin accepted, as the root branch or a writer of the branch states."""

    offer_id: CommitId
    author: UserId
    body: Offer

    @classmethod
    def of(cls, found: FoundOffer) -> "AcceptedOffer":
        """Return an offer that was found in the root branch."""
        return cls(found.operation.commit_id, found.operation.author, found.body)

    @property
    def key(self) -> str:
        """Return the offer's key in STATED_COMMENTS."""
        return id_text(self.offer_id)

    def state(self) -> str:
        """Return its value in STATED_COMMENTS."""
        said = {"author": id_text(self.author), "offer": b64encode(encode_body(self.body)).decode()}
        return msgspec.json.encode(said).decode()

    @classmethod
    def parse(cls, key: str, value: str) -> "AcceptedOffer":
        """Parse an entry of STATED_COMMENTS, as any writer may have written it.

        Raises ValueError, DecodeError, msgspec.DecodeError.
        """
        said = msgspec.json.decode(value, type=dict[str, str])
        body = decode_body(b64decode(said.get("offer", ""), validate=True))
        if not isinstance(body, Offer):
            raise ValueError("it is no offer")
        return cls(CommitId(BlockId(parse_id(key))), UserId(parse_id(said.get("author", ""))), body)


def find_stated(branch_id: BranchId, entries: Mapping[str, DocumentEntry]) -> list[AcceptedOffer]:
    """Find the comments on a branch that its dict states, in the order of the statements.

    Invalid entries are passed over, and those that a merge carried here, which are about another branch.
    """
    there = [
        (entry.values[0].place, key, entry.values[0].value) for key, entry in entries.items() if entry.values
    ]
    found: list[AcceptedOffer] = []
    for _, key, value in sorted(there):
        try:
            offer = AcceptedOffer.parse(key, value or "")
        except (ValueError, DecodeError, msgspec.DecodeError):
            continue
        if offer.body.branch == branch_id and not offer.body.pulls:
            found.append(offer)
    return found


def find_accepted(replica: Replica, repo: Repo) -> list[AcceptedOffer]:
    """Find the accepted offers of a repo, in canonical order."""
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        found = membership.offers.find(membership.operations, membership.now(), accepted=True)
    return [AcceptedOffer.of(one) for one in load_stripped(replica, found)]


def load_stripped(replica: Replica, offers: list[FoundOffer]) -> list[FoundOffer]:
    """Return offers with the notes and links that are not in memory, without those whose blocks are damaged here.

    Costs O(these): an admin accepted each, late.
    """
    stripped = [one.operation.commit_id for one in offers if one.is_stripped]
    if not stripped:
        return offers
    with replica.database.read() as connection:
        rows = [*load_rows(connection, stripped).values()]
        blocks = load_whole_blocks(connection, rows)
    bodies: dict[CommitId, Body | UnknownBody] = {}
    for row in rows:
        try:
            bodies[row.commit_id] = open_stored(replica, row, blocks[row.num])[1]
        except (KeyError, DamagedBlock):
            # The others say what they say. `ravel fsck --repair` asks peers for this one.
            log.warning("a damaged offer is passed over", commit=id_text(row.commit_id))
    whole = [one for one in offers if not one.is_stripped or one.operation.commit_id in bodies]
    return [
        FoundOffer(one.operation, body, one.is_accepted, one.answers, one.decided_by)
        if one.is_stripped and isinstance(body := bodies[one.operation.commit_id], Offer)
        else one
        for one in whole
    ]


def follow_accepted(replica: Replica, repo: Repo) -> bool:
    """Follow the branches of a repo's last accepted offers that are not here yet; whether any is new."""
    return follow_offers(replica, repo, find_accepted(replica, repo)[-OFFERS_FOLLOWED_MAX:])


def follow_offers(replica: Replica, repo: Repo, offers: Sequence[AcceptedOffer]) -> bool:
    """Follow the branches of some offers to a repo that are not here yet; whether any is new. Costs O(offers)."""
    here = replica.tables.of_id
    found = [
        (one, capability)
        for one in offers
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
    capability: BranchCapability, offer: AcceptedOffer, people: People, repo_id: RepoId
) -> tuple[BranchCapability, str]:
    """Return an offer's link with the branch's own name, and what the branch's repo is called here: "mine by Bob"."""
    author = offer.author
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


def split_answer(said: str) -> tuple[str, str]:
    """Return the text of a comment, and the id of the one that it answers, or "": such a comment begins with `>>ID`."""
    match = _ANSWERS.match(said)
    return (said, "") if match is None else (said[match.end() :], match[1])
