"""Sync of connected peers: comparing topics, fetching, relaying, and turns between them.

The conversation is a pure machine, `protocol.session.session`; `connection` performs what it says. Start with `hub`, then
`connection`. How peers are found and dialed is `node.network`'s.
"""
