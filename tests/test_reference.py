"""The reference pages say what the code says."""

import pytest

from tests.reference import FOLDER, pages


@pytest.mark.slow
def test_the_reference_is_what_the_code_makes() -> None:
    made = pages()
    for name, text in made.items():
        assert (FOLDER / name).read_text() == text, f"{name} is out of date: make reference"
