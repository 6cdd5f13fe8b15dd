"""Limits of the wire and storage formats: sizes and counts in blocks, objects, commits, bodies, publications, links.

All implementations share them (docs/specification/protocol.md). To change one changes what is valid.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# --- blocks and objects ---
BLOCK_SIZE_MAX: Final = MIB
"""Bytes of an encoded block. Large enough to hash at memory speed, small enough to resend after a cut."""
BLOCK_OVERHEAD_MAX: Final = 32
"""Bytes that the encoding of a block without child ids and acks adds to its ciphertext, rounded up."""
LEAF_SIZE: Final = BLOCK_SIZE_MAX - BLOCK_OVERHEAD_MAX
"""Bytes of plaintext in every leaf of an object but its last: fixed, so that equal objects give equal blocks."""
INNER_CHILD_SIZE: Final = 34 + 32
"""Bytes a child costs in an inner block: its id in clear (34 encoded) and its key in the ciphertext."""
INNER_CHILD_COUNT_MAX: Final = LEAF_SIZE // INNER_CHILD_SIZE
"""Children of one inner block: the arity that the block size allows."""
OBJECT_DEPTH_MAX: Final = 4
"""Levels of an object's tree, leaves included: 4 levels at this arity hold far more than any disk."""
OBJECT_IN_MEMORY_SIZE_MAX: Final = 64 * MIB
"""Bytes of plaintext that `build_object` and `open_object` handle at once; larger objects are streamed."""

# --- commits and bodies ---
GIVEN_UP_COUNT_MAX: Final = 1024
"""Commits that one compaction gives up: as many as an adoption names."""
ACK_COUNT_MAX: Final = 128
"""Acks of one commit. Git's widest octopus merges have 66; a wider frontier is merged by several commits."""
MARK_SIZE: Final = 8
"""Bytes of a branch's mark in a commit's block: some 10^9 branches of one epoch before two share one by chance."""
RANK_MAX: Final = 2**53 - 1
"""Largest rank: exact in every language's numbers."""
DEP_COUNT_MAX: Final = 128
"""Deps, and negative deps, of one commit."""
FILE_COUNT_MAX: Final = 128
"""Files, and negative files, that one commit names."""
FILE_SIZE_MAX: Final = 2**40
"""Bytes of one file: what a tree holds is far more, disks and patience are not."""
TANGLE_COUNT_MAX: Final = 16
"""Further tangles that one commit takes part in."""
TANGLE_KIND_SIZE_MAX: Final = 32
"""Characters of the name of a tangle kind."""
METADATA_SIZE_MAX: Final = 4 * KIB
"""Bytes of a commit's free metadata."""
COMMIT_SIZE_MAX: Final = 64 * KIB
"""Bytes of a commit's plaintext (header, content, signature): all counts above at their bound fit."""
BODY_SIZE_MAX: Final = 512 * KIB
"""Bytes of a body's plaintext; with the commit it fits one publication. Larger things are files."""
TEXT_SIZE_MAX: Final = 256 * KIB
"""Characters of a post's or an imported commit's text: at most 4 bytes each would pass BODY_SIZE_MAX, which the
encoder then refuses."""
NAME_SIZE_MAX: Final = 255
"""Characters of a name (repo, branch, author): as in file systems."""
OWNER_COUNT_MAX: Final = 64
"""Founding owners of a repo."""
FEED_SEQUENCE_MAX: Final = 2**53 - 1
"""Largest feed sequence: exact in every language's numbers."""
TIMESTAMP_MAX_MS: Final = 2**53 - 1
"""Largest timestamp, in unix milliseconds: exact in every language's numbers."""
INVITATION_USE_COUNT_MAX: Final = 10_000
"""Uses of one invitation."""

# --- membership ---
REMOVED_FEED_COUNT_MAX: Final = 4096
"""Feeds of a removed member, one for each branch, that a removal names: they fit its body."""
ADOPTED_COUNT_MAX: Final = 1024
"""Void commits that one commit adopts."""
HIDDEN_COUNT_MAX: Final = 256
"""Commits that one commit hides, or shows again: 8 KB. A node remembers each of them."""
EPOCH_BOX_COUNT_MAX: Final = 8192
"""Members for whom an init has boxes, the first by id: 256 KiB, and as much for writers. More are handed the epoch."""
EPOCH_KEY_COUNT_MAX: Final = 2048
"""Keys of earlier epochs that one commit gives: all that can be followed directly, and as many again; 140 KB."""
EPOCH_HANDED_COUNT_MAX: Final = 1500
"""Members whom one commit hands an epoch: 160 KB."""
PREKEYS_UNUSED_MAX: Final = 4
"""Prekeys that a member has stated since the last epoch: a home that was restored, and what is tried again, need so many."""
QUORUM_SIGNER_COUNT_MAX: Final = 64
"""Signers of a quorum: each removal and each checkpoint is judged by one approval of each."""
DEVICE_COUNT_MAX: Final = 16
"""Devices that one person has, the first included: more than anybody carries, and what `device add` hands repos to."""
DEVICE_GRANT_COUNT_MAX: Final = 64
"""Device grants that one member makes in a repo, ever: six new devices a year for ten years. Each removal of one
makes an epoch due for all."""
MOVE_COUNT_MAX: Final = 16
"""Moves of a chain, each of which passes on the one before: a new key twice a year for eight years. Each step of a chain is
asked for again where a right is."""
RECOVERY_FRIEND_COUNT_MAX: Final = 15
"""Friends whom a member names, and signatures of a recovery grant: each signature is verified where it is judged."""
RECOVERY_TEXT_COUNT_MAX: Final = 64
"""Repos in one text of a friend's signatures, which is a link in size."""
PROFILE_NAME_LENGTH_MAX: Final = 64
"""Characters of a person's name: at most 256 bytes."""
PROFILE_COLOR_COUNT: Final = 16
"""Colors that a person can choose from."""
PROFILE_INTERVAL_MS: Final = 60_000
"""Stated milliseconds of a span in which one statement of an author is considered."""
PROFILE_STATEMENTS_MAX: Final = 8
"""Spans of an author whose statements are considered: what a flood of them costs in memory and in work."""
LOBBY_ADMIN_COUNT_MAX: Final = OWNER_COUNT_MAX
"""Admins for whom one commit opens a lobby: its founding owners. 9 KB."""
OFFERS_OF_AUTHOR_MAX: Final = 256
"""Latest offers of one author that are considered, beside accepted ones: 5 MB if all are of the greatest length. Few
people wait for a dozen answers."""
OFFER_WITHDRAWALS_MAX: Final = 8
"""Withdrawals of one offer that are considered, the latest: a removal may void some."""
OFFER_NOTE_SIZE_MAX: Final = 1000
"""Characters of what somebody says of an offer."""

# --- publications and links ---
PUBLICATION_BLOCK_COUNT_MAX: Final = 8
"""Blocks in one publication: the commit's, its body's, and what the body of an init names."""
PUBLICATION_SIZE_MAX: Final = BLOCK_SIZE_MAX
"""Bytes of an encoded publication."""
LINK_SIZE_MAX: Final = 16 * KIB
"""Characters of a link: one that opens a branch in many epochs."""
LINK_CHANNEL_COUNT_MAX: Final = 64
"""Topics that one link to a branch opens: 130 bytes each."""
LINK_PEER_COUNT_MAX: Final = 8
"""Peers named in one link."""
LINK_HEAD_COUNT_MAX: Final = 4
"""Heads of a branch that one link names, those of highest rank: what only others stand on comes with the past."""
ADDRESS_SIZE_MAX: Final = 255
"""Characters of host:port."""
