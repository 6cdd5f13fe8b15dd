"""What two keys sign that are forgotten or given away: a repo's, its founding; an invitation's, whom it admits."""

from typing import Annotated

from msgspec import Meta

from protocol import hashing, signing
from protocol.body import RepoInit
from protocol.codec import Id, Wire, encode
from protocol.content import Name
from protocol.limits import OWNER_COUNT_MAX


class _Certified(Wire, frozen=True):
    repo: Id
    name: Name
    owners: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=OWNER_COUNT_MAX)]


class _Admitted(Wire, frozen=True):
    repo: Id
    user: Id


def certify_repo(repo_seed: bytes, name: str, owners: tuple[bytes, ...]) -> bytes:
    """The repo key's one signature: over its own id, the name and the founding owners."""
    repo_id, secret = signing.key_pair(repo_seed)
    return signing.sign(secret, hashing.repo_digest(encode(_Certified(repo_id, name, owners))))


def verify_certificate(repo_id: bytes, body: RepoInit) -> None:
    """Raise BadSignature unless the repo's key certified this body."""
    digest = hashing.repo_digest(encode(_Certified(repo_id, body.name, body.owners)))
    signing.verify_signature(repo_id, digest, body.certificate)


def prove_invitation(invitation_seed: bytes, repo_id: bytes, user: bytes) -> bytes:
    """The invitation key's signature that admits `user` to the repo, and nobody else."""
    return signing.sign(
        signing.key_pair(invitation_seed)[1], hashing.invitation_digest(encode(_Admitted(repo_id, user)))
    )


def verify_invitation_proof(invitation_key: bytes, repo_id: bytes, user: bytes, proof: bytes) -> None:
    """Raise BadSignature unless the invitation's key admitted this user to this repo."""
    signing.verify_signature(
        invitation_key, hashing.invitation_digest(encode(_Admitted(repo_id, user))), proof
    )
