"""Metadata of an invitation whose link is to open nothing new once it is over: its author then renews the repo's secrets.

A bearer link holds the secrets of its epoch, and reads what is written there also when it is used up or revoked. Old nodes
ignore these metadata, and no rule looks at them.
"""

from typing import Final

from protocol.codec import Wire, encode


class RenewalNote(Wire, frozen=True, tag="renew1"):
    """The metadata of an `invite1`: its author starts an epoch once the link is used up or revoked."""


RENEWAL_NOTE: Final = encode(RenewalNote())
"""The one encoding."""
