"""Files at relays, on one session: who may ask and answer what, and how often."""

from typing import Final

import pytest

from protocol.crypto.keys import TopicSeed
from protocol.crypto.signing import check_claims, public_key
from protocol.ids import BlindTopic, BlockId, ObjectId, ShortId, TopicKey
from protocol.limits.peers import FILES_DEPOSITED_COUNT_MAX
from protocol.session.deposits import Deposits, claim_of, short_file, sign_deposit, size_of
from protocol.session.events import FileListLoaded, FileListWanted, FileSettled, FilesOffered
from protocol.session.machines.table import PeerFault
from protocol.session.messages import DepositFiles, FileDeposit, ListedFiles, ListFiles, SettledFiles
from protocol.session.outputs import FilesAnswered, FilesListed, KeepFiles, LoadFileList, Send
from protocol.session.topic_progress import TopicProgress

TOPIC: Final = TopicKey(b"t" * 32)
BLIND: Final = BlindTopic(b"b" * 32)
PROGRESS: Final = TopicProgress(TOPIC, BLIND, is_own=True, is_entrusted=True)
LOWEST: Final = ShortId(bytes(16))


def _deposit(number: int) -> FileDeposit:
    return sign_deposit(TopicSeed(b"s" * 32), ObjectId(BlockId(number.to_bytes(16, "big") * 2)), 300)


def test_a_deposit_holds_for_its_topic_file_and_size_alone() -> None:
    deposit = _deposit(7)
    topic = public_key(TopicSeed(b"s" * 32))
    others = [
        claim_of(TOPIC, deposit),
        claim_of(topic, FileDeposit(deposit.file, 301, deposit.signature)),
        claim_of(topic, FileDeposit(_deposit(8).file, 300, deposit.signature)),
    ]
    assert check_claims([claim_of(topic, deposit), *others]) == [True, False, False, False]


def test_small_blocks_do_not_count_as_nothing() -> None:
    """Or a relay's quota would hold any number of empty ones."""
    assert size_of(0) > 0
    assert size_of(1000) - size_of(0) == 1000


def test_a_relay_lists_keeps_and_settles() -> None:
    member, relay = Deposits(is_relay=False), Deposits(is_relay=True)
    first = _deposit(1)
    short = short_file(first.file)
    assert member.ask_list(PROGRESS, FileListWanted(TOPIC, LOWEST)) == [Send(ListFiles(BLIND, LOWEST))]
    assert relay.handle_list(PROGRESS, ListFiles(BLIND, LOWEST)) == [LoadFileList(TOPIC, LOWEST)]
    assert relay.answer_list(PROGRESS, FileListLoaded(TOPIC, ())) == [Send(ListedFiles(BLIND, ()))]
    assert member.handle_listed(PROGRESS, ListedFiles(BLIND, ())) == [FilesListed(TOPIC, ())]
    assert member.offer(PROGRESS, FilesOffered(TOPIC, (first,))) == [Send(DepositFiles(BLIND, (first,)))]
    assert relay.handle_deposit(PROGRESS, DepositFiles(BLIND, (first,))) == [KeepFiles(TOPIC, (first,))]
    settled = SettledFiles(BLIND, (short,), "topic_full")
    assert relay.settle(PROGRESS, FileSettled(TOPIC, short, "topic_full")) == [Send(settled)]
    assert member.handle_settled(PROGRESS, settled) == [FilesAnswered(TOPIC, (short,), "topic_full")]
    with pytest.raises(PeerFault, match="unasked_files"):
        member.handle_settled(PROGRESS, settled)
    with pytest.raises(PeerFault, match="unasked_files"):
        member.handle_listed(PROGRESS, ListedFiles(BLIND, ()))
    with pytest.raises(PeerFault, match="no_relay"):
        member.handle_list(PROGRESS, ListFiles(BLIND, LOWEST))
    with pytest.raises(PeerFault, match="no_relay"):
        member.handle_deposit(PROGRESS, DepositFiles(BLIND, (first,)))


def test_a_relay_takes_so_many_deposits_and_lists_at_a_time() -> None:
    relay = Deposits(is_relay=True)
    relay.handle_deposit(
        PROGRESS, DepositFiles(BLIND, tuple(map(_deposit, range(FILES_DEPOSITED_COUNT_MAX))))
    )
    relay.settle(PROGRESS, FileSettled(TOPIC, short_file(_deposit(0).file), ""))
    with pytest.raises(PeerFault, match="too_many_deposits"):
        relay.handle_deposit(PROGRESS, DepositFiles(BLIND, (_deposit(1),)))  # twice
    relay.handle_deposit(PROGRESS, DepositFiles(BLIND, (_deposit(0),)))
    with pytest.raises(PeerFault, match="too_many_deposits"):
        relay.handle_deposit(PROGRESS, DepositFiles(BLIND, (_deposit(1000),)))
    relay.handle_list(PROGRESS, ListFiles(BLIND, LOWEST))
    with pytest.raises(PeerFault, match="too_many_lists"):
        relay.handle_list(PROGRESS, ListFiles(BLIND, LOWEST))


def test_a_file_is_settled_once_in_a_message() -> None:
    member = Deposits(is_relay=False)
    member.offer(PROGRESS, FilesOffered(TOPIC, (_deposit(1),)))
    short = short_file(_deposit(1).file)
    with pytest.raises(PeerFault, match="unasked_files"):
        member.handle_settled(PROGRESS, SettledFiles(BLIND, (short, short), ""))
