"""Options before a command are those of one test."""

from collections.abc import Iterator

import pytest

from node.cli.hints import note_options


@pytest.fixture(autouse=True)
def _called_without_options() -> Iterator[None]:
    note_options(None, None)  # tests elsewhere call the program in this process too
    yield
    note_options(None, None)
