"""A key as words: BIP-39's own vectors, and every kind of slip of the pen."""

import random

import pytest

from node.home.mnemonic import seed_of, words_of
from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed

# From the reference vectors of BIP-39 (trezor/python-mnemonic, vectors.json).
VECTORS = {
    "00" * 32: "abandon " * 23 + "art",
    "7f"
    * 32: "legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful"
    " legal winner thank year wave sausage worth title",
    "ff" * 32: "zoo " * 23 + "vote",
    "68a79eaca2324873eacc50cb9c6eca8cc68ea5d936f98787c60c7ebc74e6ce7c": "hamster diagram private dutch cause delay"
    " private meat slide toddler razor book happy fancy gospel tennis maple dilemma loan word shrug inflict delay length",
}


@pytest.mark.parametrize("seed", VECTORS)
def test_the_words_are_those_of_the_standard(seed: str) -> None:
    assert words_of(UserSeed(bytes.fromhex(seed))) == VECTORS[seed].split()
    assert seed_of(VECTORS[seed]) == bytes.fromhex(seed)


def test_case_and_spacing_do_not_matter() -> None:
    words = words_of(UserSeed(b"k" * 32))
    assert seed_of("  " + " \t".join(word.upper() for word in words) + " \n") == b"k" * 32


@pytest.mark.parametrize(
    "form",
    ["{0} {1}\n", "{0}. {1}\r\n", "{0:2}) {1:<8}  ", "{1}, ", "{1};", "- {1}\n", "\ufeff{0}:\t{1}\u200b\n"],
)
def test_words_are_read_as_people_write_them(form: str) -> None:
    words = words_of(UserSeed(b"k" * 32))
    assert seed_of("".join(form.format(place, word) for place, word in enumerate(words, 1))) == b"k" * 32


@pytest.mark.parametrize("count", [0, 12, 23, 25, 100_000])
def test_another_number_of_words_is_said(count: int) -> None:
    with pytest.raises(ServiceError, match="words, not 24"):
        seed_of("zoo " * count)


def test_which_word_is_unknown_is_said_and_the_word_is_not() -> None:
    words = words_of(UserSeed(b"k" * 32))
    words[6] = "xyzzy"
    with pytest.raises(ServiceError, match="word 7") as caught:
        seed_of(" ".join(words))
    assert "xyzzy" not in caught.value.message


@pytest.mark.slow
def test_one_wrong_word_passes_one_time_in_256_and_gives_another_key() -> None:
    rng = random.Random(1)
    seed = UserSeed(rng.randbytes(32))
    words, known = (
        words_of(seed),
        sorted({word for _ in range(200) for word in words_of(UserSeed(rng.randbytes(32)))}),
    )
    changes = [(rng.randrange(24), rng.choice(known)) for _ in range(1000)]
    changed = [[*words[:place], word, *words[place + 1 :]] for place, word in changes if words[place] != word]
    taken = [found for found in map(_seed_or_none, changed) if found is not None]
    assert seed not in taken
    assert 1 <= len(taken) <= 20, "some 4 of 1000"


def _seed_or_none(words: list[str]) -> bytes | None:
    try:
        return seed_of(" ".join(words))
    except ServiceError:
        return None
