"""Makes what starts an epoch, and what opens earlier ones: keys, boxes and bodies. Pure but for random secrets."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from node.authoring.choosing_heads import followed_in
from node.ingest.tables import Tables
from protocol.crypto.epoch_boxes import Sealer
from protocol.crypto.hashing import writers_topic_seed
from protocol.crypto.keys import ConvergenceSecret, EpochKey, RepoSeed, WritersSecret
from protocol.crypto.signing import public_key
from protocol.formats.block import Block
from protocol.formats.body import BranchRoot, CouncilInit, RepoInit
from protocol.formats.commit import NO_EPOCH
from protocol.formats.content import Name
from protocol.formats.epochs import (
    NONCE_SIZE,
    EpochHand,
    EpochInit,
    EpochOpen,
    EpochStatement,
    GivenEpoch,
    HandedBox,
    seal_keys,
    seal_topic,
)
from protocol.formats.object import build_object
from protocol.formats.proofs import certify_repo
from protocol.ids import CommitId, EpochId, RepoId, TopicKey, UserId
from protocol.limits.formats import EPOCH_KEY_COUNT_MAX
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo
from verifier.epochs import describe_epoch
from verifier.membership import Membership
from verifier.resolution import Resolution

_OPENED_AT_LEAST: Final = 64
"""Latest earlier epochs that an init opens by itself: who catches up takes one step for so many."""


@dataclass(frozen=True, slots=True)
class EpochStarting:
    """An epoch that is about to be started. Its id is not known before the commit is encrypted."""

    epoch: Epoch
    body: EpochInit
    blocks: tuple[Block, ...]
    """Of the objects that the body names."""

    def named(self, epoch_id: EpochId) -> Epoch:
        """Return the epoch, once it has an id."""
        return replace(self.epoch, epoch_id=epoch_id)


def make_epoch(repo_num: int, repo_id: RepoId) -> tuple[Epoch, EpochStatement]:
    """Make the secrets of a new epoch, and what its init states of them."""
    key = EpochKey(secrets.token_bytes(32))
    secret = WritersSecret(secrets.token_bytes(32))
    epoch = Epoch(0, repo_num, repo_id, NO_EPOCH, key, secret)
    mark, topic = epoch.keys.mark, find_writers_topic(epoch)
    sealed = seal_topic(key, repo_id, mark, topic, secrets.token_bytes(NONCE_SIZE))
    return epoch, EpochStatement(mark, Sealer.of_writers(secret, repo_id).mark, sealed)


def find_writers_topic(epoch: Epoch) -> TopicKey:
    """Find the writers' topic of an epoch whose writers' secret was made here."""
    assert epoch.writers_secret is not None, "it was made here"
    return public_key(writers_topic_seed(epoch.writers_secret, epoch.repo_id, epoch.keys.mark))


def make_founding(
    repo_seed: RepoSeed, name: Name, owners: tuple[UserId, ...], council: int | None = None
) -> tuple[Epoch, RepoInit]:
    """Make the founding epoch of a repo, and the body of the repo's init, with a council of so many owners or without."""
    repo_id = public_key(repo_seed)
    epoch, states = make_epoch(0, repo_id)
    certificate = certify_repo(repo_seed, name, owners, council)
    if council is None:
        return epoch, RepoInit(name, owners, certificate, states)
    return epoch, CouncilInit(name, owners, certificate, states, council)


def make_init(
    membership: Membership, tables: Tables, repo: Repo, heads: tuple[CommitId, ...], published_in: Epoch
) -> EpochStarting:
    """Make an epoch that follows these root branch heads. Costs a multiplication on the curve (60 us) for each box."""
    before = membership.at(heads)
    plan, follows = describe_epoch(before), {tip.started_epoch for tip in before.epoch_tips()}
    epoch, states = make_epoch(repo.num, repo.repo_id)
    assert epoch.writers_secret is not None, "it was just made"
    sealer, writers = (
        Sealer.of_epoch(epoch.key, repo.repo_id),
        Sealer.of_writers(epoch.writers_secret, repo.repo_id),
    )
    given = _choose_keys(membership, tables, repo, heads, published_in.epoch_id, follows)
    sealed = seal_keys(epoch.key, repo.repo_id, states.mark, given, secrets.token_bytes(NONCE_SIZE))
    secret: ConvergenceSecret = published_in.convergence_secret
    objects = [
        build_object(plaintext, secret)
        for plaintext in (
            b"".join(sealer.seal(user, before.prekey_of(user)) for user in plan.members),
            b"".join(writers.seal(user, before.prekey_of(user)) for user in plan.writers),
            sealed,
        )
    ]
    boxes, writers_boxes, keys = (reference for reference, _ in objects)
    body = EpochInit(states, boxes, writers_boxes, keys)
    blocks = {block.block_id: block for _, made in objects for block in made}
    return EpochStarting(epoch, body, tuple(blocks.values()))


def _choose_keys(
    membership: Membership,
    tables: Tables,
    repo: Repo,
    heads: tuple[CommitId, ...],
    published_in: EpochId,
    follows: set[EpochId],
) -> tuple[GivenEpoch, ...]:
    """Choose the earlier epochs that an init opens.

    Each head's own epoch opens all of that head's past (E4), so those come first and suffice. The latest epochs and all
    that it follows are given too, as far as there is room.
    """
    held = tables.held_epochs(repo.num)
    before = membership.epochs.started_within(membership.at(heads))
    latest = [one.started_epoch for one in membership.operations.in_order(before)[-_OPENED_AT_LEAST:]]
    first = [published_in, *_epochs_followed(membership, heads)]
    chosen = dict.fromkeys(one for one in [*first, *latest[::-1], *sorted(follows)] if one in held)
    chosen |= dict.fromkeys(sorted(membership.epochs.find_unopened(chosen, heads) & held.keys()))
    return _given(chosen, held)


def make_open(
    membership: Membership, tables: Tables, repo: Repo, epoch: Epoch, heads: tuple[CommitId, ...]
) -> EpochOpen | BranchRoot:
    """Make what opens in an epoch all that is closed to it in the past of some heads; else a body without words.

    Either merges root branch heads. What a head's own epoch opens (E4) is not given again.
    """
    held = tables.held_epochs(repo.num)
    closed = membership.epochs.find_unopened({epoch.epoch_id}, heads) & held.keys()
    chosen = dict.fromkeys(one for one in _epochs_followed(membership, heads) if one in closed)
    chosen |= dict.fromkeys(
        sorted(membership.epochs.find_unopened({epoch.epoch_id, *chosen}, heads) & held.keys())
    )
    return EpochOpen(_given(chosen, held)) if chosen else BranchRoot()


def _epochs_followed(membership: Membership, heads: tuple[CommitId, ...]) -> list[EpochId]:
    """Return the epochs that these heads follow (the one that a head starts, else the one that it is published in),
    each once."""
    return sorted({followed_in(membership.operations[head]) for head in heads})


def _given(chosen: Iterable[EpochId], held: Mapping[EpochId, Epoch]) -> tuple[GivenEpoch, ...]:
    """Give the keys of the first of these, as many as one commit may, in the order of ids."""
    return tuple(GivenEpoch(one, held[one].key) for one in sorted(islice(chosen, EPOCH_KEY_COUNT_MAX)))


def make_epoch_hand(
    epoch: Epoch, states: EpochStatement, users: Sequence[tuple[UserId, bool]], before: Resolution
) -> EpochHand:
    """Seal an epoch's keys for users, given with whether each may write; `before` is the past. Costs 60 us for each box."""
    sealer = Sealer.of_epoch(epoch.key, epoch.repo_id)
    writers = None
    if epoch.writers_secret is not None and epoch.writers_seed is not None:
        writers = Sealer.of_writers(epoch.writers_secret, epoch.repo_id)
    boxes = []
    for user, may_write in sorted(users):
        prekey = before.prekey_of(user)
        box = writers.seal(user, prekey) if may_write and writers else None
        boxes.append(HandedBox(user, sealer.seal(user, prekey), box))
    return EpochHand(epoch.epoch_id, states.mark, states.writers_mark, tuple(boxes))
