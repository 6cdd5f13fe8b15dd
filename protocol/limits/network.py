"""Limits on how nodes reach each other: places for connections, addresses, circuits, dialing, WebSocket, local network."""

from typing import Final

from protocol.limits.formats import KIB, MIB

# --- places ---
CONNECTIONS_MAX: Final = 128
"""Connections accepted from others at a time."""
KNOWN_PLACES_SHARE: Final = 4
"""Part (a quarter) of CONNECTIONS_MAX that is kept for peers that are configured, learned of, or have shown that
they know a branch."""
HALF_OPEN_MAX: Final = 64
"""Connections whose handshake has not ended; the newest takes the place of an old one of the host that has most."""
HANDSHAKE_TURN_SECONDS: Final = 0.05
"""Seconds between handshakes with one host, after HALF_OPEN_MAX without a wait: each takes 4 ms of the processor."""
HANDSHAKE_ACCEPT_SECONDS: Final = 5.0
"""Seconds for one accepted handshake: half of HANDSHAKE_TIMEOUT_SECONDS, which a dialer allows on a slow line."""
STRANGER_IDLE_SECONDS: Final = 120.0
"""Seconds after which a stranger without a common topic is left: time for a repo to be made or opened on either side."""
RELAY_CONNECTIONS_MAX: Final = 2048
"""Connections that a relay accepts at a time: it is there for others."""
CONNECTIONS_PER_HOST_SHARE: Final = 4
"""One host, or IPv6 network of 64 bits, has at most this part (a quarter) of the connections accepted from others."""

# --- addresses and dials ---
ADDRESSES_MAX: Final = 1024
"""Addresses that a node knows by introductions and from its local network: 500 KB."""
ADDRESSES_PER_REPO_MAX: Final = 128
"""Known addresses of one repo's peers: many times what is dialed."""
ADDRESSES_PER_TELLER_MAX: Final = 64
"""Known addresses that one peer has told: two liars do not fill a repo's places with what nobody answers at."""
ADDRESSES_PER_PEER_MAX: Final = 4
"""Known addresses of one peer: where it was, where it is, in two networks."""
ADDRESS_FAILURES_MAX: Final = 3
"""Dials that fail after which an address at which nobody proved the key is dropped: all that a victim gets for one key."""
REACHED_FAILURES_MAX: Final = 8
"""Failed dials after which an address is dropped where the peer was reached. They count while others answer: this node may
be offline."""
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
"""Seconds after which an address is forgotten where the peer was reached."""
REACHED_PEERS_MAX: Final = 2048
"""Peers whose address and time of last contact are kept, the latest: twice what is learned. 400 KB."""
PEER_USERS_MAX: Final = 2048
"""Peers whose users are remembered, the latest ones: as many as REACHED_PEERS_MAX. 300 KB."""
LEARNED_DIALS_AT_ONCE_MAX: Final = 4
"""Learned addresses that are dialed at a time."""
LEARNED_CONNECTIONS_MAX: Final = 32
"""Connections to learned addresses at a time."""
LEARNED_PEERS_WANTED: Final = 8
"""Peers of one repo up to which learned ones are dialed: enough that commits spread and that some stay."""
LEARNED_PAUSE_MIN_SECONDS: Final = 15.0
LEARNED_PAUSE_MAX_SECONDS: Final = 3600.0
"""Seconds between two dials of one learned address, doubled from the first to the second."""
CUT_OFF_PAUSE_MAX_SECONDS: Final = 120.0
"""The longest such pause while no peer at all answers: this node is cut off, and may be let in again at any time."""

# --- this node's own addresses ---
INTERFACE_ADDRESSES_MAX: Final = 32
"""Addresses of this machine's interfaces that are looked at: a router with more is no place for a node to name them all."""
INTERFACES_LOOK_SECONDS: Final = 15.0
"""Seconds between two looks whether this machine's addresses have changed, a millisecond each."""
MAPPING_SECONDS: Final = 7200.0
"""Seconds for which the router is asked to forward a port, as RFC 6886 recommends; asked again at half of it."""
MAPPING_DEADLINE_SECONDS: Final = 30.0
"""Seconds that asking may take: 4 by PCP and NAT-PMP, 2 to look for UPnP, and some requests of HTTP."""
MAPPING_LINE_SIZE_MAX: Final = 4 * KIB
"""Bytes of the answer of the process that asks."""
MAPPING_PAUSE_MIN_SECONDS: Final = 60.0
MAPPING_PAUSE_MAX_SECONDS: Final = 3600.0
"""Seconds before a router that forwards nothing is asked again, doubled from the first to the second; the first is also the
least between two questions to one that grants a shorter time."""
OBSERVERS_MAX: Final = 64
"""Peers whose word on where they see this node is remembered, the latest."""
OBSERVERS_AGREED_MIN: Final = 2
"""Peers in different subnets that must see the same host: keys are free, subnets are not. More would leave nodes
with a relay and a friend without an address."""
PEER_ADDRESSES_MAX: Final = 8
"""Addresses at which one kept peer is dialed: as many as a link names. Each costs a dial in every round."""
OWN_ADDRESSES_TOLD_MAX: Final = 4
"""Own addresses in one link, which names LINK_PEER_COUNT_MAX: peers that have the repo need places, too."""
ADVERTISED_ADDRESSES_MAX: Final = OWN_ADDRESSES_TOLD_MAX - 1
"""Addresses that a user may state for this node: one place in links stays for the network that it is on."""

# --- circuits ---
CIRCUIT_DATA_SIZE_MAX: Final = 256 * KIB
"""Bytes of one message of a circuit, a quarter of a block: other circuits, and the relay's own messages, get their turn
between two."""
CIRCUIT_WINDOW_SIZE: Final = 256 * KIB
"""Bytes of one direction of a circuit that may be on their way: all that a relay and a receiver hold of it. With 100 ms from
end to end that is 2.5 MiB/s."""
WIDE_CIRCUIT_WINDOW_SIZE: Final = 1024 * KIB
"""Bytes of a wide direction that may be on their way. With 100 ms from end to end that is 10 MiB/s."""
WIDE_CIRCUIT_AFTER_SIZE: Final = 1024 * KIB
"""Bytes of a direction after which it may become wide: what only chats, or waits, needs no more than it has."""
WIDE_CIRCUITS_OF_RELAY_SIZE: Final = 64 * MIB
"""Bytes beyond CIRCUIT_WINDOW_SIZE of all wide directions, which a relay holds at most: 85 directions at a time."""
WIDE_CIRCUITS_OF_NODE_MAX: Final = 4
"""Circuits that are wide towards a node at a time, of all relays, and from it at one relay: 3 MiB more in its memory, which
fit into what may wait to be written."""
CIRCUITS_OF_SESSION_MAX: Final = 256
"""Circuits that one side asked for in one session and that still exist: 100 bytes of state each. A relay's quotas
are far below."""
CIRCUITS_INCOMING_MAX: Final = 32
"""Circuits that one relay may have open to a node at a time: 8 MiB of windows. A quarter of the places for connections."""
CIRCUIT_OPEN_SECONDS: Final = 10.0
"""Seconds in which the other node must have granted credit for a new circuit: three times the way there and back."""
CIRCUITS_OPENED_AT_ONCE_MAX: Final = 64
"""Circuits that a relay opens for one peer without a pause, whether they come to anything; CIRCUITS_OPENED_PER_SECOND more
for each second since. Each is a message to another node, which shakes hands."""
CIRCUITS_OPENED_PER_SECOND: Final = 1.0
CIRCUIT_ACCOUNTS_MAX: Final = 4096
"""Peers, and subnets of strangers, of whose circuits a relay knows what they have used: 1 MB."""
CIRCUIT_LARGE_SIZE: Final = 16 * KIB
"""Bytes of a circuit from which one message is not counted among MESSAGES_PER_SECOND_MAX: credit bounds them, and a fast
line has thousands."""
CIRCUIT_IDLE_SECONDS: Final = 120.0
"""Seconds without a byte of a circuit after which a relay ends it: sessions say `alive1` every 30 seconds."""
CIRCUIT_SUBNET_SHARE: Final = 2
"""Strangers from one subnet have together as much as this many known peers: new keys cost nothing."""
CIRCUIT_HEAD_START_SECONDS: Final = 0.5
"""Seconds for which a peer's own address is tried before a circuit is asked for as well: an answer on a direct way takes
less, and a user who joins by a link waits for it."""
NODES_NAMED_MAX: Final = 16
"""Nodes that a relay names in one message."""
NODES_OF_MEETING_MAX: Final = 1024
"""Nodes that a relay names on one topic without a pause, counted again when they come again: 32 KB.

NODES_OF_MEETING_PER_CHECK more for each keep-alive since; twice is taken."""
NODES_OF_MEETING_PER_CHECK: Final = 16
MEETINGS_AT_ONCE_MAX: Final = 256
"""Topics on which a node asks a relay to name nodes, without a pause: repos. MEETINGS_PER_CHECK more for each keep-alive."""
MEETINGS_PER_CHECK: Final = 64
NODES_OF_TOPIC_TOLD_MAX: Final = 64
"""Nodes of one topic that learn of a newcomer, and of which it learns: the latest ones. Each costs a message."""
NODES_OF_SUBNET_TOLD_MAX: Final = 16
"""Strangers of one subnet among NODES_OF_TOPIC_TOLD_MAX: keys are free, and a node should hear of others, too."""
NODES_OF_SUBNET_NAMED_AT_ONCE_MAX: Final = 32
"""Times without a pause that a relay names strangers of one subnet to those that meet on a topic; one more for each
NODE_OF_SUBNET_NAMED_SECONDS since. With NODES_OF_MEETING_MAX a node would else hear of nobody more after a second."""
NODE_OF_SUBNET_NAMED_SECONDS: Final = 60.0
TOPICS_OF_SUBNET_NAMED_MAX: Final = 256
"""Topics on which a relay names strangers of one subnet within these seconds: as many as one asks for at once. It remembers
CIRCUIT_ACCOUNTS_MAX of all subnets, so one or a few cannot have it forget how often they were named."""
NODES_MET_MAX: Final = 256
"""Nodes that relays have named which a node remembers, the latest of each: 50 KB."""
CIRCUIT_PEERS_WANTED: Final = 2
"""Peers of one repo up to which circuits to nodes that a relay has named are asked for: enough for files. Commits come by
the relay anyway, and each further peer would bring them once more."""
CIRCUIT_DIALS_AT_ONCE_MAX: Final = 4
"""Circuits that are asked for at a time."""
CIRCUIT_BACKOFF_MIN_SECONDS: Final = 1.0
CIRCUIT_BACKOFF_MAX_SECONDS: Final = 60.0
"""Seconds between two circuits that are asked for to one peer and lead nowhere: doubled from the first to the second."""

# --- dialing at one moment ---
PUNCH_ADDRESSES_MAX: Final = 2
"""Addresses that one side says: where the relay sees it, and where it is in its own network."""
PUNCH_ROUNDS_MAX: Final = 3
"""Rounds of punching that two nodes try on one circuit."""
PUNCH_WAIT_SECONDS_MAX: Final = 2.0
"""Seconds of a way from one side to the other: a line that is slower has other troubles."""
PUNCH_SECONDS: Final = 6.0
"""Seconds of one try: the system sends its first packet again after 1 and 3 s. The handshake is part of it."""
PUNCH_TRIES_MAX: Final = 4
"""Dials of one address in one round, if it refuses at once. Three rounds at two addresses are 24 dials at most, of
which LINK_DIALS_AT_ONCE_MAX bounds those of one host."""
PUNCH_RETRY_SECONDS: Final = 0.25
"""Seconds between two dials of one address in one round."""
PUNCH_PAUSES_SECONDS: Final = (0.25, 15.0, 120.0)
"""Seconds before each of PUNCH_ROUNDS_MAX rounds. A direct dial that is on its way comes first, and a changed network gets
another try."""
PUNCH_LOOK_SECONDS: Final = 0.1
PUNCH_LOOK_SECONDS_MAX: Final = 15.0
"""Seconds between two looks whether a topic is joined, without which no round begins: doubled from one to the other."""
PUNCH_TAKEN_MAX: Final = 4
"""Connections that are taken in one try from hosts that the peer has named."""

# --- WebSocket ---
WEBSOCKET_HEAD_SIZE_MAX: Final = 16 * KIB
"""Bytes of a request or an answer of HTTP before the session: what proxies add is some 2 KB. HALF_OPEN_MAX of them are read
at a time."""
WEBSOCKET_MESSAGE_SIZE_MAX: Final = 64 * KIB
"""Bytes of one WebSocket message: one is held until all of it is there."""
WEBSOCKET_SMALL_SIZE: Final = 256
"""Bytes below which a WebSocket frame counts as a small one. A byte in a frame of its own costs 6 us to read."""
WEBSOCKET_SMALL_AT_ONCE_MAX: Final = 16_384
"""Small frames, and those without content, taken without a pause: 0.1 s of work."""
WEBSOCKET_SMALL_OF_STRANGERS_MAX: Final = 512
"""Small frames taken on a connection whose handshake is not done: it has some 300 bytes, were each in a frame of its own."""
WEBSOCKET_SMALL_PER_SECOND_MAX: Final = 4000
"""Small frames taken for each second since: 3 % of a processor. A circuit of 100 MB/s has 1,600 short messages a second."""

# --- the local network ---
LAN_ROTATION_SECONDS: Final = 3600.0
"""Seconds after which a node is announced on its local network anew, by another name and mark."""
LAN_SIGHTINGS_MAX: Final = 1024
"""Addresses heard on the local network that are looked at in that time: each is hashed with every key that is known."""
LAN_LINE_SIZE_MAX: Final = 4 * KIB
"""Bytes of one line of the process that listens on the local network."""
LAN_PAUSE_MIN_SECONDS: Final = 5.0
LAN_PAUSE_MAX_SECONDS: Final = 300.0
"""Seconds before the process that listens on the local network is started again after it ended by itself, doubled
from LAN_PAUSE_MIN_SECONDS to this."""
