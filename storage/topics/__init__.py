"""What two nodes compare a topic by: difference of heads, digests and symbols, short ids.

The conversation itself is `protocol.session`. Start with `difference`.
"""
