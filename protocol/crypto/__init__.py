"""Keys, hashes, signatures, sealing and the handshake, each over the primitive of a library.

Start with `keys`, then `hashing` and `signing`; `noise` is the handshake of a connection.
"""
