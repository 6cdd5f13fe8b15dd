"""Bodies that start an epoch and pass on its secrets, each secret encrypted to one member (root branch only)."""

from typing import Annotated

from msgspec import Meta

from protocol.codec import Wire
from protocol.ids import BranchId, EpochId, Mark, TopicKey, UserId
from protocol.keys import ReadSecret
from protocol.limits.formats import (
    EPOCH_BOX_COUNT_MAX,
    EPOCH_HISTORY_COUNT_MAX,
    EPOCH_TIP_COUNT_MAX,
    EPOCH_TOPIC_COUNT_MAX,
)
from protocol.sealing import SealedSecret


class BranchTopic(Wire, frozen=True):
    """A branch's topic in an epoch."""

    branch: BranchId
    topic: TopicKey


class EpochBox(Wire, frozen=True):
    """An epoch's secret for one member: the write secret, or for who may not write the read secret."""

    user: UserId
    sealed: SealedSecret


class EpochInit(Wire, frozen=True, tag="epoch-init1"):
    """Starts an epoch, whose id is this commit's. Published in an epoch before it, whose members can read it.

    `previous` are the epochs that it follows, `mark` is that of its root topic (`hashing.epoch_mark`), and `boxes` hold
    its secrets for its members. Topics are stated in the epoch itself: who is excluded reads this.
    """

    previous: Annotated[tuple[EpochId, ...], Meta(min_length=1, max_length=EPOCH_TIP_COUNT_MAX)]
    mark: Mark
    boxes: Annotated[tuple[EpochBox, ...], Meta(min_length=1, max_length=EPOCH_BOX_COUNT_MAX)]


class EpochAdd(Wire, frozen=True, tag="epoch-add1"):
    """Gives members an epoch's secrets later, or (published in the epoch itself) states its branches' topics.

    `author` and `mark` are the init's.
    """

    epoch: EpochId
    author: UserId
    mark: Mark
    topics: Annotated[tuple[BranchTopic, ...], Meta(max_length=EPOCH_TOPIC_COUNT_MAX)]
    boxes: Annotated[tuple[EpochBox, ...], Meta(max_length=EPOCH_BOX_COUNT_MAX)]


class EarlierEpoch(Wire, frozen=True):
    """What opens an epoch for reading."""

    epoch: EpochId
    author: UserId
    read_secret: ReadSecret


class EpochHistory(Wire, frozen=True, tag="epoch-history1"):
    """Opens earlier epochs to anyone who can read this one: all that it follows directly, and the latest of the others.

    Their own histories open what is before them.
    """

    earlier: Annotated[tuple[EarlierEpoch, ...], Meta(min_length=1, max_length=EPOCH_HISTORY_COUNT_MAX)]
