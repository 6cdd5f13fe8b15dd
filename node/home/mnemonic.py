"""A user's key as 24 words of BIP-39's English list: its 32 bytes, and a checksum of 8 bits.

One wrong word in 256 passes the checksum; the id that follows from the words tells then. The words are the key itself,
not BIP-39's stretched seed: nothing else is needed to have it back.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final

from mnemonic import Mnemonic

from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed
from protocol.limits.users import WORDS_SIZE_MAX

WORD_COUNT: Final = 24
_AROUND: Final = re.compile(r"^[\W\d_]+|[\W\d_]+$")
"""No letters, at the ends of a word."""


def words_of(seed: UserSeed) -> list[str]:
    """Return the 24 words of a key."""
    return _list().to_mnemonic(seed).split()


def seed_of(text: str) -> UserSeed:
    """Return the key of typed words, in any case and spacing. Raises ServiceError `bad_input`, naming the wrong word."""
    words = split_words(text[:WORDS_SIZE_MAX])
    if len(words) != WORD_COUNT:
        raise _bad(f"there are {len(words)} words, not {WORD_COUNT}")
    known = set(_list().wordlist)
    unknown = [str(place) for place, word in enumerate(words, 1) if word not in known]
    if unknown:
        raise _bad(f"not in the list: word {', '.join(unknown)}")
    try:
        return UserSeed(bytes(_list().to_entropy(words)))
    except ValueError:
        raise _bad("their checksum is wrong: a word is another, or two changed places") from None


def split_words(text: str) -> list[str]:
    """Split a text into words in lower case, without the numbers, commas and invisible marks around them."""
    normal = unicodedata.normalize("NFKD", text).lower()
    return [word for part in re.split(r"[\s,;]+", normal) if (word := _AROUND.sub("", part))]


def words_at(numbers: Sequence[int]) -> list[str]:
    """Return the words of the list at these places, from 0 to 2047."""
    return [_list().wordlist[number] for number in numbers]


@cache
def _list() -> Mnemonic:
    return Mnemonic("english")


def _bad(problem: str) -> ServiceError:
    return ServiceError("bad_input", f"these words are no key: {problem}", "compare them with the paper")
