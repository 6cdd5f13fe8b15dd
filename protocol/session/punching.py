"""Agreement of two nodes that talk through a relay to dial each other at one moment. Pure.

A router lets in what answers to what it has let out. Where both sides dial at once, each router takes the other's packets
for an answer. The sides know where the relay sees them (`seen1`), and dial from the same port. The states are in
`protocol.session.machines.punching`, the sockets and the clock in `node.network.punching`.
"""

from collections.abc import Callable

from protocol.limits.network import PUNCH_ROUNDS_MAX, PUNCH_WAIT_SECONDS_MAX
from protocol.session.events import PunchAnswered, PunchWanted
from protocol.session.machines.punching import PUNCHING, Punch, PunchAction, PunchEvent
from protocol.session.machines.table import PeerFault
from protocol.session.messages import PunchAddresses, PunchNow
from protocol.session.outputs import Output, PunchDue, PunchHeard, Send
from protocol.session.reach import Reach, host_of, reach_of


class Punching:
    """State of the agreement on one session, with the addresses of both sides."""

    def __init__(self, *, is_dialer: bool) -> None:
        self._state = Punch.MAY_ASK if is_dialer else Punch.MAY_HEAR
        self._own: tuple[str, ...] = ()
        self._theirs: tuple[str, ...] = ()
        self._heard = 0

    def ask(self, event: PunchWanted) -> list[Output]:
        """Ask the peer for a direct connection."""
        self._own = event.addresses
        return self._step(PunchEvent.WANT)

    def answer(self, event: PunchAnswered) -> list[Output]:
        """Tell the peer, which has asked, where this side is seen."""
        self._own = event.addresses
        return self._step(PunchEvent.ANSWER)

    def handle_punch(self, message: PunchAddresses) -> list[Output]:
        """Take the peer's addresses. Raises PeerFault where it may not say them."""
        self._theirs = message.addresses
        return self._step(PunchEvent.PUNCH)

    def handle_now(self, _: PunchNow) -> list[Output]:
        """Dial now. Raises PeerFault where the peer may not say so."""
        return self._step(PunchEvent.NOW)

    def _step(self, event: PunchEvent) -> list[Output]:
        step = PUNCHING.find(self._state, event)
        self._state = step.to
        return [output for action in step.outputs for output in self._do(action)]

    def _do(self, action: PunchAction) -> list[Output]:
        match action:
            case PunchAction.SAY_PUNCH:
                return [Send(PunchAddresses(self._own))]
            case PunchAction.FIND:
                self._heard += 1
                if self._heard > PUNCH_ROUNDS_MAX:
                    raise PeerFault("too_many_punches")
                return [PunchHeard()]
            case PunchAction.SAY_NOW if self._own and self._theirs:
                return [Send(PunchNow()), PunchDue(self._theirs, is_later=True)]
            case PunchAction.DIAL if self._own and self._theirs:
                return [PunchDue(self._theirs, is_later=False)]
        return []


def half_way(asked_at: float, answered_at: float) -> float:
    """Estimate the seconds until the peer hears what is said now, by how long the last answer took."""
    return min(max(0.0, answered_at - asked_at) / 2, PUNCH_WAIT_SECONDS_MAX)


def choose_targets(
    theirs: tuple[str, ...],
    own: str,
    local: str,
    is_near: Callable[[str], bool] = lambda _: False,
    is_own: Callable[[str], bool] = lambda _: False,
) -> list[str]:
    """Choose which of the peer's addresses to dial from a node that the relay sees at `own`.

    The first of `theirs` is where the relay sees the peer.

    A peer can say anything, and the relay too. So this node is not made to dial other services of its own host (`local` is
    where it is on its connection with the relay, `is_own` knows its other addresses). One private address is dialed, in a
    network of this machine's (`is_near`, or beside `local`), where the relay sees both at one host, or in that network.
    """
    seen, here = host_of(own), host_of(local)
    if seen is None or here is None or not theirs:
        return []
    is_one_network = host_of(theirs[0]) == seen
    chosen = []
    has_private = False
    for address in dict.fromkeys(theirs):
        host = host_of(address)
        if host is None or host.version != seen.version or address == own:
            continue
        reach = reach_of(host)
        if reach is not Reach.MACHINE and (host == here or is_own(address)):
            continue
        if reach is Reach.PRIVATE:
            is_met = is_one_network or _is_beside(own, address)
            if has_private or not is_met or not (is_near(address) or _is_beside(local, address)):
                continue
            has_private = True
        elif reach is not Reach.EVERYBODY and not (
            reach is Reach.MACHINE is reach_of(seen) is reach_of(here)
        ):
            continue
        chosen.append(address)
    return chosen


def _is_beside(own: str, address: str) -> bool:
    """Return True if two hosts are in one private network, as far as their numbers tell: the first three of four."""
    first, second = host_of(own), host_of(address)
    if first is None or second is None or reach_of(first) is not Reach.PRIVATE:
        return False
    bits = 8 if first.version == 4 else 64
    return int(first) >> bits == int(second) >> bits
