"""Files that a relay keeps for a topic: what is signed, and the rules of a session. Pure.

A member names a file's object, and the topic's key signs that. The relay fetches the tree of its blocks from the member
(`fetch1`), as fast as it likes: ids of children stand in clear. It says when it has all of them. What it keeps, and for
how long, is its own matter (`storage.relay.files`).
"""

from protocol import hashing, signing
from protocol.codec import Wire, encode
from protocol.ids import SHORT_ID_SIZE, BlindTopic, ObjectId, ShortId, TopicKey
from protocol.keys import TopicSeed
from protocol.limits.peers import FILES_DEPOSITED_COUNT_MAX, RELAYED_FILE_OVERHEAD
from protocol.machines.table import PeerFault
from protocol.messages import DepositFiles, FileDeposit, ListedFiles, ListFiles, SettledFiles
from protocol.session_events import FileListLoaded, FileListWanted, FileSettled, FilesOffered
from protocol.session_outputs import FilesAnswered, FilesListed, KeepFiles, LoadFileList, Output, Send
from protocol.signing import Claim


class _Deposited(Wire, frozen=True):
    topic: TopicKey
    file: ObjectId
    size: int


def short_file(file: ObjectId) -> ShortId:
    """How a file is called where relays say which ones they keep."""
    return ShortId(file[:SHORT_ID_SIZE])


def size_of(encoded_size: int) -> int:
    """What a block of so many bytes counts."""
    return encoded_size + RELAYED_FILE_OVERHEAD


def sign_deposit(topic_seed: TopicSeed, file: ObjectId, size: int) -> FileDeposit:
    """The deposit of a file whose different blocks count so much together."""
    topic, secret = signing.topic_key_pair(topic_seed)
    digest = hashing.file_deposit_digest(encode(_Deposited(topic, file, size)))
    return FileDeposit(file, size, signing.sign(secret, digest))


def claim_of(topic: TopicKey, deposit: FileDeposit) -> Claim:
    """That the topic's key signed a deposit."""
    digest = hashing.file_deposit_digest(encode(_Deposited(topic, deposit.file, deposit.size)))
    return Claim(topic, digest, deposit.signature)


class Deposits:
    """The part of a session machine that is about files at a relay."""

    def __init__(self, *, is_relay: bool) -> None:
        self._is_relay = is_relay
        self._listing: set[TopicKey] = set()  # topics of which this side has asked for a list
        self._offered: set[tuple[TopicKey, ShortId]] = set()  # by this side, and not answered
        self._peer_lists: set[TopicKey] = set()
        self._peer_offers: set[tuple[TopicKey, ShortId]] = set()

    def happen(
        self, blind: BlindTopic, event: FileListWanted | FilesOffered | FileListLoaded | FileSettled
    ) -> list[Output]:
        """What this side asks for or answers."""
        match event:
            case FileListWanted(topic, after):
                self._listing.add(topic)
                return [Send(ListFiles(blind, after))]
            case FilesOffered(topic, files):
                self._offered.update((topic, short_file(one.file)) for one in files)
                return [Send(DepositFiles(blind, files))]
            case FileListLoaded(topic, listed):
                self._peer_lists.discard(topic)
                return [Send(ListedFiles(blind, listed))]
            case FileSettled(topic, file, refusal):
                self._peer_offers.discard((topic, file))
                return [Send(SettledFiles(blind, (file,), refusal))]

    def asked(self, topic: TopicKey, message: ListFiles | DepositFiles) -> list[Output]:
        """The peer asks this relay. Raises PeerFault."""
        if not self._is_relay:
            raise PeerFault("no_relay")
        if isinstance(message, ListFiles):
            if topic in self._peer_lists:
                raise PeerFault("too_many_lists")
            self._peer_lists.add(topic)
            return [LoadFileList(topic, message.after)]
        fresh = {(topic, short_file(one.file)) for one in message.files}
        if len(fresh) < len(message.files) or fresh & self._peer_offers:
            raise PeerFault("too_many_deposits")  # one would be answered twice
        self._peer_offers |= fresh
        if len(self._peer_offers) > FILES_DEPOSITED_COUNT_MAX:
            raise PeerFault("too_many_deposits")
        return [KeepFiles(topic, message.files)]

    def answered(self, topic: TopicKey, message: ListedFiles | SettledFiles) -> list[Output]:
        """The peer answers what this side asked it for. Raises PeerFault where it did not."""
        if isinstance(message, ListedFiles):
            if topic not in self._listing:
                raise PeerFault("unasked_files")
            self._listing.discard(topic)
            return [FilesListed(topic, message.files)]
        settled = {(topic, file) for file in message.files}
        if len(settled) < len(message.files) or not settled <= self._offered:  # one is answered once
            raise PeerFault("unasked_files")
        self._offered -= settled
        return [FilesAnswered(topic, message.files, message.refusal)]
