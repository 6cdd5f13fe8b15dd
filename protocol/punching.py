"""How two nodes that talk through a relay come to dial each other at one moment (`protocol.machines.punching`). Pure.

A router lets in what answers to what it has let out. Where both sides dial at once, each router takes the other's packets
for an answer. The sides know where the relay sees them (`seen1`), and dial from the same port. `node.sync.punching` has
the sockets and the clock.
"""

from protocol.limits.peers import PUNCH_ROUNDS_MAX, PUNCH_WAIT_SECONDS_MAX
from protocol.machines.punching import PUNCHING, Punch, PunchDo, PunchEvent
from protocol.machines.table import PeerFault
from protocol.messages import PunchAddresses, PunchNow
from protocol.reach import Reach, host_of, reach_of
from protocol.session_events import PunchAnswered, PunchWanted
from protocol.session_outputs import Output, PunchDue, PunchHeard, Send


class Punching:
    """The part of a session machine that is about this."""

    def __init__(self, *, is_dialer: bool) -> None:
        self._state = Punch.MAY_ASK if is_dialer else Punch.MAY_HEAR
        self._own: tuple[str, ...] = ()
        self._theirs: tuple[str, ...] = ()
        self._heard = 0

    def receive(self, message: PunchAddresses | PunchNow) -> list[Output]:
        """What the peer says. Raises PeerFault where it may not."""
        if isinstance(message, PunchNow):
            return self._step(PunchEvent.NOW)
        self._theirs = message.addresses
        return self._step(PunchEvent.PUNCH)

    def happen(self, event: PunchWanted | PunchAnswered) -> list[Output]:
        """What this side does."""
        self._own = event.addresses
        return self._step(PunchEvent.WANT if isinstance(event, PunchWanted) else PunchEvent.ANSWER)

    def _step(self, event: PunchEvent) -> list[Output]:
        step = PUNCHING.find(self._state, event)
        self._state = step.to
        return [output for what in step.outputs for output in self._do(what)]

    def _do(self, what: PunchDo) -> list[Output]:
        match what:
            case PunchDo.SAY_PUNCH:
                return [Send(PunchAddresses(self._own))]
            case PunchDo.FIND:
                self._heard += 1
                if self._heard > PUNCH_ROUNDS_MAX:
                    raise PeerFault("too_many_punches")
                return [PunchHeard()]
            case PunchDo.SAY_NOW if self._own and self._theirs:
                return [Send(PunchNow()), PunchDue(self._theirs, is_later=True)]
            case PunchDo.DIAL if self._own and self._theirs:
                return [PunchDue(self._theirs, is_later=False)]
        return []


def half_way(asked_at: float, answered_at: float) -> float:
    """Seconds until the peer hears what is said now, as far as the last answer tells."""
    return min(max(0.0, answered_at - asked_at) / 2, PUNCH_WAIT_SECONDS_MAX)


def choose_targets(theirs: tuple[str, ...], own: str) -> list[str]:
    """Which of the peer's addresses are dialed by a node that the relay sees at `own`. The first is where it sees the peer.

    A peer can say anything. Its private addresses are dialed where the relay sees both at one host, or in one private
    network: a router's other addresses are nobody's business.
    """
    seen = host_of(own)
    if seen is None or not theirs:
        return []
    is_one_network = host_of(theirs[0]) == seen
    chosen = []
    for address in dict.fromkeys(theirs):
        host = host_of(address)
        if host is None or host.version != seen.version or address == own:
            continue
        match reach_of(host):
            case Reach.EVERYBODY:
                chosen.append(address)
            case Reach.PRIVATE if is_one_network or _is_beside(own, address):
                chosen.append(address)
            case Reach.MACHINE if reach_of(seen) is Reach.MACHINE:
                chosen.append(address)
    return chosen


def _is_beside(own: str, address: str) -> bool:
    """Whether two hosts are in one private network, as far as their numbers tell: the first three of four are alike."""
    first, second = host_of(own), host_of(address)
    if first is None or second is None or reach_of(first) is not Reach.PRIVATE:
        return False
    bits = 8 if first.version == 4 else 64
    return int(first) >> bits == int(second) >> bits
