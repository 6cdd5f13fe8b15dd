"""Comparison of topics between two nodes: difference of heads, digests and symbols, short ids.

The conversation itself is `protocol.session.session`. Start with `difference`.
"""
