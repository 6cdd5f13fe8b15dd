"""Files that a relay keeps for a topic: what is signed, and the rules of a session. Pure.

A member names a file's object, and the topic's key signs that. The relay fetches the tree of its blocks from the member
(`fetch1`), as fast as it likes: ids of children stand in clear. It says when it has all of them. What it keeps, and for
how long, is its own matter (`storage.relay.files`).
"""

from protocol.codec import Wire, encode
from protocol.crypto import hashing, signing
from protocol.crypto.keys import TopicSeed
from protocol.crypto.signing import Claim
from protocol.ids import SHORT_ID_SIZE, ObjectId, ShortId, TopicKey
from protocol.limits.peers import FILES_DEPOSITED_COUNT_MAX, RELAYED_FILE_OVERHEAD
from protocol.session.events import FileListLoaded, FileListWanted, FileSettled, FilesOffered
from protocol.session.machines.table import PeerFault
from protocol.session.messages import DepositFiles, FileDeposit, ListedFiles, ListFiles, SettledFiles
from protocol.session.outputs import FilesAnswered, FilesListed, KeepFiles, LoadFileList, Output, Send
from protocol.session.topic_progress import TopicProgress


class _Deposited(Wire, frozen=True):
    topic: TopicKey
    file: ObjectId
    size: int


def short_file(file: ObjectId) -> ShortId:
    """Return the short id by which relays say which files they keep."""
    return ShortId(file[:SHORT_ID_SIZE])


def size_of(encoded_size: int) -> int:
    """Return the bytes of quota that an encoded block uses."""
    return encoded_size + RELAYED_FILE_OVERHEAD


def sign_deposit(topic_seed: TopicSeed, file: ObjectId, size: int) -> FileDeposit:
    """Sign the deposit of a file. `size` is the sum of `size_of` over its distinct blocks."""
    topic, secret = signing.topic_key_pair(topic_seed)
    digest = hashing.file_deposit_digest(encode(_Deposited(topic, file, size)))
    return FileDeposit(file, size, signing.sign(secret, digest))


def claim_of(topic: TopicKey, deposit: FileDeposit) -> Claim:
    """Return the claim that the topic's key signed a deposit."""
    digest = hashing.file_deposit_digest(encode(_Deposited(topic, deposit.file, deposit.size)))
    return Claim(topic, digest, deposit.signature)


class Deposits:
    """Lists and deposits of files that are under way on one session, by side."""

    def __init__(self, *, is_relay: bool) -> None:
        self._is_relay = is_relay
        self._listing: set[TopicKey] = set()  # topics of which this side has asked for a list
        self._offered: set[tuple[TopicKey, ShortId]] = set()  # by this side, and not answered
        self._peer_lists: set[TopicKey] = set()
        self._peer_offers: set[tuple[TopicKey, ShortId]] = set()

    def ask_list(self, progress: TopicProgress, event: FileListWanted) -> list[Output]:
        """Ask the relay for its files of a topic."""
        self._listing.add(progress.topic)
        return [Send(ListFiles(progress.blind, event.after))]

    def offer(self, progress: TopicProgress, event: FilesOffered) -> list[Output]:
        """Offer files to the relay."""
        self._offered.update((progress.topic, short_file(one.file)) for one in event.files)
        return [Send(DepositFiles(progress.blind, event.files))]

    def answer_list(self, progress: TopicProgress, event: FileListLoaded) -> list[Output]:
        """Answer the peer's question for files of a topic."""
        self._peer_lists.discard(progress.topic)
        return [Send(ListedFiles(progress.blind, event.files))]

    def settle(self, progress: TopicProgress, event: FileSettled) -> list[Output]:
        """Answer one file that the peer offered."""
        self._peer_offers.discard((progress.topic, event.file))
        return [Send(SettledFiles(progress.blind, (event.file,), event.refusal))]

    def handle_list(self, progress: TopicProgress, message: ListFiles) -> list[Output]:
        """Take the peer's question for files of a topic. Raises PeerFault."""
        self._check_relay()
        if progress.topic in self._peer_lists:
            raise PeerFault("too_many_lists")
        self._peer_lists.add(progress.topic)
        return [LoadFileList(progress.topic, message.after)]

    def handle_deposit(self, progress: TopicProgress, message: DepositFiles) -> list[Output]:
        """Take files that the peer offers. Raises PeerFault."""
        self._check_relay()
        fresh = {(progress.topic, short_file(one.file)) for one in message.files}
        if len(fresh) < len(message.files) or fresh & self._peer_offers:
            raise PeerFault("too_many_deposits")  # one would be answered twice
        self._peer_offers |= fresh
        if len(self._peer_offers) > FILES_DEPOSITED_COUNT_MAX:
            raise PeerFault("too_many_deposits")
        return [KeepFiles(progress.topic, message.files)]

    def handle_listed(self, progress: TopicProgress, message: ListedFiles) -> list[Output]:
        """Take the relay's list. Raises PeerFault where it was not asked for."""
        if progress.topic not in self._listing:
            raise PeerFault("unasked_files")
        self._listing.discard(progress.topic)
        return [FilesListed(progress.topic, message.files)]

    def handle_settled(self, progress: TopicProgress, message: SettledFiles) -> list[Output]:
        """Take the relay's answer to offered files. Raises PeerFault where they were not offered."""
        settled = {(progress.topic, file) for file in message.files}
        if len(settled) < len(message.files) or not settled <= self._offered:  # one is answered once
            raise PeerFault("unasked_files")
        self._offered -= settled
        return [FilesAnswered(progress.topic, message.files, message.refusal)]

    def _check_relay(self) -> None:
        if not self._is_relay:
            raise PeerFault("no_relay")
