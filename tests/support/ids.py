"""Ids of given bytes, for tests that make them up. The other types are called as they are."""

from protocol.ids import BlockId, CommitId, EpochId, ObjectId


def as_commit_id(raw: bytes) -> CommitId:
    return CommitId(BlockId(raw))


def as_object_id(raw: bytes) -> ObjectId:
    return ObjectId(BlockId(raw))


def as_epoch_id(raw: bytes) -> EpochId:
    return EpochId(as_commit_id(raw))
