"""Machines of one topic's transfer: publications that are sent, and questions of the peer's that are answered.

Queues and the batches without a receipt stand beside the state (`protocol.session.topic_progress`). Of what is taken from
the peer nothing but such counts is kept, so it has no machine: batches that were not receipted, and blocks that were asked
for.
"""

from enum import Enum
from typing import Final

from protocol.session.machines.table import PeerFaultCell, Table, go, stay


class Sending(Enum):
    """States of sending: whether a batch of the topic is being read from the store."""

    OPEN = "batches may be read"
    LOADING = "one is being read"
    REFUSED = "the peer takes no more"
    REFUSED_LOADING = "the same, and a batch is still being read"


class Sent(Enum):
    """Events of sending."""

    MORE = "commits are to be sent: planned, accepted, wanted, or found by a reconciliation"
    TURN = "the topic's turn to read a batch"
    BATCH = "the batch was read"
    NOTHING = "the batch was read, and nothing of it is there any more"
    RECEIPT = "`receipt1`"
    REFUSAL = "`refused1`"


class SendingAction(Enum):
    """Outputs of sending."""

    QUEUE = "queue them"
    LOAD = "read the first ones of the queue"
    SAY = "say `publications1`, and go on in the queue behind them"
    SKIP = "go on in the queue behind the first one"
    CONFIRM = "count the first batch without a receipt as taken"
    FORGET = "note the reason, and forget the queue"


_Q, _T = Sending, Sent

SENDING: Final = Table(
    title="Sending on a topic",
    states=Sending,
    events=Sent,
    first=(Sending.OPEN,),
    cells={
        **stay((_Q.OPEN, _Q.LOADING), _T.MORE, SendingAction.QUEUE),
        **stay((_Q.REFUSED, _Q.REFUSED_LOADING), _T.MORE),
        (_Q.OPEN, _T.TURN): go(_Q.LOADING, SendingAction.LOAD),
        (_Q.LOADING, _T.BATCH): go(_Q.OPEN, SendingAction.SAY),
        (_Q.LOADING, _T.NOTHING): go(_Q.OPEN, SendingAction.SKIP),
        (_Q.REFUSED_LOADING, _T.BATCH): go(_Q.REFUSED),
        (_Q.REFUSED_LOADING, _T.NOTHING): go(_Q.REFUSED),
        **stay(tuple(Sending), _T.RECEIPT, SendingAction.CONFIRM),
        (_Q.OPEN, _T.REFUSAL): go(_Q.REFUSED, SendingAction.FORGET),
        (_Q.LOADING, _T.REFUSAL): go(_Q.REFUSED_LOADING, SendingAction.FORGET),
        **stay((_Q.REFUSED, _Q.REFUSED_LOADING), _T.REFUSAL, SendingAction.FORGET),
    },
    impossible={
        _T.TURN: "a batch is being read already, or the queue was forgotten",
        _T.BATCH: "no batch is being read",
        _T.NOTHING: "no batch is being read",
    },
    bounds={SendingAction.CONFIRM: (PeerFaultCell("unasked_receipt"),)},
)


class Serving(Enum):
    """States of the peer's questions for commits (`want1`), bodies (`want-bodies1`) or blocks (`fetch1`)."""

    IDLE = "all are answered"
    BUSY = "the first one is being looked up"


class Served(Enum):
    """Events of the peer's questions."""

    ASKED = "`want1`, `want-bodies1` or `fetch1`"
    FOUND = "the first one was looked up, and another waits"
    FOUND_LAST = "the first one was looked up, and no other waits"


class ServingAction(Enum):
    """Outputs of serving."""

    NOTE = "put the question behind those that wait"
    LOOK_UP = "look the first one up"
    ANSWER = (
        "queue what is here, and say `found-bodies1` of bodies; or say `blocks1`. The question waits no more"
    )


SERVING: Final = Table(
    title="Answering want1, want-bodies1 and fetch1",
    states=Serving,
    events=Served,
    first=(Serving.IDLE,),
    cells={
        (Serving.IDLE, Served.ASKED): go(Serving.BUSY, ServingAction.NOTE, ServingAction.LOOK_UP),
        (Serving.BUSY, Served.ASKED): go(Serving.BUSY, ServingAction.NOTE),
        (Serving.BUSY, Served.FOUND): go(Serving.BUSY, ServingAction.ANSWER, ServingAction.LOOK_UP),
        (Serving.BUSY, Served.FOUND_LAST): go(Serving.IDLE, ServingAction.ANSWER),
    },
    impossible={
        Served.FOUND: "nothing is being looked up",
        Served.FOUND_LAST: "nothing is being looked up",
    },
    bounds={ServingAction.NOTE: (PeerFaultCell("too_many_fetches"),)},
)
