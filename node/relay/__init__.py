"""Service of a relay: which publications of others it keeps and forgets, and which it refuses.

Start with `relay`; quotas stand in `storage.relay`.
"""
