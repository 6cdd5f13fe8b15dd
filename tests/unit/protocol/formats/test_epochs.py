"""Epochs' secrets: boxes that follow from the secret, what is stated under the key, and how much fits one init."""

import pytest
from msgspec import structs

from protocol.codec import DecodeError
from protocol.crypto import hashing, signing
from protocol.crypto.epoch_boxes import (
    BOX_SIZE,
    BoxOpener,
    Sealer,
    epoch_mark,
    is_prekey,
    own_secret,
    prekey_of,
    writers_mark,
)
from protocol.crypto.keys import (
    AgreementSecret,
    ConvergenceSecret,
    EpochKey,
    TopicSeed,
    UserSeed,
    WritersSecret,
)
from protocol.crypto.signing import BadSignature
from protocol.formats.block import Reference
from protocol.formats.body import decode_body, encode_body
from protocol.formats.commit import Content, Links, create_commit
from protocol.formats.epochs import (
    NONCE_SIZE,
    EpochHand,
    EpochInit,
    EpochOpen,
    EpochStatement,
    GivenEpoch,
    HandedBox,
    open_keys,
    open_topic,
    seal_keys,
    seal_topic,
)
from protocol.formats.object import build_object
from protocol.formats.publication import create_publication, decode_publication
from protocol.ids import AgreementKey, BranchId, BranchMark, EpochId, Mark, RepoId, TopicKey, UserId
from protocol.limits.formats import EPOCH_BOX_COUNT_MAX, EPOCH_HANDED_COUNT_MAX, EPOCH_KEY_COUNT_MAX
from tests.support.ids import as_commit_id, as_epoch_id, as_object_id

REPO, OTHER = RepoId(b"r" * 32), RepoId(b"o" * 32)
KEY, SECRET = EpochKey(b"k" * 32), WritersSecret(b"w" * 32)
ANN, ANN_SECRET = signing.key_pair(UserSeed(b"a" * 32))
BEN, BEN_SECRET = signing.key_pair(UserSeed(b"b" * 32))
NONCE = bytes(NONCE_SIZE)
MARK = epoch_mark(KEY, REPO)
SEALERS = {
    "epoch": (Sealer.of_epoch(KEY, REPO), epoch_mark(KEY, REPO), KEY),
    "writers": (Sealer.of_writers(SECRET, REPO), writers_mark(SECRET, REPO), SECRET),
}


@pytest.mark.parametrize("kind", SEALERS)
def test_a_box_opens_for_its_user_and_follows_from_the_secret(kind: str) -> None:
    sealer, mark, secret = SEALERS[kind]
    assert sealer.mark == mark
    box = sealer.seal(ANN)
    assert (len(box), box) == (BOX_SIZE, sealer.seal(ANN)), "whoever holds the secret makes the same one"
    assert BoxOpener(ANN, own_secret(ANN_SECRET), mark).open(box) == secret
    for opener in (
        BoxOpener(BEN, own_secret(BEN_SECRET), mark),
        BoxOpener(ANN, own_secret(ANN_SECRET), Mark(Sealer.of_epoch(EpochKey(b"x" * 32), REPO).mark)),
    ):
        assert opener.open(box) != secret
    assert sealer.seal(BEN) != box


def test_marks_tell_secrets_of_a_repo_apart() -> None:
    other = EpochKey(b"x" * 32)
    marks = [MARK, epoch_mark(KEY, OTHER), epoch_mark(other, REPO), writers_mark(WritersSecret(KEY), REPO)]
    assert len(set(marks)) == 4


def test_keys_of_small_order_get_no_box_and_open_none() -> None:
    """A box for such a key would give the secret away, and a mark of small order opens the same for everybody."""
    identity = (1).to_bytes(32, "little")
    for user in (identity, bytes(32), b"\xff" * 32):
        with pytest.raises(BadSignature):
            SEALERS["epoch"][0].seal(UserId(user))
    for mark in (bytes(32), identity):
        assert BoxOpener(ANN, own_secret(ANN_SECRET), Mark(mark)).open(bytes(BOX_SIZE)) is None


def test_a_box_for_a_prekey_opens_with_its_private_half_alone() -> None:
    private = AgreementSecret(b"p" * 32)
    sealer, mark, secret = SEALERS["epoch"]
    box = sealer.seal(ANN, prekey_of(private))
    assert BoxOpener(ANN, private, mark).open(box) == secret
    for opener in (BoxOpener(ANN, own_secret(ANN_SECRET), mark), BoxOpener(BEN, private, mark)):
        assert opener.open(box) != secret
    assert box != sealer.seal(ANN)


def test_a_key_of_small_order_is_no_prekey() -> None:
    assert is_prekey(prekey_of(AgreementSecret(b"p" * 32)))
    field = 2**255 - 19
    for number in (0, 1, field - 1, field, field + 1):
        assert not is_prekey(AgreementKey(number.to_bytes(32, "little"))), number


def test_the_writers_topic_is_stated_under_the_key_for_one_epoch_of_one_repo() -> None:
    topic = TopicKey(b"t" * 32)
    states = EpochStatement(MARK, MARK, seal_topic(KEY, REPO, MARK, topic, NONCE))
    assert open_topic(KEY, REPO, states) == topic
    altered = bytes([states.writers_topic[0] ^ 1]) + states.writers_topic[1:]
    assert open_topic(EpochKey(b"x" * 32), REPO, states) is None
    assert open_topic(KEY, OTHER, states) is None
    assert open_topic(KEY, REPO, structs.replace(states, mark=Mark(b"m" * 32))) is None
    assert open_topic(KEY, REPO, structs.replace(states, writers_topic=altered)) is None


def test_keys_of_earlier_epochs_are_given_under_the_key_and_nothing_else_passes_for_them() -> None:
    given = tuple(GivenEpoch(as_epoch_id(bytes([n]) * 32), EpochKey(bytes([n]) * 32)) for n in range(3))
    sealed = seal_keys(KEY, REPO, MARK, given, NONCE)
    assert open_keys(KEY, REPO, MARK, sealed) == given
    assert open_keys(KEY, REPO, MARK, seal_keys(KEY, REPO, MARK, (), NONCE)) == ()
    assert open_keys(EpochKey(b"x" * 32), REPO, MARK, sealed) is None
    assert open_keys(KEY, OTHER, MARK, sealed) is None
    assert open_keys(KEY, REPO, Mark(b"m" * 32), sealed) is None
    assert open_keys(KEY, REPO, MARK, b"") is None
    topic = seal_topic(KEY, REPO, MARK, TopicKey(b"t" * 32), NONCE)
    assert open_keys(KEY, REPO, MARK, topic) is None


def test_more_keys_than_are_allowed_do_not_open_whoever_sealed_them() -> None:
    one = GivenEpoch(as_epoch_id(b"e" * 32), KEY)
    most = (one,) * EPOCH_KEY_COUNT_MAX
    assert open_keys(KEY, REPO, MARK, seal_keys(KEY, REPO, MARK, most, NONCE)) == most
    assert open_keys(KEY, REPO, MARK, seal_keys(KEY, REPO, MARK, (*most, one), NONCE)) is None


def test_what_follows_from_a_key_differs_by_use_repo_and_branch() -> None:
    branch, another = BranchId(b"b" * 32), BranchId(b"c" * 32)
    secrets = [hashing.branch_secret(KEY, one) for one in (branch, another)]
    derived = [
        hashing.epoch_read_key(KEY),
        hashing.epoch_cipher_key(KEY),
        hashing.convergence_secret(KEY),
        hashing.epoch_topic_seed(KEY, REPO),
        hashing.epoch_topic_seed(KEY, OTHER),
        hashing.writers_topic_seed(SECRET, REPO, MARK),
        hashing.writers_topic_seed(SECRET, OTHER, MARK),
        hashing.writers_topic_seed(SECRET, REPO, Mark(b"m" * 32)),
        hashing.link_topic_seed(SECRET, branch),
        hashing.link_topic_seed(SECRET, another),
        *secrets,
        *map(hashing.branch_read_key, secrets),
        *map(hashing.branch_mark, secrets),
    ]
    assert len(set(derived)) == len(derived)
    assert {len(one) for one in derived} == {8, 32}


def _decoded_size(body: EpochInit | EpochOpen | EpochHand) -> int:
    encoded = encode_body(body)
    assert decode_body(encoded) == body
    return len(encoded)


def test_as_many_as_are_allowed_are_opened_or_handed_over_and_no_more() -> None:
    given = [
        GivenEpoch(as_epoch_id(n.to_bytes(32)), EpochKey(bytes(32))) for n in range(EPOCH_KEY_COUNT_MAX + 1)
    ]
    boxes = [
        HandedBox(UserId(n.to_bytes(32)), bytes(32), bytes(32)) for n in range(EPOCH_HANDED_COUNT_MAX + 1)
    ]
    epoch = as_epoch_id(b"e" * 32)
    opened, handed = EpochOpen(tuple(given[:-1])), EpochHand(epoch, MARK, MARK, tuple(boxes[:-1]))
    assert max(_decoded_size(opened), _decoded_size(handed)) > 100_000
    for body in (EpochOpen(tuple(given)), EpochHand(epoch, MARK, MARK, tuple(boxes)), EpochOpen(())):
        with pytest.raises(DecodeError):
            decode_body(encode_body(body))


def test_an_init_for_as_many_members_as_are_allowed_fits_one_publication() -> None:
    secret = ConvergenceSecret(b"c" * 32)
    given = tuple(
        GivenEpoch(as_epoch_id(n.to_bytes(32)), EpochKey(n.to_bytes(32))) for n in range(EPOCH_KEY_COUNT_MAX)
    )
    objects = [
        build_object(content, secret)
        for content in (
            b"".join(n.to_bytes(BOX_SIZE) for n in range(EPOCH_BOX_COUNT_MAX)),
            b"".join((2**60 + n).to_bytes(BOX_SIZE) for n in range(EPOCH_BOX_COUNT_MAX)),
            seal_keys(KEY, REPO, MARK, given, NONCE),
        )
    ]
    states = EpochStatement(MARK, MARK, seal_topic(KEY, REPO, MARK, TopicKey(b"t" * 32), NONCE))
    body = EpochInit(states, *(reference for reference, _ in objects))
    reference, blocks = build_object(encode_body(body), secret)
    content = Content(
        ANN,
        BranchId(REPO),
        as_epoch_id(b"e" * 32),
        False,
        True,
        1,
        None,
        (),
        0,
        b"",
        Reference(reference.object_id, reference.key),
    )
    acks = tuple(as_commit_id(n.to_bytes(32)) for n in range(128))
    commit, own = create_commit(acks, 1, BranchMark(b"m" * 8), Links(), content, ANN_SECRET, secret)
    every = (own, *blocks, *(block for _, made in objects for block in made))
    made = create_publication(TopicSeed(b"s" * 32), hashing.epoch_read_key(KEY), commit.key, every)
    assert decode_publication(made.encoded) == made
    assert EpochId(commit.commit_id) not in {one.epoch for one in given}
    assert as_object_id(b"x" * 32) not in {block.block_id for block in every}
