"""A bundle, and what is none."""

from typing import Any

from protocol.formats.bundle import BundleEncoder
from protocol.formats.publication import decode_publication
from tests.support.ids import as_commit_id


def bundle_vector(publications: list[bytes]) -> dict[str, Any]:
    """A bundle of a batch for each of these, with its parts; and others that are refused with a reason."""
    encoder, since, stands_on = BundleEncoder(), 1_790_000_000_000, as_commit_id(b"\x01" * 32)
    topics = [decode_publication(one).topic for one in publications]
    head = encoder.start(since)
    batches = [encoder.encode_batch(topic, [one]) for topic, one in zip(topics, publications, strict=True)]
    end = encoder.encode_end(len(publications), 0, [stands_on])
    whole = b"".join([head, *batches, end])
    first, second = batches
    refused = {
        "cut": whole[:-1],
        "bytes_behind": whole + b"x",
        "bad_digest": head + second + first + end,
        "out_of_turn": head + head[15:] + first + end,
        "too_large": head + b"\xff\xff\xff\xff",
        "bad_shape": head + b"\x00\x00\x00\x00",
        "not_canonical": head + b"\x19\x00\x00\x00\xdc\x00\x02" + head[20:],
        "unknown_version": whole.replace(b"bundle 1", b"bundle 2", 1),
        "not_a_bundle": b"\x89PNG" + whole,
    }
    return {
        "since": since,
        "topics": [topic.hex() for topic in topics],
        "publications": [one.hex() for one in publications],
        "stands_on": [stands_on.hex()],
        "bundle": whole.hex(),
        "refused": [{"bundle": content.hex(), "reason": reason} for reason, content in refused.items()],
    }
