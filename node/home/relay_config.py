"""Configuration section [relay]: whether to keep others' topics, whose, and the size limits."""

from dataclasses import dataclass
from typing import Final

ANYONE: Final = "anyone"
KNOWN: Final = "known"
ACCEPT_CHOICES: Final = (ANYONE, KNOWN)


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """[relay]: sizes are MiB of publications; `peer_` bounds one peer, `subnet_` strangers of one subnet together."""

    enabled: bool = False
    accept: str = ANYONE
    size_max: int = 10_240
    topic_size_max: int = 1_024
    peer_size_max: int = 4_096
    subnet_size_max: int = 8_192
    peer_topics_max: int = 10_000
    subnet_topics_max: int = 20_000


RELAY_NUMBERS: Final = (
    "size_max",
    "topic_size_max",
    "peer_size_max",
    "subnet_size_max",
    "peer_topics_max",
    "subnet_topics_max",
)
"""Its keys that are numbers."""
RELAY_KEYS: Final = ("enabled", "accept", *RELAY_NUMBERS)

RELAY_TEXT: Final = """\
[relay]
# Whether this node keeps topics for others, which it cannot open. Who dials it has it keep what they follow.
enabled = false
# Who may add topics: "anyone", or "known", the peers that this node dials and those of `ravel relay allow`. Anyone who names
# a topic that is kept is served, and may publish on it, either way.
accept = "anyone"
# MiB that are kept at most: of all topics, of one topic, of what one peer brought, of what strangers from one subnet (24
# bits of an IPv4 address, 48 of an IPv6 one) brought together. When all is full, topics are forgotten, those of strangers
# first, then the longest untouched; `ravel relay pin` excepts one.
size_max = 10240
topic_size_max = 1024
peer_size_max = 4096
subnet_size_max = 8192
# Topics that one peer, and that strangers from one subnet together, may add.
peer_topics_max = 10000
subnet_topics_max = 20000
"""
