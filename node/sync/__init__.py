"""Peers: dialing and listening, connections, comparing topics, fetching, relaying, and who has the next turn.

The conversation is a pure machine, `protocol.session`; `connection` performs what it says. Start with `hub`, then `network`.
"""
