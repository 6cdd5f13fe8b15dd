"""The code makes exactly the committed vectors, and refuses the negative ones with their reasons."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from node.authoring.author import Author
from node.ingest.acceptance import release_more
from node.ingest.replica import Replica
from node.membership.epoch_keys import KeyTaker
from node.timelines.views import place_text
from protocol.codec import DecodeError
from protocol.crypto.epoch_boxes import BoxOpener, Sealer, own_secret
from protocol.crypto.hashing import timeline_digest
from protocol.crypto.keys import BlockKey, EpochKey, UserSeed
from protocol.crypto.signing import BadSignature, key_pair, verify_signature
from protocol.formats.bundle import BundleDecoder
from protocol.formats.publication import decode_publication
from protocol.ids import BranchId, Mark, RepoId, Signature, UserId
from storage.commits.commits import load_timeline
from storage.repos.epochs import Epoch
from storage.repos.repos import Repo, add_repo
from storage.schema.schema import commits
from tests.support.builders import NOW_MS, STORE_KEY, give
from tests.support.ids import as_commit_id, as_epoch_id
from tests.vectors.defects import open_vector
from tests.vectors.generate import FILES, render

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", FILES)
def test_the_code_makes_the_committed_vectors(name: str) -> None:
    assert render(name) == (FOLDER / name).read_text(encoding="utf-8"), (
        "run `make vectors` and read the difference"
    )


def test_every_file_is_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in readme for path in FOLDER.glob("*.json"))


REFUSED = json.loads((FOLDER / "refused.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector["defect"])
def test_what_must_be_refused_is_with_its_reason(vector: dict[str, str]) -> None:
    assert open_vector(vector) == vector["reason"]


def test_the_reasons_stand_in_the_docs() -> None:
    text = (FOLDER.parents[1] / "docs" / "specification" / "protocol.md").read_text(encoding="utf-8")
    assert [reason for reason in {vector["reason"] for vector in REFUSED} if f"`{reason}`" not in text] == []


def test_what_is_no_bundle_is_refused_with_its_reason() -> None:
    for one in load("bundles.json")["refused"]:
        decoder = BundleDecoder()
        with pytest.raises(DecodeError) as refused:
            for _ in decoder.feed(bytes.fromhex(one["bundle"])):
                pass
            decoder.finish()
        assert refused.value.reason == one["reason"]


def test_no_signature_that_libraries_disagree_on_is_taken() -> None:
    cases = json.loads((FOLDER / "ed25519_speccheck.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 12
    for case in cases:
        key, message, signature = (bytes.fromhex(case[name]) for name in ("key", "message", "signature"))
        with pytest.raises(BadSignature):
            verify_signature(UserId(key), message, Signature(signature))


def test_what_is_no_key_of_full_order_gets_no_box_and_as_a_mark_opens_nothing() -> None:
    """All encodings of points of small order, and keys of other kinds that may stand for nobody."""
    told = load("boxes.json")
    sealer = Sealer.of_epoch(
        EpochKey(bytes.fromhex(told["epoch_key"])), RepoId(bytes.fromhex(told["repo_id"]))
    )
    assert (len(told["no_users"]), len(told["no_marks"])) == (18, 14)
    for one in told["no_users"]:
        with pytest.raises(BadSignature):
            sealer.seal(UserId(bytes.fromhex(one["user"])))
    member = told["order"][0]
    user, secret = key_pair(UserSeed(bytes.fromhex(member["seed"])))
    box = bytes.fromhex(member["box"])
    for one in told["no_marks"]:
        assert BoxOpener(user, own_secret(secret), Mark(bytes.fromhex(one["mark"]))).open(box) is None, one[
            "why"
        ]


def test_each_member_opens_its_own_box_alone() -> None:
    told = load("boxes.json")
    mark, key = Mark(bytes.fromhex(told["mark"])), bytes.fromhex(told["epoch_key"])
    boxes = [bytes.fromhex(member["box"]) for member in told["order"]]
    assert (b"".join(boxes).hex(), len(boxes)) == (told["boxes"], 6)
    for place, member in enumerate(told["order"]):
        user, secret = key_pair(UserSeed(bytes.fromhex(member["seed"])))
        opener = BoxOpener(user, own_secret(secret), mark)
        assert [opener.open(box) == key for box in boxes] == [place == other for other in range(6)]


HISTORIES = (("epoch_change.json", "cat"), ("epoch_change.json", "dan"), ("checkpoint_order.json", "cat"))
Vector = dict[str, Any]


def load(name: str) -> Vector:
    found: Vector = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


@contextmanager
def following(folder: Path, vector: Vector, name: str) -> Iterator[Replica]:
    """A node of a user's that holds the founding epoch's key, and is given all commits of a vector as it follows topics."""
    init = vector["commits"][0]
    repo_id, init_id, init_key, key = (
        bytes.fromhex(text)
        for text in (vector["repo_id"], init["commit_id"], init["commit_key"], vector["epochs"][0]["key"])
    )
    repo = Repo(
        0, RepoId(repo_id), "", as_commit_id(init_id), BlockKey(init_key), 0, is_behind=False, invitation=None
    )
    with closing(Replica(folder, STORE_KEY)) as replica:
        epoch = Epoch(0, 0, RepoId(repo_id), as_epoch_id(init_id), EpochKey(key))
        with replica.change() as change:
            add_repo(replica.database, change.connection, repo, epoch)
        author = Author(replica, UserSeed(bytes.fromhex(vector["seeds"][name])), lambda: NOW_MS)
        taker = KeyTaker(replica, author)
        ahead = [bytes.fromhex(told["publication"]) for told in vector["commits"]]
        while ahead:
            known = [one for one in ahead if decode_publication(one).topic in replica.by_topic]
            assert known, "of the others nothing gives the key"
            ingested = give(replica, known)
            assert (ingested.rejected, ingested.dropped) == ([], {})
            ahead = [one for one in ahead if one not in known]
            is_new = True
            while is_new:
                while release_more(replica, NOW_MS).is_unfinished:
                    pass
                is_new = taker.take(next(iter(replica.repos.values())))
        yield replica


@pytest.mark.slow  # a store is made, and told of all commits
@pytest.mark.parametrize("name, user", HISTORIES)
def test_a_node_accepts_the_histories_and_has_their_timelines(tmp_path: Path, name: str, user: str) -> None:
    vector = load(name)
    with following(tmp_path, vector, user) as replica:
        repo = next(iter(replica.repos.values()))
        members = replica.membership(repo.repo_id).now().members()
        assert members.keys() == {bytes.fromhex(vector["users"][member]) for member in vector["members"]}
        branch = replica.tables.find_branch(repo.num, BranchId(bytes.fromhex(vector["branch"])))
        assert branch is not None, "the root branch adds it"
        with replica.database.read() as connection:
            accepted = set(connection.scalars(select(commits.c.commit_id)))
            rows = load_timeline(connection, branch.num, 0, 100)
    assert accepted == {bytes.fromhex(told["commit_id"]) for told in vector["commits"]}
    hasher = timeline_digest()
    for row in rows:
        hasher.update(row.commit_id)
    places = [place_text(row.passed, row.rank, row.commit_id) for row in rows]
    assert places == [told["place"] for told in vector["timeline"]["order"]]
    assert hasher.hexdigest() == vector["timeline"]["digest"]
