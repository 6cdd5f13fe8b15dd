"""What is said of a peer's version names the side that lacks something."""

from typing import Any

import pytest

from node.observe.sentences import version_sentence, version_word


@pytest.mark.parametrize(
    "newer, older, unknown, word, sentence",
    [
        ([], [], 0, "", ""),
        (["x"], [], 0, "newer", "a newer Ravel: it has x, which this node lacks"),
        ([], ["a", "b"], 0, "older", "an older Ravel: it lacks a, b, which this node has"),
        (
            ["x"],
            ["a"],
            0,
            "another",
            "another Ravel: it has x, which this node lacks, and it lacks a, which this node has",
        ),
        ([], [], 1, "another", "another Ravel: it sent 1 message of kinds that this node does not know"),
    ],
)
def test_a_version_is_named_by_what_differs(
    newer: list[str], older: list[str], unknown: int, word: str, sentence: str
) -> None:
    peer: Any = {"newer_features": newer, "older_features": older, "unknown_messages": unknown}
    assert (version_word(peer), version_sentence(peer)) == (word, sentence)
