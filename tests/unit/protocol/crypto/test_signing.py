"""Keys are made of seeds, and only topics' are remembered."""

from protocol.crypto.keys import RepoSeed, TopicSeed
from protocol.crypto.signing import key_pair, topic_key_pair


def test_no_seed_but_a_topics_is_remembered() -> None:
    """A repo's signs once, and a later copy of the memory must not hold it."""
    topic_key_pair.cache_clear()  # other tests of this process have used it
    before = topic_key_pair.cache_info()
    key_pair(RepoSeed(b"r" * 32))
    assert topic_key_pair.cache_info() == before
    seed = TopicSeed(b"t" * 32)
    assert topic_key_pair(seed) == key_pair(seed)
    assert topic_key_pair.cache_info().misses == before.misses + 1
