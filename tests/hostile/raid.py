"""An attack at full speed on a real daemon: what the attacker's own process does."""

import time
from contextlib import suppress
from dataclasses import dataclass

import trio

from tests.hostile.attacks import ATTACKS
from tests.hostile.peer import Attacker, Effort, Parted
from tests.hostile.stage import Stage

SIZE = 20
"""Times that a round is larger than in the short run."""
_PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Raid:
    """What to attack, where, how, and for how long."""

    name: str
    stage: Stage
    address: str
    api: str
    web: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Raided:
    """What the attacker has seen."""

    runs: int  # of the script
    connections: int
    sent: dict[str, int]
    heard: dict[str, int]
    reasons: dict[str, int]  # of goodbyes
    failures: tuple[str, ...]  # of what the script asserts


def warm_up() -> int:
    """Import what an attacker needs, so that its process is there when it is to attack."""
    return len(ATTACKS)


def raid(what: Raid) -> Raided:
    """Run an attack again and again until its time is up. An empty name: wait as long."""
    if not what.name:
        time.sleep(what.seconds)
        return Raided(0, 0, {}, {}, {}, ())
    return trio.run(_raid, what)


async def _raid(what: Raid) -> Raided:
    connections, runs = 0, 0
    failures: list[str] = []

    async def open_to(address: str) -> trio.abc.Stream:
        host, _, port = address.rpartition(":")
        return await trio.open_tcp_stream(host, int(port))

    async def open_wire() -> trio.abc.Stream:
        nonlocal connections
        connections += 1
        return await open_to(what.address)

    async def open_api() -> trio.abc.Stream:
        return await open_to(what.api)

    async def open_web() -> trio.abc.Stream:
        return await open_to(what.web)

    effort = Effort(size=SIZE, until=time.monotonic() + what.seconds)
    async with trio.open_nursery() as everything:
        attacker = Attacker(what.stage, open_wire, everything, effort, open_api=open_api, open_web=open_web)
        with trio.move_on_after(what.seconds + 1):
            while not effort.is_over:
                runs += 1
                async with trio.open_nursery() as attacker.nursery:
                    try:
                        with suppress(Parted, trio.BrokenResourceError, trio.ClosedResourceError):
                            await ATTACKS[what.name].script(attacker)
                    except AssertionError as error:
                        failures.append(str(error)[:500])
                    await attacker.leave()
                    attacker.nursery.cancel_scope.cancel()
                await trio.sleep(_PAUSE_SECONDS)
    return Raided(
        runs,
        connections,
        dict(attacker.sent),
        dict(attacker.heard),
        dict(attacker.reasons),
        tuple(failures[:3]),
    )
