"""Signatures outside commits: of a founding, an admission, a recovery, the pairing of devices, a link's newest posts."""

from typing import Annotated

from msgspec import Meta

from protocol.codec import Wire, encode
from protocol.crypto import hashing, signing
from protocol.crypto.keys import InvitationSeed, RepoSeed
from protocol.formats.body import CouncilInit, Permission, RecoveryGrant, RepoInit
from protocol.formats.content import Name, UnixMilliseconds
from protocol.formats.devices import Device, DeviceEnd
from protocol.formats.links import NewestPosts, Voucher
from protocol.ids import CommitId, Digest, InvitationKey, RepoId, Signature, UserId
from protocol.limits.formats import OWNER_COUNT_MAX


class _Certified(Wire, frozen=True):
    repo: RepoId
    name: Name
    owners: Annotated[tuple[UserId, ...], Meta(min_length=1, max_length=OWNER_COUNT_MAX)]


class _CertifiedCouncil(_Certified, frozen=True):
    council: int


class _Admitted(Wire, frozen=True):
    repo: RepoId
    user: UserId


class _Vouched(Wire, frozen=True):
    repo: RepoId
    invitation: CommitId
    states: NewestPosts


class _Paired(Wire, frozen=True):
    repo: RepoId
    person: UserId
    device: UserId
    time: UnixMilliseconds


class _Recovered(Wire, frozen=True):
    repo: RepoId
    friends: CommitId
    user: UserId
    permission: Permission


def certify_repo(
    repo_seed: RepoSeed, name: str, owners: tuple[UserId, ...], council: int | None = None
) -> Signature:
    """Return the repo key's one signature: over its own id, the name, the founding owners and their council, if any."""
    repo_id, secret = signing.key_pair(repo_seed)
    return signing.sign(secret, _certified_digest(repo_id, name, owners, council))


def verify_certificate(repo_id: RepoId, body: RepoInit) -> None:
    """Raise BadSignature unless the repo's key certified this body."""
    council = body.council if isinstance(body, CouncilInit) else None
    digest = _certified_digest(repo_id, body.name, body.owners, council)
    signing.verify_signature(repo_id, digest, body.certificate)


def _certified_digest(repo_id: RepoId, name: str, owners: tuple[UserId, ...], council: int | None) -> Digest:
    stated = (
        _Certified(repo_id, name, owners)
        if council is None
        else _CertifiedCouncil(repo_id, name, owners, council)
    )
    return hashing.repo_digest(encode(stated))


def prove_invitation(invitation_seed: InvitationSeed, repo_id: RepoId, user: UserId) -> Signature:
    """Return the invitation key's signature that admits `user` to the repo, and nobody else."""
    return signing.sign(
        signing.key_pair(invitation_seed)[1], hashing.invitation_digest(encode(_Admitted(repo_id, user)))
    )


def verify_invitation_proof(
    invitation_key: InvitationKey, repo_id: RepoId, user: UserId, proof: Signature
) -> None:
    """Raise BadSignature unless the invitation's key admitted this user to this repo."""
    signing.verify_signature(
        invitation_key, hashing.invitation_digest(encode(_Admitted(repo_id, user))), proof
    )


def recovery_digest(repo_id: RepoId, friends: CommitId, user: UserId, permission: Permission) -> Digest:
    """Return what friends sign to grant a device in a member's place; `friends` is the commit that names them."""
    return hashing.recovery_digest(encode(_Recovered(repo_id, friends, user, permission)))


def verify_recovery(repo_id: RepoId, body: RecoveryGrant) -> None:
    """Raise BadSignature unless each signature holds. Whether the signers are the friends named is not checked here."""
    digest = recovery_digest(repo_id, body.friends, body.user, body.permission)
    for one in body.signatures:
        signing.verify_signature(one.friend, digest, one.signature)


def voucher_digest(repo_id: RepoId, invitation: CommitId, states: NewestPosts) -> Digest:
    """Return what the maker of a link signs of the newest posts, beside its repo and invitation."""
    return hashing.voucher_digest(encode(_Vouched(repo_id, invitation, states)))


def verify_voucher(repo_id: RepoId, invitation: CommitId, voucher: Voucher) -> None:
    """Raise BadSignature unless the maker that a voucher names signed it for this repo and invitation."""
    digest = voucher_digest(repo_id, invitation, voucher.states)
    signing.verify_signature(voucher.states.maker, digest, voucher.signature)


def device_digest(repo_id: RepoId, person: UserId, device: UserId, since: int) -> Digest:
    """Return what both sign, so that members of the repo are shown `device` as a device of `person`; `since` in unix ms."""
    return hashing.device_digest(encode(_Paired(repo_id, person, device, since)))


def device_end_digest(repo_id: RepoId, person: UserId, device: UserId, until: int) -> Digest:
    """Return the digest that either user signs to end the device's bond; `until` in unix ms."""
    return hashing.device_end_digest(encode(_Paired(repo_id, person, device, until)))


def verify_device(repo_id: RepoId, body: Device) -> None:
    """Raise BadSignature unless both said so, of two users and in this repo."""
    if body.person == body.device:
        raise signing.BadSignature("nobody is a device of its own")
    digest = device_digest(repo_id, body.person, body.device, body.since)
    signing.verify_signature(body.person, digest, body.person_signature)
    signing.verify_signature(body.device, digest, body.device_signature)


def verify_device_end(repo_id: RepoId, body: DeviceEnd) -> None:
    """Raise BadSignature unless the named user signed the end of the bond."""
    digest = device_end_digest(repo_id, body.person, body.device, body.until)
    signing.verify_signature(body.person if body.by_person else body.device, digest, body.signature)
