"""The node's folder: configuration, keys and passphrases, and the lock of who runs it.

The store inside of it is `storage`'s. Start with `home`.
"""
