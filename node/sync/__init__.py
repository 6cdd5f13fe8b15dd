"""What connected peers do: comparing topics, fetching, relaying, and who has the next turn.

The conversation is a pure machine, `protocol.session`; `connection` performs what it says. Start with `hub`, then
`connection`. How peers are found and dialed is `node.network`'s.
"""
