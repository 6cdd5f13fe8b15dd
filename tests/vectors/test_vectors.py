"""The code makes exactly the committed vectors, and refuses the negative ones with their reasons."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from node.authoring.author import Author
from node.ingest.replica import Replica
from node.membership.epoch_secrets import EpochKeeper
from node.timelines.views import place_text
from protocol.hashing import epoch_read_secret, timeline_digest
from protocol.ids import RepoId, Signature, TopicKey, UserId
from protocol.keys import BlockKey, UserSeed, WriteSecret
from protocol.publication import decode_publication
from protocol.signing import BadSignature, verify_signature
from storage.commits.commits import load_timeline
from storage.repos.repos import Branch, Epoch, Repo, add_repo
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
    text = (FOLDER.parents[1] / "docs" / "protocol.md").read_text(encoding="utf-8")
    assert [reason for reason in {vector["reason"] for vector in REFUSED} if f"`{reason}`" not in text] == []


def test_no_signature_that_libraries_disagree_on_is_taken() -> None:
    cases = json.loads((FOLDER / "ed25519_speccheck.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) == 12
    for case in cases:
        key, message, signature = (bytes.fromhex(case[name]) for name in ("key", "message", "signature"))
        with pytest.raises(BadSignature):
            verify_signature(UserId(key), message, Signature(signature))


HISTORIES = ("epoch_change.json", "checkpoint_order.json")
Vector = dict[str, Any]


def load(name: str) -> Vector:
    found: Vector = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


@contextmanager
def following(folder: Path, vector: Vector) -> Iterator[Replica]:
    """A node of cat's that holds the repo's first secrets, and is given all commits of the vector in their order."""
    init = vector["commits"][0]
    repo_id, init_id, init_key = (
        bytes.fromhex(text) for text in (vector["repo_id"], init["commit_id"], init["commit_key"])
    )
    write_secret = WriteSecret(bytes.fromhex(vector["epochs"][0]["write_secret"]))
    founder = UserId(bytes.fromhex(vector["users"]["ann"]))
    repo = Repo(
        0, RepoId(repo_id), "", as_commit_id(init_id), BlockKey(init_key), 0, is_behind=False, invitation=None
    )
    with closing(Replica(folder, STORE_KEY)) as replica:
        epoch = Epoch(0, 0, as_epoch_id(init_id), founder, epoch_read_secret(write_secret), write_secret)
        with replica.change() as change:
            add_repo(replica.database, change.connection, repo, epoch)
        cat = Author(replica, UserSeed(bytes.fromhex(vector["seeds"]["cat"])), lambda: NOW_MS)
        keeper = EpochKeeper(replica, cat)
        for told in vector["commits"]:
            encoded = bytes.fromhex(told["publication"])
            topic = decode_publication(encoded).topic
            if topic not in replica.by_topic:
                keeper.store_offered_secrets(next(iter(replica.repos.values())))
            ingested = give(replica, replica.by_topic[topic], [encoded])
            accepted = sum(map(len, ingested.accepted.values()))
            assert (accepted, ingested.waiting, ingested.rejected) == (1, 0, []), told["name"]
        yield replica


@pytest.mark.slow  # a store is made, and told of all commits
@pytest.mark.parametrize("name", HISTORIES)
def test_a_node_accepts_the_histories_and_has_their_timelines(tmp_path: Path, name: str) -> None:
    vector = load(name)
    with following(tmp_path, vector) as replica:
        repo = next(iter(replica.repos.values()))
        members = replica.membership(repo.repo_id).now().members()
        assert members.keys() == {bytes.fromhex(vector["users"][member]) for member in vector["members"]}
        branch: Branch = replica.by_topic[TopicKey(bytes.fromhex(vector["epochs"][0]["main_topic"]))]
        with replica.database.read() as connection:
            rows = load_timeline(connection, branch.num, 0, 100)
    hasher = timeline_digest()
    for row in rows:
        hasher.update(row.commit_id)
    places = [place_text(row.passed, row.rank, row.commit_id) for row in rows]
    assert places == [told["place"] for told in vector["timeline"]["order"]]
    assert hasher.hexdigest() == vector["timeline"]["digest"]
