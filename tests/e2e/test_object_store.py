"""Exports in an object store: a real daemon, a server that speaks S3, and what the analysis reads from there."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.e2e.cluster import Peer, run_ravel
from tests.support.object_store import object_store

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_SECRET = "a secret that no log may show"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    with object_store(tmp_path / "server.log", "ravel") as address:
        yield address


@pytest.fixture
def alice(tmp_path: Path, endpoint: str) -> Iterator[Peer]:
    peer = Peer(tmp_path / "alice")
    options = f'{{ key = "alice", secret = "{_SECRET}", client_kwargs = {{ endpoint_url = "{endpoint}" }} }}'
    config = peer.home / "config.toml"
    text = config.read_text().replace('destination = ""', 'destination = "s3://ravel/of/alice"')
    config.write_text(text.replace("options = {}", f"options = {options}"))
    try:
        peer.start()
        yield peer
    finally:
        peer.close()


def test_exports_go_to_an_object_store_and_are_read_from_there(
    alice: Peer, endpoint: str, tmp_path: Path
) -> None:
    for number, text in enumerate(("a", "b", "c"), 1):
        if number == 1:
            run_ravel(alice, "repo", "create", "notes")
        run_ravel(alice, "write", "notes:main", text)
        exported = json.loads(run_ravel(alice, "export", "--json").stdout)
        assert (exported["path"], exported["commits"]) == ("s3://ravel/of/alice", number + 3)
    assert not (alice.home / "exports").exists(), "nothing is left on this machine"

    # Somebody else, with credentials in the environment. What is not there is said before Spark starts.
    options = json.dumps({"key": "bob", "secret": _SECRET, "client_kwargs": {"endpoint_url": endpoint}})
    environment = {"FSSPEC_S3": options}
    assert _rows_read(tmp_path / "read", environment) == exported["commits"]
    out = ("--out", str(tmp_path / "by-bob"))
    missing = run_ravel(alice, "analyze", "s3://ravel/of/bob", *out, code=21, environment=environment)
    assert "s3://ravel/of/bob/manifest.json is not there" in missing.stderr

    # The same with a log of Delta Lake, whose readers have drivers of their own.
    assert alice.stop() == 0
    config = alice.home / "config.toml"
    config.write_text(config.read_text().replace('format = "parquet"', 'format = "delta"'))
    alice.start()
    run_ravel(alice, "write", "notes:main", "d")
    exported = json.loads(run_ravel(alice, "export", "--json").stdout)
    keys = {"AWS_ACCESS_KEY_ID": "bob", "AWS_SECRET_ACCESS_KEY": _SECRET, "AWS_REGION": "us-east-1"}
    where = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    table = DeltaTable("s3://ravel/of/alice/kept/commits", storage_options={**keys, **where})
    assert table.to_pyarrow_table().num_rows == exported["commits"]
    assert _rows_read(tmp_path / "read again", environment) == exported["commits"]

    said = (alice.home / "daemon.log").read_text() + missing.stderr
    assert _SECRET not in said


def _rows_read(cache: Path, environment: Mapping[str, str]) -> int:
    """How many commits the analysis reads from there, in a process of its own as it does."""
    code = "import ravel.exports.fetching as f\nprint(f.read_source('s3://ravel/of/alice').rows)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment, "XDG_CACHE_HOME": str(cache)},
    )
    return int(done.stdout.splitlines()[-1])


def test_a_store_that_refuses_is_told_with_its_words_and_no_secret(alice: Peer) -> None:
    config = alice.home / "config.toml"
    config.write_text(config.read_text().replace("s3://ravel/of/alice", "s3://nobodys/of/alice"))
    assert alice.stop() == 0
    alice.start()
    done = run_ravel(alice, "export", code=19)
    assert "cannot export to s3://nobodys/of/alice" in done.stderr
    assert "bucket does not exist" in done.stderr
    assert "config show`" in done.stderr
    doctor = run_ravel(alice, "doctor").stdout
    assert "cannot export to s3://nobodys/of/alice" in doctor
    assert _SECRET not in done.stderr + doctor + (alice.home / "daemon.log").read_text()
