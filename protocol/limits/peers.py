"""Limits on what one peer can cause on its connection: messages, reconciliation, CPU work, what waits, what is fetched."""

from typing import Final

from protocol.limits.formats import KIB, MIB, PUBLICATION_SIZE_MAX

OFFERS_FOLLOWED_MAX: Final = 1000
"""Accepted offers of one repo whose branches a node follows, the latest."""
LOBBY_COMMIT_COUNT_MAX: Final = 256
"""Commits of a lobby's root branch that a node takes, its owners' beyond: requests of up to 17 KB from who holds a link."""
LOBBY_OWN_COUNT_MAX: Final = 2 * LOBBY_COMMIT_COUNT_MAX
"""Commits of a lobby's root branch that a node takes together with those of its owners: one answer for each request."""
LOBBY_PENDING_SHARE: Final = 64
"""Into how many parts a topic's room for pending commits is divided, of which a lobby has one: 156 commits, 1 MiB."""
LOBBY_COUNT_MAX: Final = 64
"""Lobbies that a node follows: with the bounds above 70 MB of disk if strangers fill all of them."""

# --- messages ---
BATCH_COUNT_MAX: Final = 1024
"""Publications in one message: what is verified and stored in one transaction, so that one wait for the disk serves all."""
BATCH_SIZE_TARGET: Final = 512 * KIB
"""Bytes after which a sender closes a batch: the last publication of one may pass it."""
FRAME_SIZE_MAX: Final = PUBLICATION_SIZE_MAX + BATCH_SIZE_TARGET
"""Bytes of one frame: a batch that is not closed yet, and the largest publication."""
BATCHES_IN_FLIGHT_MAX: Final = 4
"""Batches sent on one connection without a receipt: back-pressure reaches the sender's store, not its memory."""
BATCHES_OF_TOPIC_MAX: Final = BATCHES_IN_FLIGHT_MAX - 1
"""Batches of one topic among these, so that a huge topic leaves room for others: one is read, one checked, one
stored."""
TOPIC_COUNT_MAX: Final = 4096
"""Topics announced in one message, and those of one connection that have not settled: 8 MB for each peer. Others wait.

Settled ones take memory on: a side announces its own alone, and a relay takes a peer's quota of topics on one connection."""
TOPICS_SETTLING_MAX: Final = 1024
"""Topics that are being compared, below which more than TOPIC_COUNT_MAX are announced: else all summaries came at once."""
TURNS_SECONDS: Final = 1.0
"""Seconds after which topics that differed are looked at again, while others wait for their room: else after 30."""
FIRST_TURNS_SECONDS: Final = 5.0
"""Seconds between turns of announcing to a peer that has joined no topic. It hears TOPIC_COUNT_MAX in each turn,
98,304 before it is left."""
ANNOUNCED_AT_ONCE_MAX: Final = 24 * TOPIC_COUNT_MAX
"""Topics that a peer that has joined none may announce without a pause, 3 MB: a stalled line delivers at once all
that an honest peer announces."""
TOPICS_HEARD_MAX: Final = 2 * TOPIC_COUNT_MAX
"""Topics not followed here that a peer has announced, the latest: 1 MB."""
SUMMARY_HEAD_COUNT_MAX: Final = 256
"""Heads named in one summary, 4 KB. A topic has the heads of all branches of a repo; of one with more the newest are named,
and reconciliation finds what these leave open."""
STATED_COUNT_MAX: Final = 1_000_000_000
"""Commits beyond this node's that a peer is believed to hold of one topic: a hundred times the largest branch that was
tried. A summary may state any number: what is more is told as unknown."""
SUMMARIES_AT_ONCE: Final = 32
"""Summaries of a peer's topics that are read by one look into the store: some 10 ms, of the 50 that a slice may take."""
SUMMARY_ROUND_MAX: Final = 2**32 - 1
"""Number of a topic's round, which no session reaches: what bounds rounds is their rate."""
LATER_ROUNDS_AT_ONCE_MAX: Final = 8
"""Rounds after the third of their topics that a peer may begin on one connection without a pause. LATER_ROUNDS_PER_CHECK
more for each keep-alive, twice as many as Ravel begins: each may read all that a topic has."""
LATER_ROUNDS_PER_CHECK: Final = 2
LATER_ROUND_CHECKS: Final = 120
"""Keep-alives after which a topic still in doubt is compared again: an hour, doubled each time (LATER_ROUND_DOUBLINGS_MAX),
since a peer may lack the same for good."""
LATER_ROUND_DOUBLINGS_MAX: Final = 4
LEFT_OUT_TOPICS_MAX: Final = 64
"""Topics of one connection, the latest, that are compared again once an epoch is taken up whose commits were dropped on them
before: looked at at each change. Others are after the hours above."""
EARLIER_FINGERPRINT_SIZE: Final = 16
"""Bytes by which what is held on some topics of ended epochs is compared."""
EARLIER_PART_COUNT: Final = 16
"""Parts into which topics of ended epochs are divided where they differ."""
EARLIER_DEPTH_MAX: Final = 5
"""Times that the topics of ended epochs are divided into parts: into a million parts, a sixteenth of which has
topics where a repo had 32,768 epochs."""
EARLIER_PARTS_MAX: Final = 1024
"""Parts that are divided in one round: 256 KiB of fingerprints. If more differ, all of their topics are announced."""
WANT_COUNT_MAX: Final = 256
"""Commit ids asked for in one message."""
WANTED_AT_ONCE_MAX: Final = 50_000
"""Commit ids asked for on one connection without a pause; WANTED_PER_CHECK more for each keep-alive since. Others wait."""
WANTED_PER_CHECK: Final = 10_000
WANTS_LOOKED_UP_MAX: Final = 4096
"""Commit ids of a peer that are to be looked up, at which it is read from no more until some were: 0.3 MB."""
WANTS_REMEMBERED_MAX: Final = 100_000
"""Latest commit ids that were asked for, or are to be: 13 MB."""
WINDOW_COUNT_MAX: Final = 256
"""Commits in one answer about a branch's newest ones, which BATCH_SIZE_TARGET bounds in bytes."""
WINDOWS_UNANSWERED_MAX: Final = 8
"""Unanswered questions for newest commits in one session: 4 MB of answers, and what one publication may have beyond."""
WINDOWS_AT_ONCE_MAX: Final = 1024
"""Questions for newest commits without a pause: branches of a large repo. WINDOWS_PER_CHECK more for each
keep-alive; twice is taken."""
WINDOWS_PER_CHECK: Final = 32
WINDOW_RANK_MAX: Final = 2**53 - 1
"""Rank below which all of a branch stands."""
WINDOW_ASK_COUNT: Final = 200
"""Newest commits of a branch that are asked for at once: some 130 KB, a tenth of a second at 10 Mbit/s."""
WINDOW_BRANCHES_MAX: Final = 16
"""Branches of a repo that are asked for on one connection: 2 MB."""
WINDOW_ANSWER_SECONDS: Final = 60.0
"""Seconds to wait for an answer about newest commits: batches that are on their way come before it."""
WINDOW_PAGES_MAX: Final = 8
"""Questions in a row for newest commits of one branch while nothing is confirmed: who states huge ranks must write
as many posts."""
WINDOW_BEHIND_MIN: Final = 512
"""Commits of a topic that the peer must hold beyond those here before windows are asked for: fewer come as soon."""
WINDOW_SUMMARY_SECONDS: Final = 3.0
"""Seconds for which a topic of which nothing is here waits for the peer's summary, which tells how much there is. Who was
dialed waits a sixth of it: two that hold nothing would wait for each other."""
WINDOW_HOLD_SECONDS: Final = 5.0
"""Seconds for which the past of a topic is held back, at most: the wait for the peer's summary, and for the newest posts."""
WINDOW_KEPT_COUNT_MAX: Final = 4096
"""Commits of one branch that are kept before their past is here."""
WINDOW_KEPT_AUTHOR_SHARE: Final = 2
"""Parts into which WINDOW_KEPT_COUNT_MAX is divided: one author may use one."""
WINDOW_KEPT_SIZE_MAX: Final = 2 * MIB
"""Bytes of them: three thousand posts, or two of the largest publications. Each names up to 256 others, which are looked up
whenever the branch has grown: a fifth of a second for as many as fit."""
WINDOWS_KEPT_SIZE_MAX: Final = 32 * MIB
"""Bytes in memory of the newest commits of all branches whose past is not here."""
BULK_LOOK_SECONDS: Final = 10.0
"""Seconds in which a peer must bring WINDOW_BEHIND_MIN commits, or others send the same: 40 KB a second."""
DAY_SECONDS: Final = 10.0
"""Seconds for which somebody waits for posts of a day whose past is on its way: batches that were sent come first."""
DAY_PEER_SECONDS: Final = 4.0
"""Seconds of these for one peer: then others are asked, and it no more for that day."""
DAY_QUESTIONS_MAX: Final = 24
"""Questions for a few commits that find a day's rank: twice as many as halving a million ranks takes."""
DAY_EPOCHS_MAX: Final = 3
"""Epochs in which posts of a day are looked for: the one in use then, and where a branch rested, the next ones."""
FETCHED_COUNT_MAX: Final = 4
"""Blocks of files asked for on one connection and not answered yet: of 1 MiB each, so what a peer can have in memory."""
VARIANTS_WANTED_MAX: Final = 8
"""Latest publications of one commit with which a relay answers a `want1` for it: a question of 32 bytes."""
INTRODUCED_COUNT_MAX: Final = 16
"""Peers named in one introduction: twice as many as a node wants of a repo."""
INTRODUCED_TOPIC_COUNT_MAX: Final = 256
"""Topics of one connection on which introductions are made at a time: repos that both follow. Others take turns."""
INTRODUCED_TO_ONE_MAX: Final = 256
"""Addresses told on one topic that are remembered, the latest, so that each is told once: 20 KB. Connections are fewer."""
INTRODUCTIONS_SENT_AT_ONCE_MAX: Final = 4
"""Introductions sent on one topic without a pause; one more for each keep-alive since."""
INTRODUCTIONS_TAKEN_AT_ONCE_MAX: Final = 8
"""Introductions taken on one topic without a pause; two more for each keep-alive since, for streams stall."""
FEATURE_COUNT_MAX: Final = 64
"""Features that one side names: five times as many as there are."""
FEATURE_NAME_SIZE_MAX: Final = 32
"""Characters of the name of one feature."""
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
RECONCILIATION_QUEUED_MAX: Final = 32
"""Frames of one reconciliation that wait to be worked on: a prefix comes in 17, of 96 KiB each."""
RECONCILIATIONS_MAX: Final = 8
"""Topics of one connection that are reconciled at a time, and so kept in memory: 1 GB of a million commits each."""
RECONCILIATION_QUIET_CHECKS_MAX: Final = 6
"""Checks (30 seconds apart) without a frame from the peer after which a reconciliation has stalled: what it keeps here is
much, and a peer needs a minute for its first symbols of millions of commits."""
RECONCILIATION_CHECKS_MAX: Final = 90
"""Checks without such a frame while other things of use come. In these 45 minutes 20 KB/s bring OUTGOING_SIZE_MAX."""
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

# --- connections ---
HANDSHAKE_TIMEOUT_SECONDS: Final = 10.0
"""Seconds a handshake may take: strangers hold nothing longer."""
HANDSHAKE_MESSAGE_SIZE_MAX: Final = 1024
"""Bytes of one handshake message."""
IDLE_TIMEOUT_SECONDS: Final = 90.0
"""Seconds without any frame after which a connection is closed; a keep-alive is sent at a third of it."""
SEND_TIMEOUT_SECONDS: Final = 30.0
"""Seconds that a write may wait for a peer that reads nothing more of it."""
BACKLOG_SIZE_MAX: Final = 256 * MIB
"""Bytes of batches, of all connections, that have come and are not stored yet; beyond it none is read from. A relay of 2,048
peers would else hold 12 GiB."""
OUTGOING_COUNT_MAX: Final = 6 * TOPIC_COUNT_MAX
"""Messages that wait to be written to one peer, which is cut off beyond: a summary of each topic is most of them. A peer may
announce all its topics at once, whatever this side does."""
OUTGOING_SIZE_MAX: Final = 52 * MIB
"""Bytes of the messages that wait to be written to one peer: four batches, four blocks, the answers of eight
reconciliations and a summary of each of TOPIC_COUNT_MAX topics are 30 MB, windows of 64 circuits 16 MB, and of wide
ones 3 MB more."""
FRAMES_WITHOUT_YIELD_MAX: Final = 32
"""Frames of one read after which other tasks get a turn: a millisecond, or a few where they are a circuit's. One read brings
5,800 of the smallest."""
MESSAGES_AT_ONCE_MAX: Final = 4 * TOPIC_COUNT_MAX
"""Messages of all kinds taken without a pause; MESSAGES_PER_SECOND_MAX more for each second since. A peer that meets with
TOPIC_COUNT_MAX topics says some of each."""
MESSAGES_PER_SECOND_MAX: Final = 500
"""Messages a second, which take some 2 % of a processor to read. A writer's single commits are fewer: each batch that is in
flight waits for its receipt."""
UNKNOWN_MESSAGES_AT_ONCE_MAX: Final = 1024
"""Messages of unknown kinds passed over without a pause; one more for each second since. A newer version says few."""
UNKNOWN_MESSAGES_PER_SECOND_MAX: Final = 1
PRESENCE_BOX_SIZE_MAX: Final = 1376
"""Bytes of a sealed presence; the longest has 1,304: root, two positions, what was typed, branch, key, signature, seal."""
PRESENCE_SECONDS: Final = 30.0
"""Seconds after which a presence is forgotten that was not told again. It is told again every ten."""
PRESENCES_AT_ONCE_MAX: Final = 64
"""Presences taken of a peer without a pause; PRESENCES_PER_SECOND_MAX more for each second since; others are dropped."""
PRESENCES_PER_SECOND_MAX: Final = 20
"""A tab tells of its cursor and of what is typed at most 16 times a second, and a person types in one at a time."""
PRESENCES_OF_PEER_MAX: Final = 32
"""Presences that are held of one peer, half a kilobyte each: its user's tabs, which nobody counts by dozens."""
PRESENCES_HELD_MAX: Final = 64
"""Presences that are held of this node's own browsers."""
PRESENCE_PEERS_MAX: Final = 32
"""Connected peers that are told of a presence: sealing and signing for each takes 0.1 ms."""

# --- processor time ---
PRESENCE_CHECK_SECONDS: Final = 200e-6
"""Seconds of the processor that a presence is charged: to open it, and to check its signature."""
FORGED_PRESENCE_SECONDS: Final = 0.05
"""Seconds that a forged presence is charged besides: two a second are forgiven, and 600 end the connection."""
SLICE_SECONDS: Final = 0.05
"""Seconds of the processor that a peer's work takes the lock for writing, and others' turn, at a time: an API write waits
for one such slice at most."""
CUT_SLICE_SECONDS: Final = 0.005
"""Seconds of such a slice while a request of this user is at work: some twenty commits."""
FRAME_SECONDS: Final = 20e-6
"""Processor seconds that a frame is charged: the smallest takes so long to open, decode and look at."""
BYTE_SECONDS: Final = 10e-9
"""Processor seconds that each byte of a frame is charged, beside FRAME_SECONDS."""
SIGNATURE_SECONDS: Final = 80e-6
"""Seconds of the processor that a signature is charged that is checked apart from reading."""
FRUITLESS_FORGIVEN_SHARE: Final = 0.1
"""Part of a processor that a peer may use for nothing, for ever: an honest one with thousands of topics compares them
at each connection."""
FRUITLESS_SLOWED_SECONDS: Final = 5.0
"""Seconds of work that came to nothing after which a peer is read from more slowly."""
STRANGERS_SLOWED_SECONDS: Final = 0.5
"""Seconds of work that came to nothing after which the strangers of one network together are read from more slowly,
at a node that is no relay. A peer that shares a topic is a stranger for a millisecond; those of a relay stay
strangers, and send it thousands of messages."""
FRUITLESS_SLOWED_SHARE: Final = 0.25
"""Part of a processor that its work takes from then on."""
GIVING_WAY_SECONDS: Final = 0.02
"""Seconds that a peer whose work came to nothing waits while a request of this user is at work, before the next
FRAMES_WITHOUT_YIELD_MAX frames are read of it. Such peers wait one after the other: all take 1 ms in that time. So do those
who use the API without a token."""
GIVING_WAY_FRUITLESS_SECONDS: Final = 0.1
"""Seconds of such work from which on a peer gives way: 5,000 of the smallest frames, and honest ones are soon below."""
PAUSED_WORK_SECONDS_MIN: Final = 2e-3
"""Seconds of its work before each pause then: a pause costs as much as several of the smallest frames."""
SLOWED_PAUSE_SECONDS_MAX: Final = 5.0
"""Seconds of one pause between two frames that are read from a slowed peer: far less than makes a connection idle."""
FRUITLESS_SECONDS_MAX: Final = 30.0
"""Seconds of work that came to nothing after which a peer is left, until all but FRUITLESS_SLOWED_SECONDS are
forgiven: four minutes."""
ACCOUNTS_MAX: Final = 4096
"""Peers, and networks of strangers, whose use is remembered: twice a relay's connections; 2 MB."""
COMPARED_AT_ONCE_MAX: Final = 3
"""Looks into the store for peers at a time, of the eight workers that local requests use, too."""

# --- pending commits ---
PENDING_COUNT_MAX: Final = 10_000
"""Commits per topic that wait for their causes; those beyond are dropped, and come again when topics are compared."""
PENDING_SIZE_MAX: Final = 64 * MIB
"""Bytes of publications per topic that wait for their causes."""
PENDING_CAUSE_COUNT_MAX: Final = 100_000
"""Causes per topic that are waited for, counted for each commit: ten of each, where honest ones lack two. 3 MB of rows."""
PENDING_AUTHOR_SHARE: Final = 2
"""One author has at most this part (a half) of the room for what waits on a topic: one flood leaves room for the others."""
PENDING_SENDERS_MAX: Final = 20_000
"""Pending commits whose senders are remembered, so that no commit is sent back to its sender: 4 MB."""
RELEASED_COUNT_MAX: Final = 64
"""Commits that waited and are judged in one transaction beside what came: 50 ms, in which nobody else writes."""
RELEASED_SIZE_MAX: Final = 4 * MIB
"""Bytes of their publications, unless the first alone has more."""
RELEASED_CAUSE_COUNT_MAX: Final = 10_000
"""Causes of waiting commits that are crossed off in one transaction: 50 ms."""

# --- epochs and formats not known here ---
EPOCHS_CLAIMED_BY_MEMBER_MAX: Final = 64
"""Keys of epochs of one repo that are taken from one member while the epochs' inits are not here. Each has a topic that is
followed. More are taken up as these come."""
EPOCHS_CLAIMED_BY_OTHERS_MAX: Final = 64
"""The same of all who are no members as far as is known here, together: who has just joined knows none. Half of it is for
what came on writers' topics, where not everybody can make authors up; what one half leaves unused the other takes. Beyond it
they take turns: each new one takes the place of the oldest. So false claims only delay a right one."""
EPOCHS_AWAITED_MAX: Final = 1024
"""Keys of epochs of one repo, by each member and by all others together, that are held while the epochs' inits are not
accepted: these may be made up, too."""
CLAIM_TURN_SECONDS: Final = 300.0
"""Seconds that such a key is tried before it leaves for the next. Topics are compared in a few; but where one is followed no
more, connections begin anew. A thousand false claims delay a right one by 80 minutes."""
CLAIMS_LOOKED_AT: Final = 64
"""Commits with claims that were left out, of members, of others on writers' topics and of the rest each, that are looked at
again at a time."""
KEY_GIVERS_SIZE_MAX: Final = 32 * MIB
"""Bytes of commits that give keys and were not accepted: of those that wait, in memory until their keys are taken, a few
batches; of a repo's rejected ones, in the store, shared among members (`storage.commits.rejected_givers`)."""
BOXES_TRIED_MAX: Final = 65_536
"""Boxes of one author that are tried in vain since the daemon's start: four seconds of the processor, and the most that
eight inits can have."""
UNREAD_SENT_MAX: Final = 1000
"""Commits of a format version not known here that are sent on when a topic is joined, the oldest."""
TANGLE_PENDING_COUNT_MAX: Final = 10_000
"""Commits that a tangle in memory sets aside until what they follow has come; as many as wait in a branch's store."""
REJECTION_COUNT_MAX: Final = 10_000
"""Rejections remembered per branch, of which the oldest are forgotten first; and rejected commits kept that give keys. These
are read again after a restart: two seconds for all."""

# --- blocks and bodies that are fetched ---
FETCH_TIMEOUT_SECONDS: Final = 60.0
"""Seconds that a peer may take to answer for blocks, or to send anything else of use; then others are asked."""
FETCH_SECONDS_MAX: Final = 600.0
"""Seconds for a peer to send one block, whatever else it sends, beyond the time for what stood before the block."""
FETCH_RATE_MIN: Final = 8 * KIB
"""Bytes a second, on the slowest line, of what stood before the block: who sends little else than it was asked for gains
nothing by it."""
FETCH_AHEAD_SIZE_MAX: Final = 2 * OUTGOING_SIZE_MAX
"""Bytes before a block that extend its time: those that wait here before the question, and there before the answer.
Four hours at the most."""
BODIES_PASS_SECONDS: Final = 3600.0
BODIES_PASS_MAX_SECONDS: Final = 24 * 3600.0
"""Seconds after which a peer that was asked for all missing bodies is asked again: doubled from the first to the second, as
long as it has none."""
BODIES_LOOK_SECONDS: Final = 1.0
"""Seconds between two looks for a peer that may have awaited bodies, or is late with them."""
FETCH_WINDOW_COUNT_MAX: Final = 16
"""Blocks of a file that are fetched together, from all peers that have them, before the first is read: 16 MiB in memory."""
GIVEN_BLOCKS_MAX: Final = 65_536
"""Blocks of files that were sent to peers, to tell which files others have: of 64 GiB of content, 12 MB in memory."""
GIVEN_FILES_MAX: Final = 64
"""Files of which peers have fetched a part; the tree of each is walked again while more of it is sent."""
DAMAGED_ASKED_COUNT_MAX: Final = 4096
"""Damaged commits that peers are asked for together: 128 KiB of ids, and what they send for them in the pause after."""
DAMAGED_PAUSE_SECONDS: Final = 5.0
"""Seconds between two times that peers are asked for what was damaged: they come and go, and need time to send."""
DAMAGED_PAUSE_MAX_SECONDS: Final = 300.0
"""Seconds between two requests for damaged content after rounds in which no peer had any: DAMAGED_PAUSE_SECONDS,
doubled up to this."""
FILES_LISTED_COUNT_MAX: Final = 4096
"""Files of a topic that a relay names in one message: 70 KB."""
FILES_DEPOSITED_COUNT_MAX: Final = 64
"""Files deposited in one message, and on one connection without an answer: a signature each, 5 ms of a relay's time."""
RELAYED_FILE_OVERHEAD: Final = 256
"""Bytes that each block of a deposited file counts beyond its own: what a store's rows of it take."""
RELAYED_INNER_COUNT_MAX: Final = 128
"""Different inner blocks of one deposited file: one of FILE_SIZE_MAX has 68. So a tree has no more than two million places,
however often it names one block."""
RELAYED_FILES_REMEMBERED_MAX: Final = 65_536
"""Files of one topic that a node remembers a relay to keep, 10 MB while they are listed; others it deposits again."""
RELAYED_FILE_UNFINISHED_SECONDS: Final = 24 * 3600.0
"""Seconds after which a relay forgets a file of which blocks are lacking and no more came: a member's night."""
RELAY_FILES_SHARE: Final = 0.875
"""Share of each of a relay's bounds that files may take: commits always find room."""
ACCOUNT_LINKS_MAX: Final = 4
"""Links to accounts that a peer shows on one connection: a person has one for each node."""
ACCOUNT_NODES_MAX: Final = 16
"""Nodes of one account: a person's devices."""
RELAY_GROWTH_COUNT_MAX: Final = 20_000
"""Commits, and files, that are looked at to tell how fast a relay fills: 0.05 seconds."""
RELAY_GROWTH_DAYS: Final = 7
"""Days over which a relay's growth is measured: people's weeks are alike."""
RELAY_REFUSALS_MAX: Final = 256
"""Different refusals that a relay counts for its operator; reasons are this program's own, and fewer."""
RELAY_ACCOUNTS_MAX: Final = 10_000
"""Accounts of a relay: 5 MB in memory with a few nodes each."""
ACCOUNT_INVITATIONS_MAX: Final = 16
"""Links of one account that wait to be used: one for each node."""
ACCOUNT_JOIN_SECONDS: Final = 30.0
"""Seconds that a user waits for a relay to answer to a link."""
BLOCK_LOST_SECONDS: Final = 60.0
"""Seconds for which a relay is not asked again for a block that it had not got."""
BLOCKS_LOST_MAX: Final = 65_536
"""Blocks that relays lacked and are not asked for again, of all relays: 15 MB."""
LIAR_SECONDS: Final = 3600.0
"""Seconds for which a peer is asked for no blocks after it has sent a wrong one."""
LIARS_MAX: Final = 4096
"""Peers that have sent a wrong block and are remembered, the latest: 500 KB."""
LIE_SECONDS: Final = 10.0
"""Seconds of work that a wrong block is charged: three of them are FRUITLESS_SECONDS_MAX."""
DEPOSIT_LOOK_SECONDS: Final = 2.0
"""Seconds between two looks for a connected relay that lacks files."""
DEPOSIT_RELIST_SECONDS: Final = 60.0
"""Seconds after which a relay is asked again what it keeps of a topic with files that this node cannot deposit: others may
have done so."""
DEPOSIT_RELIST_ALL_SECONDS: Final = 3600.0
"""Seconds after which a connected relay is asked again what it keeps of all topics: it may have found blocks damaged. One
message for each topic with files."""
DEPOSIT_PAUSE_SECONDS: Final = 600.0
"""Seconds for which no files of a topic are offered to a relay that has refused one: quotas move slowly."""
DEPOSIT_PAUSE_MAX_SECONDS: Final = 3600.0
"""Seconds to which DEPOSIT_PAUSE_SECONDS doubles after refusals in a row, and the pause of a file that is refused
for its own sake."""
FILES_PAUSED_MAX: Final = 4096
"""Files for which such pauses are remembered, the latest: 1 MB. What is forgotten is offered ten minutes later."""
REFUSED_PAUSE_MIN_SECONDS: Final = 3600.0
REFUSED_PAUSE_MAX_SECONDS: Final = 24 * 3600.0
"""Seconds until topics that a relay refused are offered again, doubled from the first to the second. A topic is offered once
in a session, so that costs another session, in which all topics are compared."""
RELAYED_TOPIC_SIZE: Final = 4 * KIB
"""Bytes that a topic counts in the quota of an account, beyond what is published on it: its rows in a relay's store, most of
them the sketch by which it is compared. So the quota bounds its topics too: one of 1 GiB allows 262,144."""
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
DIAL_STAGGER_SECONDS: Final = 0.25
"""Seconds after which the next address of a peer is tried beside those that have not answered yet (RFC 8305, 8)."""
HANDSHAKE_SHARED_SECONDS: Final = 5.0
"""Seconds that the handshake at one of several addresses of a peer may take: three ways on a slow line, one packet twice."""
LINK_DIALS_AT_ONCE_MAX: Final = 16
"""Dials of one host without a pause because links name it and nobody has proved a key there, whatever keys and ports they
say: two rounds of a link's addresses. One more for each LINK_DIAL_SECONDS since: all that a victim gets from a node."""
LINK_DIAL_SECONDS: Final = 60.0
LINK_HOSTS_MAX: Final = 1024
"""Hosts whose dials for links are counted; while there are so many, no other host that a link names is dialed. 100
KB."""
DUPLICATE_SECONDS: Final = 30.0
"""Seconds within which two connections of the same two nodes count as dialed at once, and not as one after the other."""
CLOCK_DRIFT_MAX_SECONDS: Final = 300
"""Seconds by which a clock may go back before it is called wrong: what people's machines drift in months without NTP."""
