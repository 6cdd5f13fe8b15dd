"""Limits on what a local user or app can request: answers, documents, streams, uploads, imports."""

from typing import Final

from protocol.limits.formats import FILE_COUNT_MAX, FILE_SIZE_MAX, KIB, MIB

GROWTH_COMMIT_COUNT_MAX: Final = 100_000
"""Commits that are looked at to tell how the store has grown: 0.1 seconds."""
GROWTH_DAY_COUNT_MAX: Final = 30
"""Days for which the growth of the store is shown."""
WRITE_GROUP_COUNT_MAX: Final = 64
"""Requests to write that share one transaction."""
WRITE_STREAM_COUNT_MAX: Final = 256
"""Lines of a stream of writes that are not answered yet: some 40 ms of writing."""
WRITE_STREAM_SIZE_MAX: Final = 4 * MIB
"""Bytes of the unanswered lines of a stream of writes, and one line more."""
WRITE_STREAM_LINE_SIZE_MAX: Final = 2 * MIB
"""Bytes of a line: the longest text with each byte escaped, and its key."""
WRITE_STREAM_KEYS_MAX: Final = 2 * WRITE_STREAM_COUNT_MAX
"""Keys of a stream's latest lines that are known: of what a client has no answer to, and as many before."""
WRITE_GATHER_SECONDS: Final = 0.001
"""Wait for further requests after a transaction of several: what one transaction costs, whatever is in it."""
WRITE_GROUP_COMMITS_MAX: Final = 256
"""Commits of a transaction after which no further request joins it: about 50 ms, for which others wait."""
WRITE_GROUP_SIZE_MAX: Final = 4 * MIB
"""Encoded bytes of a transaction after which none does."""
KEPT_BRANCHES_MAX: Final = 256
"""Branches of a repo that a user names as those to keep, and marks in one `keeps1`: 2 KiB."""
KEPT_DAYS_MAX: Final = 36_500
"""Days up to which posts may be kept: a hundred years, so that no sum of times leaves its range."""
POSTS_COUNT_MAX: Final = 10_000
"""Posts of one request: some seconds of writing, between which others write."""
MENTIONS_MAX: Final = 64
"""Words after an @ that are looked up when a post is written, and people that one shows: each is compared with all names."""
QUOTE_LENGTH_MAX: Final = 120
"""Characters of an answered post that are shown above its reply: a line."""
ATTACHED_COUNT_MAX: Final = 2048
"""Commits with files that the posts of one answer name, and files of these: 20 ms, 2 MiB of names. More are left
out."""
MERGED_COUNT_MAX: Final = 20_000
"""Commits that one merge of branches carries over: some seconds of writing, in one transaction."""
MERGES_LOOKED_MAX: Final = 100
"""Merges of one branch that are opened to tell whether offers to it are merged: a millisecond or two."""
FORK_DEPTH_MAX: Final = 64
"""Length of a chain of forks whose commits are read to merge or to show a branch."""
STATE_COUNT_MAX: Final = 200_000
"""Commits of a branch and what it continues that are held to merge or to show it: about 100 MB."""
DOCUMENT_SIZE_MAX: Final = 64 * MIB
"""Bytes of the bodies that a set or a dict is reduced from, and of a text's standing updates, held while it is answered."""
DOCUMENT_VALUE_COUNT_MAX: Final = 100_000
"""Values of a set, dict or JSON document in one answer, conflicts included: some 1.1 s of one core and 110 MB, of which the
node holds one at a time."""
DOCUMENT_TURN_COUNT: Final = 10_000
"""Values that a reader loads beside others, some 11 MB; who asks for more waits until nobody else loads as many."""
DOCUMENT_TURN_SIZE: Final = 4 * MIB
"""Characters of the values that a reader loads beside others (DOCUMENT_TURN_COUNT)."""
DOCUMENT_HISTORY_MAX: Final = 500_000
"""Operations that a snapshot is made of: some 5 s and 400 MB. Also names and ranges of a text's standing updates."""
DOCUMENT_OPERATIONS_CACHED_MAX: Final = 100_000
"""Words, names and commits that are remembered once opened, for all branches' sets and dicts, and for all texts: 40 MB."""
DOCUMENT_SNAPSHOT_COUNT_MAX: Final = 1000
"""Snapshots that a set or a dict is reduced with: each is compared with all others. 64 fill DOCUMENT_SIZE_MAX."""
COMMENT_SIZE_MAX: Final = 900
"""Characters of a comment. With the name of what it answers, it fits the note of an offer."""
COMMENT_QUOTE_SIZE_MAX: Final = 200
COMMENTS_LOOKED_MAX: Final = 256
"""Accepted offers of comments, and commits of trusted authors, that one answer reads beyond those that it shows."""
TEXT_LOOK_COUNT_MAX: Final = 2_000_000
"""Ranges of deleted clocks that are compared with those of the commits that they name, in one text: a second. A text of
100,000 updates, of which a third delete what others wrote, has 100,000."""
TEXT_SESSION_REST_SECONDS: Final = 30 * 24 * 60 * 60
"""Seconds for which a Yjs session number of a text is given to nobody else, when all 8,192 were given: a tab that is open
for longer finds its clocks used, and is told so."""
TEXT_FAULTS_SHOWN_MAX: Final = 64
"""Updates that say nothing in a text and are named in an answer; all are counted."""
TEXT_IMPORT_SIZE_MAX: Final = 96 * KIB
"""Characters that are typed anew from another document in one go: of four bytes each, they fit an update."""
TEXT_WORKERS_MAX: Final = 2
"""Processes that merge texts at a time, each of at most a gigabyte; more wait for their turn."""
TEXT_MERGE_SECONDS: Final = 60.0
"""Seconds after which a process that merges a text is given up: bad updates cost it most of them."""
TEXTS_KNOWN_SIZE_MAX: Final = 32 * MIB
"""Bytes of merged texts and their standing updates that are kept, for all branches: what is kept is not merged again."""
TEXT_GATHER_SECONDS: Final = 1.0
"""Seconds between two commits of gathered updates while another editor has the text open: 60 commits in a minute of typing
at most, and a character is seen elsewhere within two seconds."""
TEXT_GATHER_ALONE_SECONDS: Final = 5.0
"""Seconds between two commits of gathered updates while no other editor has the text open: no reader waits, and each
commit stays for ever."""
TEXT_GATHER_COUNT_MAX: Final = 64
"""Updates gathered into one commit: more browsers than that do not wait for each other."""
TEXT_GATHER_SIZE_MAX: Final = 64 * KIB
"""Bytes of gathered updates at which they are written without waiting: a paste of some pages."""
TEXT_VECTOR_SIZE_MAX: Final = 8 * KIB
"""Bytes of a Yjs state vector, which stands in an address: some thousand editors' sessions. An editor that has a longer one
asks for the whole text."""
TEXT_ROOT_SIZE_MAX: Final = 64
"""Characters of the name of the text in which a cursor is."""
TEXT_POSITION_SIZE_MAX: Final = 288
"""Bytes of one Yjs relative position: its longest form has the name of the root in it."""
TEXT_TYPED_SIZE_MAX: Final = 64
"""Characters that an editor shows others before they are in a commit: those of some seconds of typing, and commits come each
second. What is longer is shown as it is committed."""
JSON_OPERATIONS_MAX: Final = 100_000
"""Registers that the edits of one request write or let go: 250 MB, and 40 s on two busy cores. A body of 8 MiB may have four
million values, and a map that is removed any number."""
JSON_EDITS_MAX: Final = 10_000
"""Edits of a JSON document by one request: some tenths of a second of one transaction."""
JSON_PAUSE_SECONDS: Final = 0.05
"""Seconds between two looks at a JSON document for one stream: what changes in between comes as one."""
QUERY_LIMIT_MAX: Final = 1000
"""Documents of one answer to a query, and of a result that is followed."""
QUERY_COUNT_MAX: Final = 5000
"""Documents that one query looks at; then it ends with a cursor."""
QUERY_SIZE_MAX: Final = 8 * MIB
"""Bytes of the documents of one answer, as JSON, and of a result that is followed. One document is answered whatever it has:
DOCUMENT_SIZE_MAX bounds it."""
QUERY_CHANGES_MAX: Final = 256
"""Changed documents that are read again for one look of a follower. After more, the whole result is found anew."""
QUERY_BRANCHES_MAX: Final = 64
"""Branches of one query: each is asked for as many documents as the answer has."""
DOCUMENT_INDEXES_MAX: Final = 8
"""Indexes of a branch: a change of a document is entered into each. One more takes the place of the first declared."""
QUERY_SECONDS: Final = 0.05
"""Seconds after which a query that has not looked at as many ends with a cursor: others wait for their reads meanwhile."""
QUERY_WINDOW_SECONDS: Final = 2.0
"""Seconds in which a sorted result, and one that is followed, must be found: each change of the branch looks again."""
QUERY_SORTED_COUNT_MAX: Final = 1000
"""Documents that a sorted query looks at: all that have such a name, since any may come first."""
QUERY_SORT_FIELDS_MAX: Final = 4
"""Fields that a query sorts by."""
QUERY_FILTER_SIZE_MAX: Final = 4 * KIB
"""Bytes of a filter, which stands in an address."""
DOCUMENT_WINDOW_MAX: Final = 1000
"""Items of a set, or entries of a dict, in one answer."""
TANGLE_SHOWN_COMMITS_MAX: Final = 100_000
"""Commits that are read to show a tangle: some seconds, and 100 MB while the answer is made."""
TANGLE_WINDOW_MAX: Final = 10_000
"""Commits of a tangle in one answer."""
FEED_FORKS_SHOWN_MAX: Final = 100
"""Forked places of feeds in one answer: an author can make as many as it likes, and one is enough."""
FEED_FORK_COMMITS_SHOWN_MAX: Final = 16
"""Commits of one forked place in one answer: two are evidence."""
UPLOADS_MAX: Final = 4
"""Files taken in at a time: each holds a few pieces of 4 MiB; more wait for their turn."""
FILE_BATCH_COUNT_MAX: Final = 8 * FILE_COUNT_MAX
"""Files of one request: eight full commits, 0.1 s of one transaction. Files of equal content need a commit each: 1 s."""
FILE_BATCH_SIZE_MAX: Final = FILE_SIZE_MAX
"""Bytes of the files of one request: as many as one file may have. They go to the disk as they come, not to memory."""
FILE_HEAD_SIZE_MAX: Final = 4 * KIB
"""Bytes of the line before each file of a request: the longest name takes 3 KiB if every character is escaped."""
SKIPPED_SHOWN_MAX: Final = 1000
"""Paths that `ravel file add` names of those that it leaves out, the first; all are counted."""
FILE_WINDOW_MAX: Final = 1000
"""Files of one listing."""
FILE_BLOCKS_LOOKED_MAX: Final = 4096
"""Blocks of one listing's files that are looked for to say where they are, some 0.3 s: 4 GiB of content."""
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
TEXT_STREAMS_MAX: Final = 32
"""Streams that follow a text, among all streams. Each may hold a whole unread text of up to 64 MiB: 2 GiB together."""
EVENT_WINDOW: Final = 64
"""Edits read at once for an event stream."""
EVENT_WINDOW_SIZE: Final = MIB
"""Bytes of the commits in a window of edits, unless the first alone has more: what one unread stream holds. All: 1
GiB."""
GONE_REPOS_KEPT_MAX: Final = 1000
"""Repos that are shown no more and that readers of changes are told of, the latest: 200 bytes each. Who last looked
before that gets the whole list."""
EVENT_PAUSE_SECONDS: Final = 0.2
"""Seconds between two looks at the store for one event stream, while it keeps changing and many follow."""
EVENT_PAUSE_SECONDS_MIN: Final = 0.04
"""Seconds between two looks at the store for one event stream where few streams follow: a look takes a millisecond,
and each stream's share of it a tenth of one."""
EVENT_PAUSED_STREAMS: Final = 64
"""Streams of edits, or of texts, from which on the longer pause holds: all look some 300 times a second. Fewer pause for
less."""
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
API_STRANGERS_MAX: Final = 192
"""Connections among them that have not shown the token: pages that are opened, and probes. One more ends another one.
Beside them and all event streams there is room for 64 more. A program that opens more than these ends those of a page."""
API_STRANGER_SECONDS: Final = 10.0
"""Seconds in which a request on such a connection must have come whole, or shown the token: it needs milliseconds."""
PAGE_CODE_BODY_SIZE_MAX: Final = KIB
"""Bytes of the one request body that is read without the token: a code has 32 characters."""
API_TOKENS_MAX: Final = 100
"""Tokens for apps on one node: each is looked at when tokens are listed and written. A person has a few apps."""
API_TOKEN_NAME_SIZE_MAX: Final = 64
"""Characters of a token's name."""
API_TOKEN_TARGETS_MAX: Final = 16
"""Repos and branches that one token is for: each is compared at every request. More are a token for all repos."""
API_TOKEN_ORIGINS_MAX: Final = 4
"""Web origins whose pages may use one token: a page at home and where it is published."""
API_ORIGIN_SIZE_MAX: Final = 267
"""Characters of an origin: `https://`, a host name of 253, a port."""
API_TOKEN_SECONDS_MIN: Final = 60
"""Least time in seconds for which a token is good: long enough to be given to an app."""
API_TOKEN_SECONDS_MAX: Final = 3650 * 86_400
"""Most: ten years. A forgotten token ends one day."""
API_TOKEN_SECONDS: Final = 90 * 86_400
"""What a token gets that states no time."""
PAGE_TOKENS_MAX: Final = 16
"""Tokens of web pages that were opened. One more ends the oldest."""
PAGE_TOKEN_SECONDS: Final = 30 * 86_400
"""Seconds for which such a token is good: a tab is opened again within a month."""
PAIRING_CODE_SECONDS: Final = 600
"""Seconds for which a code that pairs a browser is good: a phone is found, unlocked and held before a screen."""
PAIRING_CODES_MAX: Final = 4
"""Pairing codes that are good at the same time: a person pairs one browser after the other."""
PAIRING_CODE_SIZE: Final = 10
"""Characters of such a code, 5 random bits each: short enough to type on a phone, and guessed by PAIRING_TRIES_MAX tries
with a chance of one in 2^43."""
PAIRING_TRIES_MAX: Final = 100
"""Wrong codes after which no code that was made before is good any more, from whatever addresses they came."""
PAIRING_TRIES_AT_ONCE_MAX: Final = 10
"""Codes that one subnet may try at once: a person mistypes one twice."""
PAIRING_TRY_SECONDS: Final = 10.0
"""Seconds for each further one: in the time of a code, one subnet has fewer than end it for all."""
BROWSERS_MAX: Final = 32
"""Browsers that are paired with a node: each is looked at when tokens are listed and written. A person has a few."""
BROWSER_NAME_SIZE_MAX: Final = 64
"""Characters of a paired browser's name."""
BROWSER_SECONDS: Final = 180 * 86_400
"""Seconds for which a paired browser may come. One that was forgotten in a drawer ends one day."""
REMOTE_CONNECTIONS_MAX: Final = 256
"""Connections of other machines to the API that are served at once; more wait. A browser has six."""
REMOTE_STRANGERS_MAX: Final = 64
"""Connections of other machines to the API that have not shown a token. One more ends the oldest."""
REMOTE_STRANGERS_SUBNET_MAX: Final = 16
"""Connections of one subnet without a token: two browsers that open the page at once. One more ends that subnet's
oldest."""
REMOTE_OPENED_AT_ONCE_MAX: Final = 100
"""Connections that one subnet may open at once: each costs this node a signature, before anything is said."""
REMOTE_OPENED_PER_SECOND_MAX: Final = 5.0
"""Connections that one subnet may open each second beyond REMOTE_OPENED_AT_ONCE_MAX."""
REMOTE_SUBNETS_MAX: Final = 1024
"""Subnets whose requests without a token are counted, some 500 bytes each. One more forgets which came longest ago."""
REMOTE_REQUESTS_AT_ONCE_MAX: Final = 400
"""Requests without a token that one subnet may make at once: the page has some 70 files, and a household five browsers."""
REMOTE_REQUESTS_PER_SECOND_MAX: Final = 5.0
"""Requests without a token that one subnet may make each second beyond REMOTE_REQUESTS_AT_ONCE_MAX."""
TLS_NAMES_MAX: Final = 16
"""Names under which browsers reach a node, and as many proxies that are believed: each is compared at every request."""
TLS_FILE_SIZE_MAX: Final = 256 * KIB
"""Bytes of a file with a certificate or its key: a chain of four has some 8 KiB."""
TLS_LOOK_SECONDS: Final = 60.0
"""Seconds between two checks whether the certificate's files have changed: they are renewed weeks before their end."""
CERTIFICATE_SECONDS: Final = 820 * 86_400
"""Seconds for which a certificate of the node's own is valid: Apple's systems refuse more than 825 days."""
CERTIFICATE_RENEWED_SECONDS: Final = 30 * 86_400
"""Seconds before the end of the node's own certificate at which the node makes a new one."""
API_TOKEN_USE_SECONDS: Final = 60.0
"""Seconds between two writes of when tokens were last used: a file of some KiB, synced to the disk."""
API_TOKEN_MADE_SIZE_MAX: Final = 32 * KIB
"""Bytes in the file of tokens of the links, members and other things that a token's holder made, and that have not ended:
some 200. A person who lets in more does it on the node's machine, whose own token has no such list."""
API_MAKE_SECONDS: Final = 45.0
"""Seconds that a request with a token may take to make something that lasts. It goes on when its client leaves, and a relay
that does not answer takes ACCOUNT_JOIN_SECONDS. What takes longer ends; what may have been made stays on the list."""
ENDED_TOKENS_MAX: Final = 32
"""Revoked or expired tokens that are kept for what was made with them. One more drops the one that ended first."""
ENDED_TOKEN_SECONDS: Final = 30 * 86_400
"""Seconds for which such a token is kept: a person looks at what is left within a month."""
API_TOKENS_FILE_SIZE_MAX: Final = 8 * MIB
"""Bytes of the file of tokens: the most tokens, with the longest names, all targets and all that was made, take 7.2 MB."""
IDEMPOTENCY_SECONDS: Final = 600.0
"""Seconds for which the answer to a request with an idempotency key is kept. Clients repeat a request within seconds."""
IDEMPOTENCY_COUNT_MAX: Final = 8192
"""Answers that are kept so, of all callers. At 1,000 writes a second, the most a node does, one is kept for 8 s."""
IDEMPOTENCY_SIZE_MAX: Final = 16 * MIB
"""Bytes of the answers that are kept for idempotency keys; most have some hundred. A larger answer is the next to be
forgotten."""
IDEMPOTENCY_KEY_SIZE_MAX: Final = 128
"""Characters of a key: 128 random bits have 32, and an app may put words before them."""
OPEN_FILES_WANTED: Final = 4096
"""Files and sockets that the daemon may have open: all connections to its API and of peers, a relay's too, and 768 more."""
PASSPHRASE_SIZE_MAX: Final = 1024
"""Bytes of a passphrase: nobody types more, and a file that was named by mistake is not read whole."""
PASSPHRASE_LENGTH_MIN: Final = 8
"""Characters of a passphrase that is chosen: what guessing costs is worth nothing below."""
WORDS_SIZE_MAX: Final = 1024
"""Characters of a key's typed words: the longest 24 have 336 with numbers and the spaces between them."""
EXPORT_SECONDS_MAX: Final = 21_600
"""Seconds after which an export is ended: what a billion commits take, or a store whose other end hangs."""
SETTING_SIZE_MAX: Final = 64 * KIB
"""Characters of a setting's value: a list of some hundred peers."""
CHECKS_SECONDS_MAX: Final = 60
"""Seconds after which a look at the node's health is ended: it needs one, and more where a disk or a server hangs."""
BACKUP_PATH_SIZE_MAX: Final = 1024
"""Characters of a folder that a page names for a backup: file systems take paths of 4 KiB."""
BACKUP_SECONDS_MAX: Final = 86_400
"""Seconds after which a backup is ended: a terabyte at the speed of a slow disk, or a disk that hangs."""
REPORT_SECONDS_MAX: Final = 21_600
"""Seconds after which an analysis is ended: far more than one machine takes for what it can hold."""
EXPORT_MANIFEST_SENT_MAX: Final = 16 * MIB
"""Bytes of the manifest of an export that a browser saves: some hundred thousand parts. The daemon reads it as a whole."""
REPORT_SIZE_MAX: Final = 32 * MIB
"""Bytes of a report that a page is shown. Reports have some hundred KiB: what they draw is bounded."""
DISK_FREE_MIN: Final = 64 * MIB
"""Bytes of free disk below which a node says that it is not ready: two of the database's logs between checkpoints."""
UNSEEN_COUNT_MAX: Final = 1000
"""Commits of a branch that are looked at to tell what its user has not seen: 5 ms. Of more it is said that there are."""
UNSEEN_OPENED_MAX: Final = 100
"""Of them the newest posts, then what merges carried, that are opened, for whom they mention: 20 ms, once for each commit
that comes."""
UNSEEN_LIST_OPENED_MAX: Final = 10 * UNSEEN_OPENED_MAX
"""Unseen commits that one list of all branches opens: 0.2 s. Other branches are only counted; later lists find their
mentions."""
PETNAMES_COUNT_MAX: Final = 10_000
"""Names that a user gives to others: more people than anybody knows."""
PETNAMES_FILE_SIZE_MAX: Final = 16 * MIB
"""Bytes of the file of names: at their longest, all of them fit, escaped."""
LOG_LINE_COUNT_MAX: Final = 1000
"""Lines of the log that a daemon remembers."""
LOG_LINE_SIZE_MAX: Final = 8 * KIB
"""Characters of one remembered line: a traceback fits."""
LOG_LINES_AT_ONCE_MAX: Final = 1000
"""Lines of one kind that are logged without a pause: of a relay's peers that come back together, half."""
LOG_LINES_PER_SECOND_MAX: Final = 1.0
"""Further ones, each second; others are counted. A stranger causes some 400 a second: 6 GB a day without this bound."""
LOG_FILE_SIZE_MAX: Final = 4 * MIB
"""Bytes of `daemon.log` above which it is put aside as `daemon.log.1`: with that one, all that logs take of the disk."""
IMPORTED_WINDOW_MAX: Final = 10_000
"""Ids of imported items in one answer: some 2 MB at the longest names."""
REQUEST_SIZE_MAX: Final = 8 * MIB
"""Bytes of a request's body: the sender of an import cuts a batch of the largest legal texts into smaller ones."""
BODY_WAIT_SECONDS: Final = 30
"""Longest pause in a request's body."""
TIMELINE_WINDOW_MAX: Final = 1000
"""Items of one timeline answer."""
ASK_LINK_USE_COUNT_MAX: Final = 128
"""Users who may ask by one link: half of what a lobby takes (`peers.LOBBY_COMMIT_COUNT_MAX`): each can also leave."""
SEARCH_QUERY_SIZE_MAX: Final = 256
"""Characters of a search query: more than a line of a search box."""
SEARCH_TERM_COUNT_MAX: Final = 16
"""Words, beginnings and phrases of one query: each is looked up in every part of the index."""
SEARCH_WORD_SIZE_MAX: Final = 64
"""Characters of a word that are compared: the longest words of dictionaries have fewer."""
PEER_REPOS_MAX: Final = 10_000
"""Repos that one request names for a peer: some 550 KB of ids, and a row each."""
SEARCH_PREFIX_SIZE_MIN: Final = 3
"""Letters of a beginning of a word that is searched for: a shorter one fits too many words."""
SEARCH_TEXT_KEYS_MAX: Final = 4096
"""Different words, beginnings of words and pairs of characters that are indexed of one post: some 2,000 words, 50 KB."""
SEARCH_PART_COUNT_MAX: Final = 65_536
"""Entries of one part of the index, some 2,500 short posts: rewriting it to erase one of them takes 50 ms."""
SEARCH_BATCH_COUNT_MAX: Final = 16_384
"""Entries that are written at once, and one post more: some 15 ms, in which others cannot write. Four fill a part."""
SEARCH_BATCH_SPAN_MAX: Final = 10_000
"""Commits that are read before the index keeps how far it is: where few have words, a stop loses that much reading."""
SEARCH_WINDOW_MAX: Final = 100
"""Hits of one answer."""
SEARCH_NAMES_MAX: Final = 20
"""Branches and tags that one answer names beside its hits."""
SEARCH_LOOKED_UP_AT_ONCE: Final = 32
"""Lists of words that a search reads of the index at once: those of so many parts, or of fewer parts for several words. A
part has 256 KiB of them at most, so these have 8 MiB."""
SEARCH_OPENED_MAX: Final = 1000
"""Posts that one search request opens to compare them: 0.2 s. The answer's cursor names the rest."""
SEARCH_OPENED_SIZE_MAX: Final = MIB
"""Bytes of the posts, and of the edits that stand for them, that a search opens at once, and one post more. Those of 32 may
have 32 MiB, which with plaintexts and texts would take 100 MB, and 0.2 s between two looks at the clock."""
SEARCH_SECONDS: Final = 0.25
"""Processor seconds after which a search ends with what it has, and a cursor to go on from. One post is looked at.

The same for names beside it."""
SEARCH_EXCERPT_SIZE: Final = 300
"""Characters that an answer shows of a post."""
SEARCH_SLICE_SECONDS: Final = 0.025
"""Processor seconds of reading in one slice of indexing, and one post more. Writing takes as long at most; others wait."""
SEARCH_TEXT_SIZE_MAX: Final = 262_144
"""Characters of a branch's texts that are searched, some 45,000 words: they are kept in the store, and to compare them takes
50 ms."""
SEARCH_TEXT_WORDS_MAX: Final = SEARCH_BATCH_COUNT_MAX
"""Entries of a branch's texts in the index, some 10,000 different words: they may be written all at once."""
SEARCH_TEXT_PAUSE_SECONDS: Final = 5.0
"""Seconds between two readings of a text that is being written: each starts a process."""
SEARCH_OPENED_AT_ONCE: Final = 32
"""Commits that are loaded at once, to be indexed or compared: to open few costs more for each. 32 short posts take 6 ms. The
blocks of all that are to be indexed are held, at most 16 MiB."""
HELPERS_MAX: Final = 8
"""Members of a repo who are named as those who can help, the first by id."""
