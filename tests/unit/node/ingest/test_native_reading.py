"""The compiled reader gives what Python's gives, leaves it what it does not know, and is never used if it is another one."""

import ctypes
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from blake3 import blake3
from nacl import bindings
from nacl.exceptions import BadSignatureError
from structlog.testing import capture_logs

import hatch_build
from node.authoring.drafting import Draft
from node.authoring.write_queue import WriteRequest
from node.ingest import native_reading
from node.ingest.kept_windows import KeptWindows
from node.ingest.native_reading import (
    _ANSWER_SIZE_MORE,
    _DOCUMENTS_MAX,
    ITEM_SIZE_MAX,
    LIBRARY,
    Library,
    Reader,
    _answers,
    load_library,
    make_reader,
    pack_keys,
)
from node.ingest.publication_parsing import open_batch, opening_keys, settle_batch
from node.ingest.publication_reading import (
    DecodedCommit,
    OpeningKeys,
    ReadBatch,
    Unread,
    gather_claims,
    read_batch,
)
from node.runtime.blocking import threads
from node.sync.hub import Hub
from protocol.crypto.keys import BlockKey, Seed, SigningKey, UserSeed
from protocol.crypto.signing import (
    _FIELD_PRIME,
    _GROUP_ORDER,
    SMALL_ORDER_Y,
    Claim,
    check_claims,
    key_pair,
    sign,
)
from protocol.formats.body import (
    BranchAdd,
    Carried,
    Checkpoint,
    ErasedBody,
    Grant,
    RepoInit,
    UnknownBody,
    UnopenedBody,
    encode_body,
)
from protocol.formats.content import Files, Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.document_kinds import DictEdit, TextUpdate
from protocol.formats.epochs import EpochInit
from protocol.formats.publication import decode_publication, hide_key, open_hidden_key
from protocol.ids import Digest, Signature, TopicKey, UserId
from tests.fuzz.decoders import _TOPIC
from tests.fuzz.native import compare, honest_commit, publish
from tests.support.builders import World, count_accepted, timeline, writing_topic
from tests.support.forging import BAD_BODIES, Forger, bare_of, forge, later_version, sign_at_random, target_in
from tests.support.machine import fail_after, patience
from tests.support.native import credulous_library, library
from verifier.verify import Rejected

COUNT = 40
_SPECCHECK = Path(__file__).parents[3] / "vectors" / "ed25519_speccheck.json"


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpeningKeys, list[bytes]]:
    """Publications of a branch, some of which are damaged or of another topic, and what opens them."""
    world = _world(tmp_path_factory.mktemp("world") / "node")
    keys, encoded = opening_keys(world.topic()), world.publications(world.branch)
    other = world.publications(world.replica.root_branch(world.repo))[0]
    world.close()
    encoded[3] = encoded[3].replace(decode_publication(encoded[3]).signature, bytes(64))
    return keys._replace(holds_topic_key=False), [*encoded, encoded[5][:40], other]


def _world(folder: Path) -> World:
    world = World(folder)
    posts = [Draft(Post(f"post {number}")) for number in range(COUNT)]
    world.author.queue.write_group([WriteRequest(world.branch, posts)])
    return world


def _claims(count: int) -> list[Claim]:
    key, secret = key_pair(UserSeed(b"k" * 32))
    digests = [number.to_bytes(32, "big") for number in range(count)]
    claims = [Claim(key, Digest(digest), sign(secret, digest)) for digest in digests]
    return [
        claim if number % 3 else Claim(key, claim.digest, Signature(bytes(64)))
        for number, claim in enumerate(claims)
    ]


def _outcome(batch: ReadBatch) -> object:
    """Everything that becomes of a batch, in order."""
    opened = settle_batch(batch, check_claims(gather_claims(batch)))
    return [(one.publication, one.found) for one in batch.candidates], opened


def test_hashes_of_all_lengths_are_those_of_blake3() -> None:
    """At the ends of blocks, of chunks and of trees of chunks, up to what is signed for the longest commit."""
    library()
    content = bytes(number % 251 for number in range(2 * ITEM_SIZE_MAX))
    ends = [*range(0, 1024, 64), *range(1024, len(content) + 1, 1024)]
    native = ctypes.CDLL(str(LIBRARY)).ravel_hash
    native.argtypes, native.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t), None
    made = ctypes.create_string_buffer(32)
    for size in sorted(
        {near for end in ends for near in (end - 1, end, end + 1) if 0 <= near <= len(content)}
    ):
        native(made, content, size)
        assert made.raw == blake3(content[:size]).digest(), size


@pytest.mark.parametrize("count", [0, 1, 40])
def test_claims_are_checked_as_python_checks_them(count: int) -> None:
    claims = _claims(count)
    if claims:
        small = Claim(UserId(b"\1" + bytes(31)), claims[-1].digest, claims[-1].signature)
        claims += [small, claims[-1]._replace(key=UserId(bytes(32)))]
    assert Reader(library(), 1).check(claims) == Reader().check(claims) == check_claims(claims)


def test_edge_cases_of_signatures_are_refused_as_python_refuses_them() -> None:
    """S beyond the group's order, R of small order or in another encoding, and what libraries disagree on."""
    valid = _claims(2)[1]
    r, s = valid.signature[:32], int.from_bytes(valid.signature[32:], "little")
    points = [
        (y | sign << 255).to_bytes(32, "little")
        for y in (*SMALL_ORDER_Y, _FIELD_PRIME + 9, 2**255 - 1)
        for sign in (0, 1)
    ]
    signatures = [r + (s + _GROUP_ORDER).to_bytes(32, "little"), r + _GROUP_ORDER.to_bytes(32, "little")]
    signatures += [point + valid.signature[32:] for point in points]
    claims = [valid._replace(signature=Signature(one)) for one in signatures]
    claims += [valid._replace(key=UserId(point)) for point in points]
    cases = json.loads(_SPECCHECK.read_text(encoding="utf-8"))["cases"]
    for case in cases:
        key, message, signature = (bytes.fromhex(case[name]) for name in ("key", "message", "signature"))
        claims.append(Claim(UserId(key), Digest(message), Signature(signature)))
    expected = [False] * len(claims) + [True]
    assert library().check([*claims, valid]) == check_claims([*claims, valid]) == expected


def test_a_batch_is_read_as_python_reads_it(items: tuple[OpeningKeys, list[bytes]]) -> None:
    expected = read_batch(*items)
    assert expected.dropped == {"bad_publication:bad_shape": 1, "other_topic": 1}
    batch = Reader(library(), 1).read(*items)
    assert _outcome(batch) == _outcome(expected)
    checked = [one.is_checked for one in batch.candidates]
    assert checked.count(False) == 2, (
        "the branch's first commit, and what has a forged signature of the topic"
    )
    assert not checked[3]


def test_every_kind_of_publication_is_read_as_python_reads_it(tmp_path: Path) -> None:
    """Bodies of the root branch, those that no kind is said of, faults, and commits of a later format."""
    world, reader = _world(tmp_path / "node"), Reader(library(), 1)
    root = world.replica.root_branch(world.repo)
    forger = Forger(world)
    forged = [forger.write(body, metadata) for body in BAD_BODIES.values() for metadata in (b"", None)]
    world.author.start_epoch(world.repo)
    posts = world.publications(world.branch)
    written = [*world.publications(root), *posts, bare_of(posts[-1])]
    written += [*forged, later_version(world), bare_of(forged[0])]
    found = set[type]()
    checked = 0
    for topic in world.replica.topics.values():
        encoded = [item for item in written if decode_publication(item).topic == topic.topic]
        for holds_topic_key in (False, True):
            keys = opening_keys(topic)._replace(holds_topic_key=holds_topic_key)
            batch = reader.read(keys, encoded)
            assert _outcome(batch) == _outcome(read_batch(keys, encoded))
            checked += sum(one.is_checked for one in batch.candidates)
            found.update(type(one.found) for one in batch.candidates)
            found.update(
                type(one.found.body) for one in batch.candidates if isinstance(one.found, DecodedCommit)
            )
    assert checked > 2 * COUNT
    assert found >= {
        DecodedCommit,
        Unread,
        Rejected,
        RepoInit,
        EpochInit,
        BranchAdd,
        Grant,
        Checkpoint,
        Files,
        Carried,
    }
    assert found >= {UnknownBody, ErasedBody, UnopenedBody}
    assert Post not in found, "no verdict rests on it, so it is not opened"
    world.close()


def test_a_topic_whose_key_may_not_sign_is_read_by_python(tmp_path: Path) -> None:
    """Who starts an epoch states its writers' topic, and may state a key outside of the prime-order group."""
    world = _world(tmp_path / "node")
    keys, posts = opening_keys(world.topic()), world.publications(world.branch)
    target = target_in(world, world.branch)
    topic = TopicKey(_mix(keys.topic))
    first = decode_publication(posts[-1])
    key = open_hidden_key(first, target.epoch.keys.read_key)
    hidden = hide_key(target.epoch.keys.read_key, topic, first.commit_id, key)
    unsigned = msgspec.structs.replace(first, topic=topic, hidden_key=hidden)
    signature = _sign_as(topic, target.seed, unsigned.digest)
    encoded = [msgspec.structs.replace(unsigned, signature=signature).encoded]
    keys = keys._replace(topic=topic, holds_topic_key=False)
    expected = _outcome(read_batch(keys, encoded))
    assert "bad_topic_signature" in repr(expected)
    assert _outcome(Reader(library(), 1).read(keys, encoded)) == expected
    world.close()


def test_a_commit_of_an_author_whose_key_may_not_sign_is_read_by_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, seed = World(tmp_path / "node"), UserSeed(b"m" * 32)
    user, secret = key_pair(seed)
    author = UserId(_mix(user))

    def sign_as(key: SigningKey, message: bytes) -> Signature:
        return _sign_as(author, seed, message) if key == secret else sign(key, message)

    monkeypatch.setattr("protocol.crypto.signing.sign", sign_as)
    target, metadata = target_in(world, world.branch), declare_kind(Post(""))
    acks, body = (target.facts.root_id,), encode_body(Post(""))
    encoded = [forge(world, target, body, acks, secret, author=author, metadata=metadata)]
    batch = Reader(library(), 1).read(opening_keys(world.topic()), encoded)
    assert [one.is_checked for one in batch.candidates] == [False]
    assert _outcome(batch) == _outcome(read_batch(opening_keys(world.topic()), encoded))
    world.close()


def _mix(key: bytes) -> bytes:
    """A key with the point of order two added: outside of the prime-order group, and of no small order."""
    return bindings.crypto_core_ed25519_add(key, (2**255 - 20).to_bytes(32, "little"))


def _sign_as(claimed: bytes, seed: Seed, message: bytes) -> Signature:
    """A signature of such a key that libsodium takes."""
    for _ in range(99):  # each second one is
        signature = sign_at_random(seed, message, claimed)
        try:
            bindings.crypto_sign_open(signature + message, claimed)
        except BadSignatureError:
            continue
        return signature
    raise AssertionError("libsodium takes none")


def test_long_publications_are_left_to_python(tmp_path: Path) -> None:
    world, reader = World(tmp_path / "node"), Reader(library(), 1)
    forger = Forger(world)

    def write(size: int) -> bytes:
        """A publication of so many bytes: what is beside the text depends on its place in the feed."""
        text = "x" * size
        while len(item := forger.write(encode_body(Post(text)))) != size:
            text = "x" * (len(text) + size - len(item))
        return item

    keys, encoded = opening_keys(world.topic()), [write(ITEM_SIZE_MAX), write(ITEM_SIZE_MAX + 1)]
    batch = reader.read(keys, encoded)
    assert [one.is_checked for one in batch.candidates] == [True, False]
    assert _outcome(batch) == _outcome(read_batch(keys, encoded))
    world.close()


def test_what_has_no_room_for_its_answer_is_left_to_python() -> None:
    """No such room is given: it suffices for each item. Nothing is written beyond it."""
    reading, item = credulous_library(), publish(honest_commit())
    contexts, packed = reading._contexts, pack_keys(opening_keys(_TOPIC), b"", checks_topics=True)
    sodium, sizes = ctypes.byref(reading._sodium), struct.pack("=2I", len(item), len(item))

    def read(room: int) -> bytes:
        """The answers to two equal items."""
        answer = ctypes.create_string_buffer(b"\xc1" * 4096)
        size = reading._read(sodium, contexts, packed, len(packed), item + item, sizes, 2, answer, room)
        assert size <= room
        assert set(answer.raw[room:-1]) == {0xC1}
        return answer.raw[:size]

    each = (len(read(4000)) - 5) // 2
    assert each < 3 * len(item) + _ANSWER_SIZE_MORE
    for room in (*range(9), *range(9, 5 + each, 37), *range(3 + each, 9 + each), 4 + 2 * each, 5 + 2 * each):
        found = [one is not None for one in _answers.decode(read(room) or b"\x90")]
        is_short = room < 7 or room == 5 + each  # even for the byte that says that there is no answer
        assert found == ([] if is_short else [room > 5 + each, room >= 5 + 2 * each]), room


def test_commits_of_a_named_document_are_known_once_python_has_read_one(tmp_path: Path) -> None:
    world, reader = World(tmp_path / "node"), Reader(library(), 1)
    forger, edit = Forger(world), TextUpdate(b"update", ())
    names = [declare_kind(edit, f"name {number % 2}") for number in range(3)]
    keys, encoded = opening_keys(world.topic()), [forger.write(encode_body(edit), name) for name in names]
    assert [one.is_checked for one in reader.read(keys, encoded).candidates] == [False, False, False]
    batch = reader.read(keys, encoded)
    assert [one.is_checked for one in batch.candidates] == [True, True, True]
    assert _outcome(batch) == _outcome(read_batch(keys, encoded))
    for number in range(2 * _DOCUMENTS_MAX):
        reader.read(keys, [forger.write(encode_body(edit), declare_kind(edit, f"another {number}"))])
    assert len(reader._documents) == _DOCUMENTS_MAX
    world.close()


def test_edits_of_values_alone_are_decrypted_and_one_with_a_wrong_key_says_nothing(tmp_path: Path) -> None:
    world, reader = World(tmp_path / "node"), Reader(library(), 1)
    forger, edit, text = Forger(world), DictEdit.make({"k": "v"}, (), {}), TextUpdate(b"update", ())
    words, said = encode_body(edit), declare_kind(edit)
    encoded = [forger.write(words, said), forger.write(words, said, body_key=BlockKey(bytes(32)))]
    encoded.append(forger.write(encode_body(text), declare_kind(text)))
    keys = opening_keys(world.topic())
    batch = reader.read(keys, encoded)
    assert [one.is_checked for one in batch.candidates] == [True, False, True]
    bodies = [one.found.body for one in batch.candidates if isinstance(one.found, DecodedCommit)]
    assert bodies == [UnopenedBody("dict", words), UnopenedBody("dict"), UnopenedBody("text")]
    assert _outcome(batch) == _outcome(read_batch(keys, encoded))
    world.close()


def test_what_is_decrypted_counts_where_commits_are_kept_in_memory(tmp_path: Path) -> None:
    world = World(tmp_path / "node")
    edit = DictEdit.make({"k": "v" * 1000}, (), {})
    encoded = Forger(world).write(encode_body(edit), declare_kind(edit))
    windows = KeptWindows(world.replica)
    assert windows.keep(1, world.topic(), open_batch(world.topic(), [encoded]).opened) == 1
    assert [one.size for one in windows._kept[1].commits.values()] == [len(encoded) + len(encode_body(edit))]
    world.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_made_up_commits_are_read_as_python_reads_them(seed: int) -> None:
    assert compare(seed, 400) > 20


@pytest.mark.extended
def test_many_made_up_commits_are_read_as_python_reads_them_without_a_fault_of_memory(tmp_path: Path) -> None:
    checked = tmp_path / "reading.so"
    assert hatch_build.build(checked, ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
    preloaded = subprocess.run(
        ["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.native", "1", "20000", str(checked)],
        env={
            **os.environ,
            "LD_PRELOAD": preloaded.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONMALLOC": "malloc",
        },
        capture_output=True,
        text=True,
        timeout=patience(300),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout.split()[-1]) > 1000


def test_a_library_of_another_source_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library()
    other = tmp_path / "reading.c"
    other.write_bytes(native_reading.SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(native_reading, "SOURCE", other)
    with pytest.raises(OSError, match="another source"):
        Library(LIBRARY)
    with capture_logs() as logs:
        assert load_library() is None
        assert make_reader(4).count == 0, "Python reads"
    assert ["another source" in entry["error"] for entry in logs] == [True, True]


def test_where_the_library_cannot_be_loaded_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library()
    with capture_logs() as logs:
        monkeypatch.setattr("node.ingest.native_reading._sodium.__file__", str(LIBRARY))  # no libsodium
        assert make_reader(4).count == 0
        monkeypatch.setattr(native_reading, "LIBRARY", tmp_path / "reading.so")  # not built
        assert make_reader(4).count == 0
        (tmp_path / "reading.so").write_bytes(b"of another machine")
        assert make_reader(4).count == 0
        assert make_reader(0).count == 0, "as somebody chose, so that nothing is said"
    causes = ("crypto_sign_verify_detached", "No such file", "reading.so")
    for entry, cause in zip(logs, causes, strict=True):
        assert cause in entry["error"]


def test_without_a_compiler_the_build_says_what_follows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    assert not hatch_build.build(tmp_path / "reading.so")
    assert list(tmp_path.iterdir()) == []
    [said] = capfd.readouterr().err.splitlines()
    assert said.startswith("The compiled reader was not built, and the node will read by Python")


def test_without_a_library_all_is_read_by_python(items: tuple[OpeningKeys, list[bytes]]) -> None:
    batch = Reader().read(*items)
    assert _outcome(batch) == _outcome(read_batch(*items))
    assert not any(one.is_checked for one in batch.candidates)
    assert make_reader(0).count == 0


@pytest.mark.parametrize("is_native", [True, False])
async def test_a_batch_is_read_in_pieces_and_kept_in_its_order(
    is_native: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("node.sync.intake._PIECE_COUNT", 8)
    world = _world(tmp_path / "node")
    replica, branch = world.copy()
    encoded = world.publications(world.branch)
    hub = Hub(replica, threads(), lambda: 0, Reader(library(), 1) if is_native else None)
    with fail_after(30):
        ingested = await hub.intake.ingest(writing_topic(replica, branch), encoded, Done(), None)
    assert count_accepted(ingested) == len(encoded) - 1
    assert (ingested.waited, ingested.already) == (set(), 1), (
        "causes came before effects, and the root was here"
    )
    assert timeline(replica, branch) == timeline(world.replica, world.branch)
    world.close()


class Done:
    """Work before, of which nothing is left to wait for."""

    async def wait(self) -> None:
        """Return at once."""


def test_keys_show_no_secret(items: tuple[OpeningKeys, list[bytes]]) -> None:
    keys, _ = items
    assert all(one.hex() in repr(keys.openings) for one in keys.openings[0].epoch_ids)
    for opening in keys.openings:
        for secret in (opening.read_key, opening.convergence_secret, opening.key):
            for shown in (repr(keys), repr(opening)):
                assert secret is not None
                assert secret.hex() not in shown
                assert repr(secret) not in shown
