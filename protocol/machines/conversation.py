"""The machines of a session's life: what may be said before topics are announced, and about which topics what.

The first tables are about words that a side says before it announces topics, or not at all. What a side knows (`features1`),
what is compared (`relay2`) and which peers are told about others (`introductions1`) must be agreed before anything is. The
last one takes every message of the peer's to the part that it is for, by how the topic stands that it is about.
"""

from enum import Enum
from typing import Final

from protocol.machines.table import Refuse, Step, Table, go, refuse, stay


class Early(Enum):
    """Whether the peer has said such a word."""

    UNSAID = "it may still be said"
    SAID = "it was said"
    MISSED = "the peer has announced topics without it"


class EarlyWord(Enum):
    """What the peer says."""

    WORD = "the word"
    ANNOUNCEMENT = "`announce2` with a topic at least"


class EarlyDo(Enum):
    """What is done about it."""

    AGREE = "act on it from now on"


def _said_early(title: str, again: Refuse, late: Refuse) -> Table[Early, EarlyWord, EarlyDo]:
    return Table(
        title=title,
        states=Early,
        events=EarlyWord,
        first=(Early.UNSAID,),
        cells={
            (Early.UNSAID, EarlyWord.WORD): go(Early.SAID, EarlyDo.AGREE),
            (Early.SAID, EarlyWord.WORD): again,
            (Early.MISSED, EarlyWord.WORD): late,
            (Early.UNSAID, EarlyWord.ANNOUNCEMENT): go(Early.MISSED),
            **stay((Early.SAID, Early.MISSED), EarlyWord.ANNOUNCEMENT),
        },
    )


FEATURES: Final = _said_early("Saying features1", Refuse("second_features"), Refuse("late_features"))
RELAY: Final = _said_early("Saying relay2", Refuse("second_relay"), Refuse("late_relay"))
INTRODUCTIONS: Final = _said_early(
    "Saying introductions1", Refuse("second_introductions"), Refuse("late_introductions")
)


class About(Enum):
    """How the topic stands that a message is about."""

    NOTHING = "the message is about no one topic"
    FOREIGN = "a topic that is not followed here"
    FOLLOWED = "a topic that the peer has not announced"
    ENTRUSTED = "the same, and the peer was asked to keep it, should it be a relay"
    JOINED = "a topic that both have announced"


class Word(Enum):
    """Messages, by their tags, and all those that are not known here."""

    ALIVE = "alive1"
    GOODBYE = "goodbye1"
    FEATURES = "features1"
    ANNOUNCE = "announce2"
    RELAY = "relay2"
    INTRODUCTIONS = "introductions1"
    DEPOSIT = "deposit1"
    LIST_FILES = "list-files1"
    LISTED_FILES = "listed-files1"
    DEPOSIT_FILES = "deposit-files1"
    SETTLED_FILES = "settled-files1"
    JOIN_ACCOUNT = "join-account1"
    ACCOUNT_JOINED = "account-joined1"
    SUMMARY = "sum3"
    RECONCILE = "reconcile1"
    PUBLICATIONS = "publications1"
    RECEIPT = "receipt1"
    WANT = "want1"
    WANT_BODIES = "want-bodies1"
    FOUND_BODIES = "found-bodies1"
    REFUSED = "refused1"
    INTRODUCE = "introduce1"
    SEEN = "seen1"
    FETCH = "fetch1"
    CIRCUITS = "circuits1"
    CIRCUIT_OPEN = "circuit-open1"
    CIRCUIT_DATA = "circuit-data1"
    CIRCUIT_CREDIT = "circuit-credit1"
    CIRCUIT_CLOSE = "circuit-close1"
    PUNCH = "punch1"
    PUNCH_NOW = "punch-now1"
    MEET = "meet1"
    NODES = "nodes1"
    BLOCKS = "blocks1"
    PRESENCE = "presence1"


class Pass(Enum):
    """What a message is passed to."""

    JOIN = "join topics that are followed here, and note the others"
    EARLY_FEATURES = "*Saying features1*"
    EARLY_RELAY = "*Saying relay2*"
    EARLY_INTRODUCTIONS = "*Saying introductions1*"
    OPEN_TOPICS = "follow the topics, where that may be"
    LIST_FILES = "say `listed-files1`"
    NOTE_FILES = "note which files the peer keeps"
    KEEP_FILES = "fetch the files' blocks, keep them, and say `settled-files1`"
    SETTLE_FILES = "note which files the peer keeps now, or why not"
    JOIN_ACCOUNT = "see whose link it is, and say `account-joined1`"
    NOTE_ACCOUNT = "note what the account may keep there"
    COMPARE = "*Comparison of a topic*"
    SEND = "*Sending on a topic*"
    SERVE = "*Answering want1, want-bodies1 and fetch1*"
    NOTE_BODIES = "note how many of the bodies are to come"
    INGEST = "verify and store the batch, then say `receipt1`"
    LEARN = "note where peers can be dialed"
    NOTE = "note where the peer sees this node"
    PUNCH = "*Dialing at one moment*"
    TAKE_CIRCUITS = "*Saying circuits1*"
    CARRY = "*A circuit on one session*"
    MEET = "name other nodes on the topic to the peer, and the peer to them"
    LEARN_NODES = "note to which nodes circuits can be asked for"
    HAND_OVER = "hand the blocks to who asked for them"
    SHOW = "show who has the text open, where it is no forgery"


_OF_CIRCUITS: Final = (Word.CIRCUIT_OPEN, Word.CIRCUIT_DATA, Word.CIRCUIT_CREDIT, Word.CIRCUIT_CLOSE)
_GENERAL: Final = (
    Word.ALIVE,
    Word.GOODBYE,
    Word.FEATURES,
    Word.ANNOUNCE,
    Word.RELAY,
    Word.INTRODUCTIONS,
    Word.DEPOSIT,
    Word.SEEN,
    Word.PUNCH,
    Word.PUNCH_NOW,
    Word.CIRCUITS,
    Word.JOIN_ACCOUNT,
    Word.ACCOUNT_JOINED,
    *_OF_CIRCUITS,
)
_OF_TOPICS: Final = tuple(word for word in Word if word not in _GENERAL)
_UNJOINED: Final = (About.FOREIGN, About.FOLLOWED, About.ENTRUSTED)
_A, _W = About, Word


def _strays() -> dict[tuple[About, Word], Step[About, Pass] | Refuse]:
    """Messages about a topic that is not joined."""
    cells: dict[tuple[About, Word], Step[About, Pass] | Refuse] = {}
    for word in _OF_TOPICS:
        cells.update(refuse(_UNJOINED, word, Refuse("unknown_topic")))
    return cells


MESSAGES: Final = Table(
    title="Messages of the peer",
    states=About,
    events=Word,
    first=tuple(About),
    cells={
        **_strays(),
        (_A.NOTHING, _W.ALIVE): go(_A.NOTHING),
        (_A.NOTHING, _W.GOODBYE): Refuse("peer_left"),
        (_A.NOTHING, _W.ANNOUNCE): go(_A.NOTHING, Pass.JOIN),
        (_A.NOTHING, _W.FEATURES): go(_A.NOTHING, Pass.EARLY_FEATURES),
        (_A.NOTHING, _W.RELAY): go(_A.NOTHING, Pass.EARLY_RELAY),
        (_A.NOTHING, _W.INTRODUCTIONS): go(_A.NOTHING, Pass.EARLY_INTRODUCTIONS),
        (_A.NOTHING, _W.DEPOSIT): go(_A.NOTHING, Pass.OPEN_TOPICS),
        (_A.NOTHING, _W.JOIN_ACCOUNT): go(_A.NOTHING, Pass.JOIN_ACCOUNT),
        (_A.NOTHING, _W.ACCOUNT_JOINED): go(_A.NOTHING, Pass.NOTE_ACCOUNT),
        (_A.NOTHING, _W.SEEN): go(_A.NOTHING, Pass.NOTE),
        **{(_A.NOTHING, word): go(_A.NOTHING, Pass.PUNCH) for word in (_W.PUNCH, _W.PUNCH_NOW)},
        (_A.NOTHING, _W.CIRCUITS): go(_A.NOTHING, Pass.TAKE_CIRCUITS),
        **{(_A.NOTHING, word): go(_A.NOTHING, Pass.CARRY) for word in _OF_CIRCUITS},
        # A relay says so where it does not keep a topic: it cannot be joined then.
        (_A.ENTRUSTED, _W.REFUSED): go(_A.ENTRUSTED, Pass.SEND),
        (_A.JOINED, _W.SUMMARY): go(_A.JOINED, Pass.COMPARE),
        (_A.JOINED, _W.RECONCILE): go(_A.JOINED, Pass.COMPARE),
        (_A.JOINED, _W.PUBLICATIONS): go(_A.JOINED, Pass.INGEST),
        (_A.JOINED, _W.RECEIPT): go(_A.JOINED, Pass.SEND),
        (_A.JOINED, _W.REFUSED): go(_A.JOINED, Pass.SEND),
        (_A.JOINED, _W.WANT): go(_A.JOINED, Pass.SERVE),
        (_A.JOINED, _W.WANT_BODIES): go(_A.JOINED, Pass.SERVE),
        (_A.JOINED, _W.FOUND_BODIES): go(_A.JOINED, Pass.NOTE_BODIES),
        (_A.JOINED, _W.FETCH): go(_A.JOINED, Pass.SERVE),
        (_A.JOINED, _W.LIST_FILES): go(_A.JOINED, Pass.LIST_FILES),
        (_A.JOINED, _W.LISTED_FILES): go(_A.JOINED, Pass.NOTE_FILES),
        (_A.JOINED, _W.DEPOSIT_FILES): go(_A.JOINED, Pass.KEEP_FILES),
        (_A.JOINED, _W.SETTLED_FILES): go(_A.JOINED, Pass.SETTLE_FILES),
        (_A.JOINED, _W.INTRODUCE): go(_A.JOINED, Pass.LEARN),
        (_A.JOINED, _W.MEET): go(_A.JOINED, Pass.MEET),
        (_A.JOINED, _W.NODES): go(_A.JOINED, Pass.LEARN_NODES),
        (_A.JOINED, _W.BLOCKS): go(_A.JOINED, Pass.HAND_OVER),
        (_A.JOINED, _W.PRESENCE): go(_A.JOINED, Pass.SHOW),
    },
    impossible={
        **dict.fromkeys(_GENERAL, "the message names no topic, or topics in another form"),
        **dict.fromkeys(_OF_TOPICS, "the message names a topic"),
    },
    bounds={
        Pass.JOIN: (Refuse("too_many_topics"),),
        Pass.OPEN_TOPICS: (Refuse("no_relay"), Refuse("too_many_topics")),
        Pass.INGEST: (Refuse("too_many_batches"),),
        Pass.LEARN: (Refuse("unasked_introduction"), Refuse("too_many_introductions")),
        Pass.MEET: (Refuse("no_circuits"), Refuse("too_many_meetings")),
        Pass.LEARN_NODES: (Refuse("unasked_nodes"), Refuse("too_many_nodes")),
        Pass.LIST_FILES: (Refuse("no_relay"), Refuse("too_many_lists")),
        Pass.NOTE_FILES: (Refuse("unasked_files"),),
        Pass.KEEP_FILES: (Refuse("no_relay"), Refuse("too_many_deposits")),
        Pass.SETTLE_FILES: (Refuse("unasked_files"),),
        Pass.JOIN_ACCOUNT: (Refuse("no_relay"), Refuse("too_many_account_links")),
        Pass.NOTE_ACCOUNT: (Refuse("unasked_account"),),
        Pass.NOTE_BODIES: (Refuse("unasked_bodies"),),
        Pass.HAND_OVER: (Refuse("unasked_blocks"), Refuse("wrong_block")),
    },
)
