"""Limits on files that the node reads: key files, backups, Scuttlebutt logs, damaged stores."""

from typing import Final

from protocol.limits.formats import KIB, MIB

# --- keys and backups ---
KEY_FILE_SIZE_MAX: Final = 16 * KIB
"""Bytes of a file of keys: three secrets and how they are sealed take one."""
KEY_FILE_MEMORY_MAX: Final = 1024 * MIB
"""Bytes of memory that a file of keys may have us spend on deriving a key from a passphrase: four times what ours say."""
KEY_FILE_PASSES_MAX: Final = 16
"""Passes over that memory: five times what ours say, and seconds at the most memory."""
BACKUP_MANIFEST_SIZE_MAX: Final = 64 * MIB
"""Bytes of a backup's manifest, which is read whole before anything in it is believed."""
BACKUP_FILE_COUNT_MAX: Final = 400_000
"""Files that a backup's manifest names: one for each large add of files; so many fit its size."""
BACKUP_PAGES_COUNT_MAX: Final = 500
"""Files of pages that a backup names. Then the smaller half is written again as one."""
FSCK_PROBLEMS_SHOWN_MAX: Final = 1000
"""Problems that a check of a store lists; all are counted. A store that is damaged throughout has millions."""

# --- bundles ---
BUNDLE_RECORD_SIZE_MAX: Final = 2 * MIB
"""Bytes of one part of a bundle, which is held whole: a batch that is not closed yet, the largest publication, and its
headers. Whoever reads holds three of them."""
BUNDLE_COUNT_MAX: Final = 2**40
"""Commits that a bundle says to carry: more than a stick can hold."""
BUNDLE_STANDS_ON_MAX: Final = 256
"""Commits that a bundle names as those it stands on: as many as a topic's summary has heads."""
BUNDLE_PASSED_OVER_MAX: Final = 16_384
"""Commits of a bundle that this node cannot open and remembers by their ids, 2 MB: one that came by another topic of the
bundle is not said to be missing. Of more than that all are."""

# --- classic messages of Scuttlebutt (docs/research/scuttlebutt.md) ---
SSB_MESSAGE_SIZE_MAX: Final = 8192
"""UTF-16 units of a message's canonical text with its signature: the bound of the classic format."""
SSB_LINE_SIZE_MAX: Final = 128 * KIB
"""Bytes of one line of a log: a message at its bound takes 48 KiB where all is escaped, and room for everything else."""
SSB_NESTING_MAX: Final = 100
"""Lists and objects within one another. The indentation of 64 alone is over SSB_MESSAGE_SIZE_MAX."""
SSB_SEQUENCE_MAX: Final = 2**31 - 1
"""Largest sequence: the reference checks that it is a whole number of 32 bits."""
SSB_FEED_COUNT_MAX: Final = 2000
"""Feeds of one import: each becomes a branch, of which a connection joins TOPIC_COUNT_MAX topics."""
SSB_REFUSED_KEPT_MAX: Final = 100_000
"""Ids of refused messages that are remembered, to say of others that they follow one: 10 MB."""
SSB_REFUSALS_SHOWN_MAX: Final = 1000
"""Refused messages that the answer lists, the first; all are counted."""
SSB_QUEUED_COUNT_MAX: Final = 5000
"""Verified messages of all feeds that wait to be sent in batches: 50 MB. A log's feeds are interleaved."""
