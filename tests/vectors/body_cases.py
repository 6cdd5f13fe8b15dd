"""One body of each kind, for `generate`."""

from protocol.crypto import signing
from protocol.crypto.epoch_boxes import Sealer, prekey_of
from protocol.crypto.keys import AgreementSecret, BlockKey
from protocol.crypto.sealed_keys import seal_key
from protocol.formats.block import Reference
from protocol.formats.body import (
    Adopt,
    Answer,
    Approve,
    Body,
    BranchAdd,
    BranchEdit,
    BranchFork,
    BranchLink,
    BranchRoot,
    Carried,
    Checkpoint,
    CouncilInit,
    DeviceGrant,
    FeedEnd,
    FriendSignature,
    Grant,
    Hide,
    Invite,
    Join,
    MembersCheckpoint,
    Merge,
    Move,
    Offer,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
    RepoInit,
    Revoke,
    Tag,
    encode_body,
)
from protocol.formats.content import Compaction, FileEntry, Files, Imported, Post
from protocol.formats.devices import Device, DeviceEnd, DevicesRepo, HandOn
from protocol.formats.document_kinds import (
    DictEdit,
    DictEntry,
    DictSnapshot,
    JsonEdit,
    JsonSnapshot,
    SaidUpdate,
    SetEdit,
    SetSnapshot,
    SnapshotEntries,
    SnapshotItems,
    TextSnapshot,
    TextUpdate,
)
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, GivenEpoch, HandedBox, Prekey
from protocol.formats.lobbies import Admission, Lobby, LobbyAdd, LobbyAnswer, LobbyBox
from protocol.formats.profiles import Profile
from protocol.formats.proofs import (
    certify_repo,
    device_digest,
    device_end_digest,
    prove_invitation,
    recovery_digest,
)
from protocol.ids import Digest, ObjectId, RepoId, UserId
from tests.support.document_edits import naming
from tests.support.ids import as_commit_id, as_epoch_id
from tests.vectors.fixed import (
    BRANCH_ID,
    EPOCH,
    EPOCH_KEY,
    INVITATION_SEED,
    MEMBER,
    MEMBER_SEED,
    NONCE,
    REPO_ID,
    REPO_SEED,
    STATEMENT,
    USER,
    USER_SECRET,
    WRITERS_SECRET,
    YJS_UPDATE,
    JsonObject,
)

SEALED_TO_MEMBER = ("hand-on", "lobby-add", "lobby-answer")


def bodies() -> list[JsonObject]:
    """One body of each kind; of those with a sealed key also who opens it, and what it is."""
    made = _of_the_core() | _of_profiles() | _of_people()
    sealed = {"member_seed": MEMBER_SEED.hex(), "author": USER.hex(), "epoch_key": EPOCH_KEY.hex()}
    return [
        {"kind": kind.rstrip("0123456789"), "encoded": encode_body(body).hex()}
        | (sealed if kind in SEALED_TO_MEMBER else {})
        for kind, body in made.items()
    ]


def _reference() -> Reference:
    return Reference(ObjectId(EPOCH), BlockKey(BRANCH_ID))


def _of_the_core() -> dict[str, Body]:
    owners = (USER,)
    key, secret = Sealer.of_epoch(EPOCH_KEY, REPO_ID), Sealer.of_writers(WRITERS_SECRET, REPO_ID)
    handed = {USER: secret.seal(USER), MEMBER: None}
    return {
        "init": RepoInit("demo", owners, certify_repo(REPO_SEED, "demo", owners), STATEMENT),
        "branch-add": BranchAdd(BRANCH_ID, "main", _reference()),
        "branch-link": BranchLink(BRANCH_ID),
        "branch-root": BranchRoot(),
        "invite": Invite(signing.public_key(INVITATION_SEED), Permission.WRITE, 1, 1_900_000_000_000),
        "join": Join(EPOCH, prove_invitation(INVITATION_SEED, REPO_ID, USER)),
        "grant": Grant(MEMBER, Permission.WRITE),
        "device-grant": DeviceGrant(MEMBER, Permission.MANAGE),
        "move": Move(MEMBER, EPOCH),
        "recovery-friends": RecoveryFriends(tuple(sorted((USER, MEMBER))), 2),
        "recovery-grant": _recovered(),
        "remove": Remove(MEMBER, None, (FeedEnd(BRANCH_ID, 3, EPOCH),)),
        "revoke": Revoke(EPOCH),
        "adopt": Adopt(BRANCH_ID, (EPOCH, as_commit_id(BRANCH_ID))),
        "epoch-init": EpochInit(
            STATEMENT,
            _reference(),
            Reference(ObjectId(as_commit_id(BRANCH_ID)), BlockKey(EPOCH)),
            Reference(ObjectId(EPOCH), BlockKey(EPOCH)),
        ),
        "epoch-open": EpochOpen((GivenEpoch(as_epoch_id(BRANCH_ID), EPOCH_KEY),)),
        "epoch-hand": EpochHand(
            EPOCH,
            STATEMENT.mark,
            STATEMENT.writers_mark,
            tuple(HandedBox(user, key.seal(user), handed[user]) for user in sorted(handed)),
        ),
        "prekey": Prekey(prekey_of(AgreementSecret(bytes([64]) * 32))),
        "post": Post("Grüße"),
    }


def _recovered() -> RecoveryGrant:
    given = EPOCH, UserId(REPO_ID), Permission.WRITE
    signature = signing.sign(signing.key_pair(MEMBER_SEED)[1], recovery_digest(REPO_ID, *given))
    return RecoveryGrant(*given, (FriendSignature(MEMBER, signature),))


def _founded_by_two() -> CouncilInit:
    owners = (USER, MEMBER)
    return CouncilInit("demo", owners, certify_repo(REPO_SEED, "demo", owners, 2), STATEMENT, 2)


def _of_profiles() -> dict[str, Body]:
    return {
        "init3": _founded_by_two(),
        "branch-edit": BranchEdit(BRANCH_ID, None, True),  # as it stands in the encoding
        "tag": Tag("1.0", BRANCH_ID, EPOCH),
        "hide": Hide(BRANCH_ID, (EPOCH, as_commit_id(BRANCH_ID)), hides=True),
        "offer": Offer(BRANCH_ID, True, "please", b"a link"),
        "answer": Answer(EPOCH, True),
        "quorum": Quorum(
            (UserId(BRANCH_ID), UserId(EPOCH)), 2, removals=True
        ),  # signers in ascending order (M13)
        "propose-checkpoint": ProposeCheckpoint(BRANCH_ID, (EPOCH, as_commit_id(REPO_ID))),
        "propose-removal": ProposeRemoval(MEMBER, Permission.READ),
        "approve": Approve(EPOCH),
        "checkpoint": Checkpoint(EPOCH),
        "members-checkpoint": MembersCheckpoint(Digest(bytes(range(32)))),
        "fork": BranchFork(BRANCH_ID, (EPOCH,)),
        "carried": Carried(BRANCH_ID, EPOCH, MEMBER, 1_790_000_000_000, encode_body(Post("hello"))),
        "merge": Merge(BRANCH_ID, (EPOCH,)),
        "imported": Imported("59931ee9", "author-0000", -1_000, "before 1970"),
        "files": Files((FileEntry("notes.txt", 7), FileEntry("Fotos/Grüße.jpg", 2**40))),
        "set": SetEdit(("Äpfel", "pears"), ("plums",), naming((EPOCH, as_commit_id(BRANCH_ID)), 3)),
        "dict": DictEdit(
            (DictEntry("colour", "grün"), DictEntry("size", "")), ("shape",), naming((EPOCH,), 2)
        ),
        "set-squeeze": SetSnapshot("", "Äpfel", (SnapshotItems(EPOCH, ("pears", "plums")),)),
        "dict-squeeze": DictSnapshot("b", None, (SnapshotEntries(EPOCH, (DictEntry("colour", "grün"),)),)),
        "json": JsonEdit(
            (DictEntry("\0titel", '"grün"'), DictEntry("\0votes", '{"add":1}')),
            ("\0shape",),
            naming((EPOCH,), 1),
        ),
        "json-squeeze": JsonSnapshot(
            "", "a", (SnapshotEntries(EPOCH, (DictEntry("\0cards", '{"list":1}'),)),)
        ),
        "compaction": Compaction((EPOCH,)),
        "text": TextUpdate(YJS_UPDATE, (EPOCH,)),
        "text-snapshot": TextSnapshot((SaidUpdate(EPOCH, YJS_UPDATE, (as_commit_id(BRANCH_ID),)),)),
    }


def _of_people() -> dict[str, Body]:
    """Devices, names and lobbies. Keys of a repo are sealed with that repo's id: of a lobby with the lobby's."""
    since = 1_790_000_000_000
    paired = device_digest(REPO_ID, USER, MEMBER, since)
    end = device_end_digest(REPO_ID, USER, MEMBER, since)
    member_secret = signing.key_pair(MEMBER_SEED)[1]
    lobby = RepoId(BRANCH_ID)
    sealed, sealed_for_lobby = (
        seal_key(USER_SECRET, MEMBER, repo, EPOCH_KEY, NONCE) for repo in (REPO_ID, lobby)
    )
    by_user, by_member = (signing.sign(secret, paired) for secret in (USER_SECRET, member_secret))
    return {
        "devices": DevicesRepo(USER),
        "hand-on": HandOn(MEMBER, REPO_ID, _reference(), EPOCH, sealed, since, by_user),
        "device": Device(USER, MEMBER, since, by_user, by_member),
        "device-end": DeviceEnd(
            USER, MEMBER, since, by_person=False, signature=signing.sign(member_secret, end)
        ),
        "profile": Profile("Zoë", 3),
        "lobby": Lobby(REPO_ID),
        "lobby-add": LobbyAdd(
            lobby, _reference(), EPOCH, EPOCH, 2, since, (LobbyBox(MEMBER, sealed_for_lobby),)
        ),
        "lobby-answer": LobbyAnswer(EPOCH, Admission(_reference(), EPOCH, sealed)),
    }
