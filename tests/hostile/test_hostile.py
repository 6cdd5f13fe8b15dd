"""The short run of every attack: what is promised holds, and what it costs is counted. `run` has the long one."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from node.content.erasing import erase_store
from protocol.formats.content import Compaction
from storage.blobs.garbage_collection import collect_garbage
from tests.hostile.attacks import ATTACKS
from tests.hostile.peer import Attacker, Parted
from tests.hostile.siege import (
    PLACES,
    Siege,
    besieged,
    capture_logs,
    prepare,
    reasons,
    remember_statements,
    watched,
)
from tests.hostile.stage import Stage
from tests.hostile.table import OVER_BUDGET, Attack, Role
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import connected, open_nodes, until_equal

OPEN: Final[dict[str, str]] = {"backdated_commits": "L8"}
"""Attacks that do not hold yet, and the finding: a fix takes its line away."""

QUICK: Final = frozenset(
    {
        # What was found: H1, H2, H3, M3, M4, L8 and B.
        "merges_with_an_implied_ack",
        "merges_of_a_reader",
        "merges_of_the_excluded",
        "waiting_for_many_causes",
        "keep_alives",
        "empty_announcements",
        "idle_strangers",
        "half_open_connections",
        "questions_for_ranges",
        "backdated_commits",
        "forged_topic_signatures",
        # What is said of epochs and topics.
        "keys_of_epochs_that_never_were",
        "commits_that_say_another_topic",
        # The other messages, one attack each.
        "announce_floods",
        "summaries_out_of_turn",
        "symbols_for_nothing",
        "garbage_publications",
        "receipts_for_nothing",
        "wants_of_nothing",
        "fetches_too_many",
        "blocks_nobody_asked_for",
        "a_late_relay",
        "deposits_of_many_topics",
        "circuits_to_nobody",
        "data_for_circuits_of_others",
        "more_than_the_credit",
        "circuits_of_a_false_relay",
        "punches_beside_a_circuit",
        "introductions_twice",
        "introductions_on_a_writers_topic",
        "refusals",
        "more_after_a_goodbye",
        # What is no message, and what comes before the first.
        "unknown_messages",
        "garbage_handshakes",
    }
)
"""Attacks that run with the quick tests; the others are of the second tier."""
_ANY_TIME: Final = 1 << 62
_LAST_WORDS_SECONDS: Final = 5.0
"""Virtual seconds in which a connection that is ending has ended: with them no end is overlooked."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Stage]:
    """Stores to be copied, and what attackers know of them."""
    folder = tmp_path_factory.mktemp("prepared")
    return folder, prepare(folder)


def _marks(name: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.xfail(strict=True, reason=OPEN[name])] if name in OPEN else []
    return marks if name in QUICK else [*marks, pytest.mark.extended]


def _short() -> list[object]:
    return [
        pytest.param(one, id=name, marks=_marks(name))
        for name, one in sorted(ATTACKS.items())
        if not one.needs_daemon
    ]


@pytest.mark.slow
@pytest.mark.parametrize("attack", _short())
async def test_an_attack_costs_what_it_may_and_honest_peers_go_on(
    attack: Attack,
    prepared: tuple[Path, Stage],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
) -> None:
    stores, stage = prepared
    monkeypatch.setattr("node.network.network.CONNECTIONS_MAX", PLACES)
    remember_statements(monkeypatch)
    with fail_after(1000), capture_logs() as logs:
        async with besieged(stores, tmp_path / "nodes", is_relay=attack.role is Role.RELAY_CLIENT) as siege:
            before = siege.rows()
            async with trio.open_nursery() as nursery:
                mallory = Attacker(stage, siege.open_wire, nursery, places=PLACES)
                with watched(siege.victim, monkeypatch) as counts:
                    with suppress(Parted):
                        await attack.script(mallory)
                    ended = await _ended(attack, lambda: reasons(logs, siege.honest))
                assert ended <= attack.ends | OVER_BUDGET
                assert ended or not attack.ends or "" in attack.ends
                _check_rows(attack, before, siege)
                exceeded = {
                    name: (count, asdict(attack.work)[name])
                    for name, count in counts.as_dict().items()
                    if count > asdict(attack.work)[name]
                }
                assert exceeded == {}, "done, and what may be"
                assert siege.network.book.all == [], "no attacker has the node dial anybody"
                await siege.write()
                await siege.meet_honest()
                await mallory.leave()
                nursery.cancel_scope.cancel()
        assert not [line for line in logs if line["log_level"] in ("error", "critical")], "no defect showed"


async def _ended(attack: Attack, found: Callable[[], dict[str, int]]) -> set[str]:
    """The reasons with which the victim has ended connections, once it has where it should."""
    with trio.move_on_after(200):
        while attack.ends and "" not in attack.ends and not found():  # noqa: ASYNC110  # a line of the log
            await trio.sleep(1)
    await trio.sleep(_LAST_WORDS_SECONDS)
    return set(found())


def _check_rows(attack: Attack, before: dict[str, int], siege: Siege) -> None:
    """Nothing is stored but what the attack may have stored: blocks, heads and places as its commits have."""
    commits = attack.stores.get("commits", 0)
    beside = {
        "blocks": 2 * commits,
        "heads": commits,
        "group_places": commits,
        "authors": 3,
        "changes": commits,
        "relay_sums": 2,  # of all, and of the attacker
    }
    more = {name: count - before[name] for name, count in siege.rows().items()}
    assert {
        name: count for name, count in more.items() if count > attack.stores.get(name, beside.get(name, 0))
    } == {}


def test_every_attack_says_what_is_promised() -> None:
    assert [name for name, one in ATTACKS.items() if not one.promise.endswith((".", ")."))] == []
    assert len(ATTACKS) > 40
    assert OPEN.keys() <= QUICK <= ATTACKS.keys()


@pytest.mark.slow
async def test_newcomers_get_a_commit_that_says_no_kind_after_bodies_were_erased(
    prepared: tuple[Path, Stage], tmp_path: Path, autojump_clock: MockClock
) -> None:
    stores, stage = prepared
    with fail_after(1000):
        async with besieged(stores, tmp_path / "nodes") as siege, trio.open_nursery() as nursery:
            mallory = Attacker(stage, siege.open_wire, nursery)
            await ATTACKS["commits_without_a_kind"].script(mallory)
            victim = siege.victim
            victim.hub.announce(victim.author.write(victim.branch(), Compaction(()))[1])
            nursery.cancel_scope.cancel()
        folder = tmp_path / "nodes" / "victim"
        assert erase_store(folder, STORE_KEY, _ANY_TIME, 1).bodies > 0
        collect_garbage(folder, keep_removed=True)
        with open_nodes(tmp_path / "nodes", "victim", "newcomer") as (victim, newcomer):
            await newcomer.joiner.follow(victim.capability())
            async with connected(newcomer, victim):
                with fail_after(10):
                    await until_equal(victim, newcomer)


@pytest.mark.slow
async def test_what_is_counted_is_what_the_victim_does(
    prepared: tuple[Path, Stage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Else a bound would hold for nothing: by what an honest writer's merge and a stranger's question cost."""
    stores, stage = prepared
    with fail_after(1000):
        async with besieged(stores, tmp_path / "nodes") as siege, trio.open_nursery() as nursery:
            mallory = Attacker(stage, siege.open_wire, nursery)
            with watched(siege.victim, monkeypatch) as counts:
                await ATTACKS["merges_with_an_old_ack"].script(mallory)
                await ATTACKS["ranges_that_never_end"].script(mallory)
            done = counts.as_dict()
            assert {name for name, count in done.items() if count == 0} == set(), done
            assert done["signatures"] >= 30
            await mallory.leave()
            nursery.cancel_scope.cancel()
