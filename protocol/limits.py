"""Every bound on what a peer or a file can make this node hold, with its unit and its reason.

Nothing here is tuned at run time: a value that two nodes must share to accept the same commits (marked *protocol*) may
change only with the format version; the others protect this node alone.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# --- blocks and objects (protocol) ---
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

# --- commits (protocol) ---
ACK_COUNT_MAX: Final = 128
"""Acks of one commit. Git's widest octopus merges have 66; a wider frontier is merged by several commits."""
IMPLIED_ACK_VISITS_MAX: Final = 10_000
"""Latest ancestors among which an implied ack is looked for (V6): what one commit may cost to judge."""
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
SET_ITEM_SIZE_MAX: Final = 1024
"""Characters of an item of a set: a name, an id, a tag. Larger things are posts or files."""
SET_EDIT_COUNT_MAX: Final = 1024
"""Items that one commit adds to a set, and items that it deletes; BODY_SIZE_MAX may be reached before."""
DICT_KEY_SIZE_MAX: Final = 255
"""Characters of a key of a dict: as of a name."""
DICT_VALUE_SIZE_MAX: Final = 16 * KIB
"""Characters of a value of a dict, which is replaced whole each time."""
DICT_EDIT_COUNT_MAX: Final = 256
"""Values that one commit puts into a dict, and keys that it erases; BODY_SIZE_MAX may be reached before."""
SQUEEZED_COUNT_MAX: Final = 8 * KIB
"""Commits whose words one squeeze says again: with these, names and short items fill most of a body."""
TEXT_UPDATE_SIZE_MAX: Final = 384 * KIB
"""Bytes of one Yjs update. With what a snapshot names, and with the origin of a carried commit, it is a body."""
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

REMOVED_FEED_COUNT_MAX: Final = 4096
"""Feeds of a removed member, one for each branch, that a removal names: they fit its body."""
ADOPTED_COUNT_MAX: Final = 1024
"""Void commits that one commit adopts."""
EPOCH_TIP_COUNT_MAX: Final = 1024
"""Epochs that one epoch names as those it follows; the others it follows too. 35 KB."""
EPOCH_TOPIC_COUNT_MAX: Final = 2500
"""Branches whose topics one commit names: 170 KB. Those of more are added by further commits."""
EPOCH_BOX_COUNT_MAX: Final = 1500
"""Members for whom one commit has boxes: 213 KB, so that with tips and topics it is a body. More get theirs by others."""
EPOCH_HISTORY_COUNT_MAX: Final = 2048
"""Earlier epochs that one commit opens: all that can be followed directly, and as many again; 210 KB."""

QUORUM_SIGNER_COUNT_MAX: Final = 64
"""Signers of a quorum: each removal and each checkpoint is judged by one approval of each."""

DEVICE_COUNT_MAX: Final = 16
"""Devices that one person has, the first included: more than anybody carries, and what `device add` hands repos to."""

GROWTH_COMMIT_COUNT_MAX: Final = 100_000
"""Commits that are looked at to tell how the store has grown: 0.1 seconds."""
GROWTH_DAY_COUNT_MAX: Final = 30
"""Days that are told of it."""

OFFER_NOTE_SIZE_MAX: Final = 1000
"""Characters of what somebody says of an offer."""
OFFERS_FOLLOWED_MAX: Final = 1000
"""Accepted offers of one repo whose branches a node follows, the latest."""
MERGED_COUNT_MAX: Final = 20_000
"""Commits that one merge of branches carries over: some seconds of writing, in one transaction."""
FORK_DEPTH_MAX: Final = 64
"""Branches that fork from one another whose commits are looked at to merge or to show one."""
STATE_COUNT_MAX: Final = 200_000
"""Commits of a branch and what it continues that are held to merge or to show it: about 100 MB."""
DOCUMENT_SIZE_MAX: Final = 64 * MIB
"""Bytes of the bodies that a set or a dict is reduced from, and of a text's standing updates, held while it is answered."""
DOCUMENT_WORD_COUNT_MAX: Final = 500_000
"""Words that a set or a dict is reduced from, 300 bytes each while it is answered."""
DOCUMENT_WORDS_KEPT_MAX: Final = 100_000
"""Words, names and commits that are remembered once opened, for all branches' sets and dicts, and for all texts: 40 MB."""
DOCUMENT_SQUEEZE_COUNT_MAX: Final = 1000
"""Squeezes that a set or a dict is reduced with: each is compared with every other. 64 are as large as a document may be."""
TEXT_SNAPSHOT_AFTER: Final = 64
"""Standing updates of a text at which the next push merges them into a snapshot: half the names that one can hold."""
TEXT_WORKERS_MAX: Final = 2
"""Processes that merge texts at a time, each of at most a gigabyte; more wait for their turn."""
TEXT_MERGE_SECONDS: Final = 60.0
"""Seconds after which a process that merges a text is given up: bad updates cost it most of them."""
DOCUMENT_WINDOW_MAX: Final = 1000
"""Items of a set, or entries of a dict, in one answer."""

# --- the wire ---
PUBLICATION_BLOCK_COUNT_MAX: Final = 8
"""Blocks in one publication: the commit's and its body's."""
PUBLICATION_SIZE_MAX: Final = BLOCK_SIZE_MAX
"""Bytes of an encoded publication."""
BATCH_COUNT_MAX: Final = 1024
"""Publications in one message: what is verified and stored in one transaction, so that one wait for the disk serves all."""
BATCH_SIZE_TARGET: Final = 512 * KIB
"""Bytes after which a sender closes a batch: the last publication of one may pass it."""
FRAME_SIZE_MAX: Final = PUBLICATION_SIZE_MAX + BATCH_SIZE_TARGET
"""Bytes of one frame: a batch that is not closed yet, and the largest publication."""
BATCHES_IN_FLIGHT_MAX: Final = 4
"""Batches sent on one connection without a receipt: back-pressure reaches the sender's store, not its memory."""
BATCHES_OF_TOPIC_MAX: Final = BATCHES_IN_FLIGHT_MAX - 1
"""The same of one topic, so that a huge one leaves room for others: one is read, one checked and one stored at a time."""
TOPIC_COUNT_MAX: Final = 4096
"""Topics announced in one message, and topics joined on one connection."""
SUMMARY_HEAD_COUNT_MAX: Final = 64
"""Heads named in one summary, 1 KB: as much as to find twenty differences by reconciliation, which finds what more leave
open. Of a topic with more the newest are named."""
SUMMARY_ROUND_MAX: Final = 4
"""Summaries of one topic on one session after the first: each follows a reconciliation that may have missed something."""
WANT_COUNT_MAX: Final = 256
"""Commit ids asked for in one message."""
WANTED_COUNT_MAX: Final = 100_000
"""Commit ids asked for on one session, each once on a topic: 10 MB to remember; beyond it a reconnect starts afresh."""
FETCHED_COUNT_MAX: Final = 4
"""Blocks of files asked for on one connection and not answered yet: of 1 MiB each, so what a peer can have in memory."""
VARIANTS_WANTED_MAX: Final = 8
"""Publications of one commit, the latest, with which a relay answers who wants it: a question of 32 bytes."""
INTRODUCED_COUNT_MAX: Final = 16
"""Peers named in one introduction: twice as many as a node wants of a repo."""
INTRODUCED_TOPIC_COUNT_MAX: Final = 256
"""Topics of one connection on which introductions are made: repos that both follow."""
INTRODUCED_TO_ONE_MAX: Final = 256
"""Addresses told on one topic of one connection, each once: 20 KB to remember, and more than enough."""
INTRODUCTIONS_SENT_AT_ONCE_MAX: Final = 4
"""Introductions sent on one topic without a pause; one more for each keep-alive since."""
INTRODUCTIONS_TAKEN_AT_ONCE_MAX: Final = 8
"""Introductions taken on one topic without a pause; two more for each keep-alive since, for streams stall."""
REASON_SIZE_MAX: Final = 200
"""Characters of the reason in a goodbye."""

# --- reconciliation ---
SYMBOL_PREFIX_LENGTH_MIN: Final = 64
"""Symbols kept of a small topic: 1.5 KB, which decode 40 differences."""
SYMBOL_PREFIX_LENGTH_MAX: Final = 65_536
"""Symbols kept of a large topic (*protocol*): 1.5 MB, which decode 48,000 differences; more is for ranges to find."""
SYMBOL_FRAME_COUNT_MAX: Final = 4096
"""Coded symbols in one frame: 96 KiB, so that other topics get their turn between two."""
SHORT_ID_FRAME_COUNT_MAX: Final = 4096
"""Short ids of lacking commits in one frame: 64 KiB."""
RECONCILIATION_FRAME_COUNT_MAX: Final = 1024
"""Frames of one reconciliation that one side takes: twice what ranges may need."""
RECONCILIATION_WAITING_MAX: Final = 32
"""Frames of one reconciliation that wait to be worked on: a prefix comes in 17, of 96 KiB each."""
RECONCILIATIONS_MAX: Final = 8
"""Topics of one connection that are reconciled at a time, and so kept in memory: 1 GB of a million commits each."""
RECONCILIATION_QUIET_CHECKS_MAX: Final = 6
"""Checks (30 seconds apart) without a frame from the peer after which a reconciliation has stalled: what it keeps here is
much, and a peer needs a minute for its first symbols of millions of commits."""
RANGE_FRAME_SIZE_MAX: Final = 256 * KIB
"""Bytes of one frame of ranges; what does not fit is said in the next."""
RANGE_FRAME_COUNT_MAX: Final = 512
"""Frames of ranges that one side sends in one reconciliation: 128 MiB, which spells out four million ids."""
RANGE_DIFFERENCE_COUNT_MAX: Final = 1_000_000
"""Ids that one reconciliation by ranges may find to differ: 100 MB in memory."""
RANGE_SET_KEPT_COUNT_MAX: Final = 2_000_000
"""Ids of a topic up to which a reconciliation by ranges keeps them in memory, sorted, until it is over: 250 MB, of the 1 GB
that RECONCILIATIONS_MAX allow. Larger sets are read again for each frame, at the peer's cost."""
RANGE_PENDING_COUNT_MAX: Final = 200_000
"""Ranges that wait to be compared: 50 MB. Honest peers leave some ten thousand for each of five levels."""

# --- this node ---
HANDSHAKE_TIMEOUT_SECONDS: Final = 10.0
"""Seconds a handshake may take: strangers hold nothing longer."""
HANDSHAKE_MESSAGE_SIZE_MAX: Final = 1024
"""Bytes of one handshake message."""
IDLE_TIMEOUT_SECONDS: Final = 90.0
"""Seconds without any frame after which a connection is closed; a keep-alive is sent at a third of it."""
SEND_TIMEOUT_SECONDS: Final = 30.0
"""Seconds one write may wait for a peer that does not read."""
BACKLOG_SIZE_MAX: Final = 256 * MIB
"""Bytes of batches, of all connections, that have come and are not stored yet; beyond it none is read from. A relay of 2,048
peers would else hold 12 GiB."""
OUTGOING_COUNT_MAX: Final = 3 * TOPIC_COUNT_MAX
"""Messages that wait to be written to one peer, which is cut off beyond: a summary of each topic is most of them."""
OUTGOING_SIZE_MAX: Final = 32 * MIB
"""Bytes of them: four batches, four blocks, the answers of eight reconciliations and a summary of each topic are 30 MB."""
FRAMES_WITHOUT_YIELD_MAX: Final = 32
"""Frames of one read after which other tasks get a turn: a millisecond. One read brings 1,450 of the smallest."""
KEEP_ALIVES_AT_ONCE_MAX: Final = 16
"""Keep-alives taken without a pause; one more for each KEEP_ALIVE_SECONDS since. Honest peers send one in 30 seconds, and
a line that stalls delivers a few together."""
KEEP_ALIVE_SECONDS: Final = 5.0
MESSAGES_AT_ONCE_MAX: Final = 4 * TOPIC_COUNT_MAX
"""Messages of all kinds taken without a pause; MESSAGES_PER_SECOND_MAX more for each second since. A peer that meets with
TOPIC_COUNT_MAX topics says some of each."""
MESSAGES_PER_SECOND_MAX: Final = 500
"""Messages a second, which take some 2 % of a processor to read. A writer's single commits are fewer: each batch that is in
flight waits for its receipt."""
SLICE_SECONDS: Final = 0.05
"""Seconds of the processor that a peer's work takes the lock for writing, and others' turn, at a time: an API write waits
for one such slice at most."""
SLICE_VISITS_MAX: Final = 5000
"""Commits that are walked over in one slice, by which it ends after the commit that is judged: what SLICE_SECONDS allow."""
FRAME_SECONDS: Final = 20e-6
"""Seconds of the processor that a frame is charged: it takes so long to open, decode and look at the smallest."""
BYTE_SECONDS: Final = 10e-9
"""Seconds of the processor that each byte of it is charged besides."""
SIGNATURE_SECONDS: Final = 80e-6
"""Seconds of the processor that a signature is charged, which is checked in a process of its own."""
FRUITLESS_FORGIVEN_SHARE: Final = 0.1
"""Part of a processor that a peer may use for nothing, for ever: an honest one with thousands of topics compares them
at each connection."""
FRUITLESS_SLOWED_SECONDS: Final = 5.0
"""Seconds of work that came to nothing after which a peer is read from more slowly."""
FRUITLESS_SLOWED_SHARE: Final = 0.25
"""Part of a processor that its work takes from then on."""
SLOWED_PAUSE_SECONDS_MAX: Final = 5.0
"""Seconds of one pause between two frames that are read from it: far below what it takes to be idle."""
FRUITLESS_SECONDS_MAX: Final = 30.0
"""Seconds of such work after which it is left, until all but FRUITLESS_SLOWED_SECONDS are forgiven: four minutes."""
ACCOUNTS_MAX: Final = 4096
"""Peers, and networks of strangers, whose use is remembered: twice a relay's connections; 2 MB."""
COMPARED_AT_ONCE_MAX: Final = 3
"""Looks into the store for peers at a time, of the eight workers that local requests use, too."""
CONNECTIONS_MAX: Final = 128
"""Connections accepted from others at a time."""
KNOWN_PLACES_SHARE: Final = 4
"""This part (a quarter) of them is kept for peers that are configured, learned of, or have shown that they know a branch."""
HALF_OPEN_MAX: Final = 64
"""Connections whose handshake has not ended; the newest takes the place of an old one of the host that has most. An honest
handshake takes three times the way there and back, some tenths of a second."""
HANDSHAKE_ACCEPT_SECONDS: Final = 5.0
"""Seconds for which one of them lasts: half of HANDSHAKE_TIMEOUT_SECONDS, which a dialer grants on a slow line."""
STRANGER_IDLE_SECONDS: Final = 120.0
"""Seconds after which a stranger without a common topic is left: time for a repo to be made or opened on either side."""
RELAY_CONNECTIONS_MAX: Final = 2048
"""The same for a relay, which is there for others."""
CONNECTIONS_PER_HOST_SHARE: Final = 4
"""One host, or IPv6 network of 64 bits, has at most this part (a quarter) of the connections accepted from others."""
ADDRESSES_MAX: Final = 1024
"""Addresses that a node knows by introductions and from its local network: 500 KB."""
ADDRESSES_PER_REPO_MAX: Final = 128
"""Of them, those of one repo's peers: many times what is dialed."""
ADDRESSES_PER_TELLER_MAX: Final = 64
"""Of them, those that one peer has told: two liars do not fill a repo's places with what nobody answers at."""
ADDRESSES_PER_PEER_MAX: Final = 4
"""Of them, those of one peer: where it was, where it is, in two networks."""
ADDRESS_FAILURES_MAX: Final = 3
"""Dials that fail after which an address at which nobody proved the key is dropped: all that a victim gets for one key."""
REACHED_FAILURES_MAX: Final = 8
"""The same for an address where the peer has been reached; counted while others answer, for this node may be offline."""
ADDRESS_BARRED_SECONDS: Final = 24 * 3600.0
"""Seconds for which an address that was dropped is not learned again."""
ADDRESSES_BARRED_MAX: Final = 4096
"""Dropped addresses that are remembered; while there are so many, no other is learned."""
HOST_TRIES_MAX: Final = 8
"""Dials of learned addresses at one host in HOST_TRIES_SECONDS that lead nowhere: all a victim gets."""
HOST_TRIES_SECONDS: Final = 3600.0
HOSTS_TRIED_MAX: Final = 1024
"""Hosts whose tries are counted; while there are so many, no learned address of another host is dialed."""
ADDRESS_UNREACHED_SECONDS: Final = 24 * 3600.0
"""Seconds after which an address is forgotten that nobody told again or was reached at."""
ADDRESS_REACHED_SECONDS: Final = 30 * 24 * 3600.0
"""The same for an address where the peer was reached."""
REACHED_PEERS_MAX: Final = 2048
"""Peers whose address and time of last contact are kept, the latest: twice what is learned. 400 KB."""
LEARNED_DIALS_AT_ONCE_MAX: Final = 4
"""Learned addresses that are dialed at a time."""
LEARNED_CONNECTIONS_MAX: Final = 32
"""Connections to learned addresses at a time."""
LEARNED_PEERS_WANTED: Final = 8
"""Peers of one repo up to which learned ones are dialed: enough that commits spread and that some stay."""
LEARNED_PAUSE_MIN_SECONDS: Final = 15.0
LEARNED_PAUSE_MAX_SECONDS: Final = 3600.0
"""Seconds between two dials of one learned address, doubled from the first to the second."""
LAN_ROTATION_SECONDS: Final = 3600.0
"""Seconds after which a node is announced on its local network anew, by another name and mark."""
LAN_SIGHTINGS_MAX: Final = 1024
"""Addresses heard on the local network that are looked at in that time: each is hashed with every key that is known."""
LAN_LINE_SIZE_MAX: Final = 4 * KIB
"""Bytes of one line of the process that listens there."""
LAN_PAUSE_MIN_SECONDS: Final = 5.0
LAN_PAUSE_MAX_SECONDS: Final = 300.0
"""Seconds before that process is started again after it has ended by itself, doubled from the first to the second."""
PENDING_COUNT_MAX: Final = 10_000
"""Commits per topic that wait for their causes; beyond it those that come are dropped, and come again when topics are
compared."""
PENDING_SIZE_MAX: Final = 64 * MIB
"""Bytes of publications per topic that wait for their causes."""
PENDING_CAUSE_COUNT_MAX: Final = 100_000
"""Causes per topic that are waited for, counted for each commit: ten of each, where honest ones lack two. 3 MB of rows."""
PENDING_AUTHOR_SHARE: Final = 2
"""One author has at most this part (a half) of the room for what waits on a topic: one flood leaves room for the others."""
PENDING_SENDERS_MAX: Final = 20_000
"""Waiting commits of which it is remembered which peers sent them, so as not to send them back: 4 MB."""
RELEASED_COUNT_MAX: Final = 64
"""Commits that waited and are judged in one transaction beside what came: 50 ms, in which nobody else writes."""
RELEASED_SIZE_MAX: Final = 4 * MIB
"""Bytes of their publications, unless the first alone has more."""
RELEASED_CAUSE_COUNT_MAX: Final = 10_000
"""Causes of waiting commits that are crossed off in one transaction: 50 ms."""
EPOCH_SECRETS_SAID_MAX: Final = 4
"""Secrets that are kept as those of one epoch, while nobody can tell which are right."""
EPOCHS_VOID_MAX: Final = 16
"""Epochs of one author that do not count and are read all the same: what honest members wrote there does count."""
EPOCHS_UNKNOWN_MAX: Final = 256
"""Epochs of one repo whose secrets are kept before their inits are here; more are taken up as these come."""
UNREAD_SENT_MAX: Final = 1000
"""Commits of a format version not known here that are sent on when a topic is joined, the oldest."""
TIMELINE_WAITING_COUNT_MAX: Final = 10_000
"""Commits of a timeline in memory that lack causes; as many as wait in a branch's store. What comes beyond is refused."""
TANGLE_WAITING_COUNT_MAX: Final = 10_000
"""Commits that a tangle in memory sets aside until what they follow has come; as many as wait in a branch's store."""
TANGLE_SHOWN_COMMITS_MAX: Final = 100_000
"""Commits that are read to show a tangle: some seconds, and 100 MB while the answer is made."""
TANGLE_WINDOW_MAX: Final = 10_000
"""Commits of a tangle in one answer."""
FEED_FORKS_SHOWN_MAX: Final = 100
"""Forked places of feeds in one answer: an author can make as many as it likes, and one is enough."""
FEED_FORK_COMMITS_SHOWN_MAX: Final = 16
"""Commits of one forked place in one answer: two are evidence."""
REJECTION_COUNT_MAX: Final = 10_000
"""Rejections remembered per branch; the oldest are forgotten first."""
FETCH_TIMEOUT_SECONDS: Final = 60.0
"""Seconds that a peer may take to answer for blocks, or to send anything else of use; then others are asked."""
FETCH_SECONDS_MAX: Final = 600.0
"""Seconds that it may take for a block whatever else it sends: four blocks and a window of batches on a line of 20 KB/s."""
BODIES_LOOK_SECONDS: Final = 1.0
"""Seconds after which it is looked again whether a peer is there, or late, that may have bodies which are awaited."""
FETCH_WINDOW_COUNT_MAX: Final = 16
"""Blocks of a file that are fetched together, from all peers that have them, before the first is read: 16 MiB in memory."""
AWAITED_ASKED_COUNT_MAX: Final = 4096
"""Damaged commits that peers are asked for together: 128 KiB of ids, and what they send for them in the pause after."""
AWAITED_PAUSE_SECONDS: Final = 5.0
"""Seconds between two times that peers are asked for what was damaged: they come and go, and need time to send."""
RELAY_TOPIC_COUNT_MAX: Final = 100_000
"""Topics that a relay keeps: 30 MB in memory."""
SUBNET_IPV4_BITS: Final = 24
SUBNET_IPV6_BITS: Final = 48
"""Bits of an address that name the place it is at, where strangers are bounded together: what one customer is given."""
STALLED_SECONDS: Final = 10
"""Seconds without a receipt after which status calls a topic stalled. SEND_TIMEOUT_SECONDS ends what moves no byte."""
DIAL_BACKOFF_MIN_SECONDS: Final = 0.5
DIAL_BACKOFF_MAX_SECONDS: Final = 60.0
"""Seconds between two dials of a peer that does not answer: doubled from the first to the second."""
UPLOADS_MAX: Final = 4
"""Files taken in at a time: each holds a few pieces of 4 MiB; more wait for their turn."""
FILE_WINDOW_MAX: Final = 1000
"""Files of one listing."""
IMPORTED_SECONDS_MAX: Final = 2**42
"""Unix seconds, before or after 1970, of an imported item: 139,000 years; in milliseconds still exact in JSON."""
IMPORT_BATCH_COUNT_MAX: Final = 1000
"""Items of one import request."""
CHANGES_KEPT_MAX: Final = 100_000
"""Removes, returns and moves that are kept per branch, the newest: 10 MB. Who stopped before them gets a snapshot."""
EDIT_WINDOW_MAX: Final = 1000
"""Edits in one answer."""
EDIT_POSITIONS_MAX: Final = 10_000
"""Edits up to now that are looked at to tell positions: half a second. Who is further behind reads the timeline anew."""
EVENT_STREAMS_MAX: Final = 1024
"""Event streams that are served at once: four fifths of the connections, so that commands are always answered."""
EVENT_WINDOW: Final = 64
"""Edits read at once for an event stream."""
EVENT_WINDOW_SIZE: Final = MIB
"""Bytes of commits in them, unless the first alone has more: what one stream holds that is not read. All: 1 GiB."""
EVENT_PAUSE_SECONDS: Final = 0.2
"""Seconds between two looks at the store for one event stream, while it keeps changing."""
EVENT_SILENCE_SECONDS: Final = 15.0
"""Seconds after which an event stream without news says that it is there."""
EVENT_SEND_SECONDS: Final = 30.0
"""Seconds one write of an event stream may wait for who does not read; then it is cut, and resumes by its last id."""
PAGE_CODES_MAX: Final = 8
"""Codes for the web page that are good at once: each is used within a moment."""
PAGE_CODE_SECONDS: Final = 60
"""Seconds for which such a code is good: as long as a browser takes to start."""
API_CONNECTIONS_MAX: Final = EVENT_STREAMS_MAX + 256
"""Connections to the local API that are served at once; more wait for one to end. An application needs a few."""
DUPLICATE_SECONDS: Final = 30.0
"""Seconds within which two connections of the same two nodes count as dialed at once, and not as one after the other."""
API_STRANGERS_MAX: Final = 64
"""Connections among them that have not shown the token: a page that is opened, and probes. One more ends the oldest."""
API_STRANGER_SECONDS: Final = 10.0
"""Seconds in which a request on such a connection must have come whole, or shown the token: it needs milliseconds."""
PAGE_CODE_BODY_SIZE_MAX: Final = KIB
"""Bytes of the one request body that is read without the token: a code has 32 characters."""
OPEN_FILES_WANTED: Final = 4096
"""Files and sockets that the daemon may have open: all connections to its API and of peers, a relay's too, and 768 more."""
LINK_SIZE_MAX: Final = 16 * KIB
"""Characters of a link: one that opens a branch in many epochs."""
LINK_CHANNEL_COUNT_MAX: Final = 64
"""Topics that one link to a branch opens: 130 bytes each."""
LINK_PEER_COUNT_MAX: Final = 8
"""Peers named in one link."""
ADDRESS_SIZE_MAX: Final = 255
"""Characters of host:port."""
KEY_FILE_SIZE_MAX: Final = 16 * KIB
"""Bytes of a file of keys: three secrets and how they are sealed take one."""
KEY_FILE_MEMORY_MAX: Final = 1024 * MIB
"""Bytes of memory that a file of keys may have us spend on deriving a key from a passphrase: four times what ours say."""
KEY_FILE_PASSES_MAX: Final = 16
"""Passes over that memory: five times what ours say, and seconds at the most memory."""
PASSPHRASE_SIZE_MAX: Final = 1024
"""Bytes of a passphrase: nobody types more, and a file that was named by mistake is not read whole."""
PASSPHRASE_LENGTH_MIN: Final = 8
"""Characters of a passphrase that is chosen: what guessing costs is worth nothing below."""
BACKUP_MANIFEST_SIZE_MAX: Final = 64 * MIB
"""Bytes of a backup's manifest, which is read whole before anything in it is believed."""
BACKUP_FILE_COUNT_MAX: Final = 400_000
"""Files that a backup's manifest names: one for each large add of files; so many fit its size."""
EXPORT_SECONDS_MAX: Final = 21_600
"""Seconds after which an export is ended: what a billion commits take, or a store whose other end hangs."""
FSCK_PROBLEMS_SHOWN_MAX: Final = 1000
"""Problems that a check of a store names one by one; it counts all. A store that is damaged throughout has millions."""
DISK_FREE_MIN: Final = 64 * MIB
"""Bytes of free disk below which a node says that it is not ready: two of the database's logs between checkpoints."""
LOG_LINE_COUNT_MAX: Final = 1000
"""Lines of the log that a daemon remembers."""
LOG_LINE_SIZE_MAX: Final = 8 * KIB
"""Characters of one remembered line: a traceback fits."""
CLOCK_DRIFT_MAX_SECONDS: Final = 300
"""Seconds by which a clock may go back before it is called wrong: what people's machines drift in months without NTP."""

# --- Scuttlebutt's classic messages (docs/reference/scuttlebutt.md) ---
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
SSB_WAITING_COUNT_MAX: Final = 5000
"""Verified messages of all feeds that wait to be sent in batches: 50 MB. A log's feeds are interleaved."""
IMPORTED_WINDOW_MAX: Final = 10_000
"""Ids of imported items in one answer: some 2 MB at the longest names."""
