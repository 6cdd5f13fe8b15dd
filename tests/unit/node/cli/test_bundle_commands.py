"""Commands of bundles: what they say beside what they write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from node.cli.main import app
from protocol.formats.bundle import BundleEncoder


@contextmanager
def _write_bundle(*_: object, **__: object) -> Iterator[Iterator[bytes]]:
    encoder = BundleEncoder()
    yield iter([encoder.start(None), encoder.encode_end(0, 0, ())])


@pytest.mark.parametrize("absent, older, said", [(0, 0, False), (1, 0, True), (0, 2, True)])
def test_a_bundle_without_contents_that_are_not_kept_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: int, older: int, said: bool
) -> None:
    api = SimpleNamespace(
        write_bundle=_write_bundle, show_keeping=lambda _: {"absent": absent, "older_absent": older}
    )
    monkeypatch.setattr("node.cli.answers.client", lambda _context: api)
    done = CliRunner().invoke(app, ["bundle", "write", "notes", "--to", str(tmp_path / "notes.bundle")])
    assert (done.exit_code, f"contents of {absent + older} commit" in done.output) == (0, said)
