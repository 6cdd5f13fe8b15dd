"""Prekeys (M16): which ones a member may state. `Resolution.prekey_of` says to which one boxes go, `Epochs` what E8 asks.

A member's boxes go to its newest prekey. So who copied the member's home before it was drawn opens nothing that is sealed
after it.
"""

from collections.abc import Iterable

from protocol.crypto.boxes import is_prekey
from protocol.formats.epochs import Prekey
from protocol.ids import UserId
from protocol.limits.formats import PREKEYS_UNUSED_MAX
from verifier.operations import Operation, Operations
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution


def check_prekey(
    operations: Operations, author: UserId, body: Prekey, before: Resolution, epochs: Iterable[Operation]
) -> None:
    """Raise CommitRefused unless a user may state this prekey after `before`, which has these `epochs` (M16).

    Costs O(prekeys of the user), and O(epochs) for each of them that no epoch knows.
    """
    if not is_prekey(body.key):
        raise CommitRefused("bad_prekey", "M16: a key of small order")
    latest = sorted(epochs, key=lambda one: -one.num)
    unused = [
        one
        for one in before.prekeys_of(author)
        if not any(operations.precedes(one, epoch) for epoch in latest)
    ]
    if len(unused) >= PREKEYS_UNUSED_MAX:
        raise CommitRefused("bad_prekey", "M16: too many since the last epoch")
