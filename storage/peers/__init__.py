"""Peers that this node keeps a connection to, and the addresses where they were found.

Dialing them is `node.sync`'s. Start with `peers`.
"""
