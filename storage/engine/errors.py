"""Exceptions of a store: StorageError (disk full, damage, server gone), no store, another schema version."""


class StorageError(Exception):
    """The store could not be read or written: disk full, file damaged, server gone, or not a store of ours."""


class StoreLocked(StorageError):
    """Another program held the store's file for as long as a statement waits."""


class NoStore(StorageError):
    """There is no store yet; it is made when a daemon starts."""


class LostStore(StorageError):
    """The file of the rows is gone or empty, though writes in it were acknowledged; no other was made in its place."""


class NewerSchema(StorageError):
    """The store was written by a newer Ravel; it was left as it is."""


class OlderSchema(StorageError):
    """The store was written by an older Ravel, and is migrated when a daemon starts."""
