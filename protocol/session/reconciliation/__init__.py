"""Set reconciliation: which commits of a topic only one of two nodes has.

- `reconciler`: the machine of one topic, which chooses a way and changes to the next. Start here.
- `symbols`: the frames of coded symbols, the first way; `riblt`: the coded symbols themselves.
- `ranges`: the frames of fingerprints of ranges, the second way; `range_items`: items, bounds and lookups.
- `set_digest`: the digest by which two nodes see that their sets differ.

When a topic is reconciled is decided in `protocol.session.comparison`. Sets are looked up through what `reconciler` and
`ranges` are given: `storage.topics` has the lookups.
"""
