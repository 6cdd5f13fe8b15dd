"""How a repo stands with others: one sentence that is true."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pytest
import trio
import trio.lowlevel
from msgspec import structs
from sqlalchemy import Connection as SqlConnection
from sqlalchemy import select
from trio.testing import MockClock, wait_all_tasks_blocked

from node.authoring.drafting import Draft
from node.authoring.write_queue import WriteRequest
from node.network.network import Network
from node.network.peer_state import PeerState
from node.network.peer_views import Stall
from node.observe import sentences, standing
from node.observe.absent import find_absence
from node.observe.sentences import standing_sentence
from node.observe.standing import HOLDERS_MAX, SAVE_SECONDS, Standings, _Memory, _note_level
from node.observe.standing_view import (
    BELIEVED_SECONDS,
    NO_OUTLOOK,
    UNHELD_COUNTED_MAX,
    Link,
    Outlook,
    PeerStanding,
    RepoFacts,
    Unheld,
    describe_standing,
    view_holder,
    without_peers,
)
from node.sync.addresses import AddressSource
from node.sync.connection import Connection
from node.sync.sync_progress import topic_progress
from protocol.formats.content import Post
from protocol.formats.text import id_text
from protocol.ids import PeerId, TopicKey
from protocol.limits.peers import FIRST_TURNS_SECONDS, STATED_COUNT_MAX
from protocol.session import transfer
from ravel.types.peers import CalledPeer, PeerOwner
from ravel.types.repos import RepoStanding, StandingPart
from ravel.types.requests import AskView
from ravel.types.values import SyncProgress
from storage.commits.pending import count_pending
from storage.engine.errors import StorageError
from storage.peers.peers import Holder, load_holders, put_holders
from storage.schema.schema import authors, commits
from storage.topics.difference import plan_sending
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, meet, members_of, open_nodes, share, until_equal

PEER = PeerId(bytes([1]) * 32)
OTHER = PeerId(bytes([2]) * 32)
SHORT = id_text(PEER)[:12]
UNNAMED: CalledPeer = {"name": "", "owner": None}
MEMBER = RepoFacts(
    is_member=True, was_member=True, is_joining=False, is_damaged=False, is_behind=False, has_members=True
)
READER = replace(MEMBER, is_member=False, was_member=False)
ASK: AskView = {
    "repo": "r",
    "repo_name": "notes",
    "lobby": "l",
    "admin": "a" * 52,
    "admin_name": "Ann",
    "permission": "write",
    "code": "a b c",
    "expires_at": 0,
    "status": "waiting",
    "reason": "",
}
LINK = Link(PEER, is_relay=False, is_level=False, behind=0, unsent=0, refused="")


def _with(link: Link) -> Outlook:
    return Outlook((link,), 1, {}, None)


UNKNOWN = "no other computer is known to have what you wrote"
TWO = "2 of your commits are on this computer only, as far as known"
SINCE = "since 1970-01-01 00:00 UTC"
LAST = Holder(PEER, 0, 5)
LEVEL = Outlook((LINK,), 1, {PEER: 0}, LAST)
HELD = f"peer {SHORT} had all commits (1970-01-01 00:00 UTC)"
CASES: dict[str, tuple[RepoFacts, Outlook, Unheld | int | None, str, str]] = {
    "level": (MEMBER, LEVEL, 0, "in_sync", f"in sync with peer {SHORT} {SINCE}"),
    "reader": (
        READER,
        Outlook((replace(LINK, is_relay=True),), 1, {PEER: 0}, LAST),
        0,
        "in_sync",
        f"reading the repo without being a member; in sync with relay {SHORT} {SINCE}",
    ),
    "nothing_known": (MEMBER, NO_OUTLOOK, None, "alone", f"nobody else is connected; {UNKNOWN}"),
    "all_held": (MEMBER, NO_OUTLOOK, 0, "alone", "nobody else is connected"),
    "two_unheld": (MEMBER, NO_OUTLOOK, 2, "alone", f"nobody else is connected; {TWO}"),
    "nothing_is_heard_of_who_lacks_some": (
        MEMBER,
        _with(replace(LINK, unsent=3, going=60.0, stall=Stall(0, "nothing_heard"))),
        0,
        "syncing",
        f"3 commits are to go to peer {SHORT}, of which nothing has been heard {SINCE}",
    ),
    "who_lacks_one_confirms_none": (
        MEMBER,
        _with(replace(LINK, unsent=1, going=60.0, stall=Stall(0, "takes_nothing"))),
        0,
        "syncing",
        f"1 commit is to go to peer {SHORT}, which has confirmed none {SINCE}",
    ),
    "nothing_is_heard_while_comparing": (
        MEMBER,
        _with(replace(LINK, unsent=None, stall=Stall(0, "nothing_heard"))),
        0,
        "syncing",
        f"comparing with peer {SHORT}, of which nothing has been heard {SINCE}",
    ),
    "none_is_confirmed_while_others_are_compared": (
        MEMBER,
        _with(replace(LINK, unsent=None, stall=Stall(0, "takes_nothing"))),
        0,
        "syncing",
        f"commits are to go to peer {SHORT}, which has confirmed none {SINCE}",
    ),
    "one_unheld": (
        MEMBER,
        NO_OUTLOOK,
        1,
        "alone",
        "nobody else is connected; 1 of your commits is on this computer only, as far as known",
    ),
    "more_unheld_than_are_counted": (
        MEMBER,
        NO_OUTLOOK,
        UNHELD_COUNTED_MAX,
        "alone",
        "nobody else is connected; at least 1000 of your commits are on this computer only, as far as known",
    ),
    "held_before": (MEMBER, Outlook((), 0, {}, LAST), 0, "alone", f"nobody else is connected; {HELD}"),
    "held_by_a_relay_before_and_not_since": (
        MEMBER,
        Outlook((), 0, {}, LAST, last_is_relay=True),
        2,
        "alone",
        f"nobody else is connected; {TWO}",
    ),
    "held_by_a_relay_but_for_a_file": (
        MEMBER,
        Outlook((), 0, {}, LAST, last_is_relay=True),
        Unheld(0, 1),
        "alone",
        f"nobody else is connected; {HELD.replace('peer', 'relay')}; "
        "1 of your files is on this computer only, as far as known",
    ),
    "level_but_for_files": (
        MEMBER,
        LEVEL,
        Unheld(0, UNHELD_COUNTED_MAX),
        "in_sync",
        f"in sync with peer {SHORT} {SINCE}; at least 1000 of your files are on this computer only, as far as known",
    ),
    "commits_and_files": (
        MEMBER,
        NO_OUTLOOK,
        Unheld(2, 3),
        "alone",
        "nobody else is connected; 2 of your commits are on this computer only, as far as known; "
        "3 of your files are on this computer only, as far as known",
    ),
    "nothing_known_but_a_file": (
        MEMBER,
        NO_OUTLOOK,
        Unheld(None, 1),
        "alone",
        f"nobody else is connected; {UNKNOWN}; 1 of your files is on this computer only, as far as known",
    ),
    "not_shared": (
        MEMBER,
        Outlook((), 2, {}, LAST),
        2,
        "not_shared",
        f"2 peers are connected, and none follows this repo; {TWO}",
    ),
    "own_comments": (
        replace(MEMBER, of_comments=True, members=0),
        _with(LINK),
        Unheld(None, 1),
        "not_shared",
        "what you comment; others get each comment with what it is about, once it is accepted; "
        "1 of your files is on this computer only, as far as known",
    ),
    "own_comments_with_nobody_connected": (
        replace(MEMBER, of_comments=True, members=0),
        Outlook((), 0, {}, LAST),
        2,
        "alone",
        "what you comment; others get each comment with what it is about, once it is accepted",
    ),
    "behind": (
        MEMBER,
        _with(replace(LINK, behind=7)),
        0,
        "syncing",
        f"behind by 7 commits, to come from peer {SHORT}",
    ),
    "behind_with_its_pace": (
        MEMBER,
        _with(replace(LINK, behind=7000, coming=99.6)),
        0,
        "syncing",
        f"behind by 7000 commits, to come from peer {SHORT} (100 a second, 1 min left)",
    ),
    "behind_a_peer_that_sends_none": (
        MEMBER,
        _with(replace(LINK, behind=7000, coming=0.0, quiet_seconds=150)),
        0,
        "syncing",
        f"behind by 7000 commits as peer {SHORT} states, which has sent none for 2 min",
    ),
    "behind_an_absurd_number": (
        MEMBER,
        _with(replace(LINK, behind=STATED_COUNT_MAX, coming=5000.0)),
        0,
        "syncing",
        f"behind by at least 1000000000 commits, to come from peer {SHORT} (5000 a second)",
    ),
    "behind_one_and_sending_to_another": (
        MEMBER,
        Outlook((replace(LINK, behind=7, unsent=0), replace(LINK, peer=OTHER, unsent=9)), 2, {}, None),
        0,
        "syncing",
        f"behind by 7 commits, to come from peer {SHORT}",
    ),
    "sending_beside_a_peer_that_is_not_believed": (
        MEMBER,
        Outlook(
            (
                replace(LINK, peer=OTHER, behind=STATED_COUNT_MAX, quiet_seconds=BELIEVED_SECONDS),
                replace(LINK, unsent=4),
            ),
            2,
            {},
            None,
        ),
        0,
        "syncing",
        f"sending 4 commits to peer {SHORT}",
    ),
    "sending_with_its_pace": (
        MEMBER,
        _with(replace(LINK, unsent=20_000, going=4000.0)),
        0,
        "syncing",
        f"sending 20000 commits to peer {SHORT} (4000 a second, 5 s left)",
    ),
    "waiting topics": (
        MEMBER,
        _with(replace(LINK, waiting=3)),
        0,
        "syncing",
        f"3 topics wait to be compared with peer {SHORT}",
    ),
    "sending": (MEMBER, _with(replace(LINK, unsent=4)), 0, "syncing", f"sending 4 commits to peer {SHORT}"),
    "follows_an_earlier_epoch": (
        MEMBER,
        _with(LINK),
        2,
        "not_shared",
        f"nobody who follows all of it is connected: peer {SHORT} follows parts, or it as before its members changed; {TWO}",
    ),
    "comparing": (MEMBER, _with(replace(LINK, unsent=None)), 0, "syncing", f"comparing with peer {SHORT}"),
    "relay_full": (
        MEMBER,
        _with(replace(LINK, is_relay=True, refused="topic_full")),
        2,
        "syncing",
        f"relay {SHORT} takes no more of it: the repo has as much there as one may; {TWO}",
    ),
    "waiting": (
        replace(MEMBER, is_behind=True),
        NO_OUTLOOK,
        0,
        "waiting",
        "waiting for secrets: members have gone on to new ones, "
        "and none has handed them to this node yet; nobody else is connected",
    ),
    "excluded": (
        replace(MEMBER, is_member=False, is_behind=True),
        LEVEL,
        0,
        "cut_off",
        "cut off: you are no member any more, and what members write since is not for this node",
    ),
    "asks": (
        replace(READER, ask=ASK),
        LEVEL,
        0,
        "joining",
        "asked Ann to be let in, and waiting for an answer; code: a b c",
    ),
    "asks_unheard": (
        replace(READER, ask=ASK),
        NO_OUTLOOK,
        0,
        "joining",
        "asked Ann to be let in, and waiting for an answer; code: a b c; nobody else is connected",
    ),
    "excluded_at": (
        replace(MEMBER, is_member=False, is_behind=True, behind_since=1_700_000_000),
        LEVEL,
        0,
        "cut_off",
        "cut off since 2023-11-14 22:13 UTC: you are no member any more, and what members write since is not for this node",
    ),
    "at_an_absurd_time": (
        replace(MEMBER, is_behind=True, behind_since=2**52),
        NO_OUTLOOK,
        0,
        "waiting",
        "waiting for secrets since 9999-12-31 23:59 UTC: members have gone on to new ones, "
        "and none has handed them to this node yet; nobody else is connected",
    ),
    "waiting_for_what_people_hold": (
        replace(MEMBER, is_behind=True, holders=("Ann", "Ben", "Cid", "Dee", "Eve")),
        NO_OUTLOOK,
        0,
        "waiting",
        "waiting for secrets: members have gone on to new ones, and none has handed them to this node yet, "
        "which Ann or Ben or 3 others have; nobody else is connected",
    ),
    "lacks_earlier_ones": (
        replace(MEMBER, waiting=1, holders=("Ann",)),
        LEVEL,
        0,
        "waiting",
        f"1 commit waits for earlier ones that are not here, which Ann has; in sync with peer {SHORT} {SINCE}",
    ),
    "lacks_earlier_ones_of_nobody_known": (
        replace(READER, waiting=3),
        NO_OUTLOOK,
        0,
        "waiting",
        "reading the repo without being a member; 3 commits wait for earlier ones that are not here; "
        "nobody else is connected",
    ),
    "an_epoch_is_due": (
        replace(MEMBER, is_due=True, starters=("Ann", "Ben")),
        NO_OUTLOOK,
        0,
        "alone",
        "the members have changed: new secrets come with the next post, or by themselves within minutes; "
        "nobody else is connected",
    ),
    "former": (
        replace(MEMBER, is_member=False),
        LEVEL,
        0,
        "former",
        "you are no member any more, and read what was shared with you",
    ),
    "place_passed_on": (
        replace(MEMBER, is_member=False, is_behind=True, moved_to="Pocket"),
        LEVEL,
        0,
        "former",
        "your place has passed to Pocket: what is here stays, and this computer writes no more; "
        f"in sync with peer {SHORT} {SINCE}",
    ),
    "place_passed_on_and_what_came_since_stays_away": (
        replace(MEMBER, is_member=False, is_behind=True, moved_to="Pocket"),
        _with(replace(LINK, behind=6, quiet_seconds=150)),
        0,
        "former",
        "your place has passed to Pocket: what is here stays, and this computer writes no more",
    ),
    "reader_cut_off": (
        replace(READER, is_behind=True),
        LEVEL,
        0,
        "cut_off",
        "cut off: the repo got new secrets by an exclusion or a renewal, "
        "and your link opens nothing newer; ask a member for a new one",
    ),
    "refused": (
        replace(READER, refused="it has been used up"),
        NO_OUTLOOK,
        0,
        "alone",
        "your invitation was refused (it has been used up); "
        "reading the repo without being a member; nobody else is connected",
    ),
    "single_branches": (
        replace(READER, has_members=False),
        NO_OUTLOOK,
        0,
        "alone",
        "reading single branches without being a member; nobody else is connected",
    ),
    "joining": (
        replace(READER, is_joining=True),
        NO_OUTLOOK,
        0,
        "joining",
        "joining: the membership has not come yet; nobody else is connected",
    ),
    "damaged": (
        replace(MEMBER, is_damaged=True),
        LEVEL,
        0,
        "damaged",
        "who is a member cannot be told: commits of the membership are damaged here",
    ),
}


def _nobody(_: PeerId) -> CalledPeer:
    return {"name": "", "owner": None}


@pytest.mark.parametrize("name", CASES)
def test_each_state_has_its_sentence(name: str) -> None:
    facts, outlook, counted, state, sentence = CASES[name]
    unheld = _unheld_of(counted)
    said = describe_standing(facts, outlook, unheld, _nobody)
    counted_commits = 0 if facts.of_comments else unheld.commits
    assert (said["state"], standing_sentence(said), said["unheld"]) == (state, sentence, counted_commits)
    assert said["unfetched_files"] == unheld.files
    assert said["held_at"] == (None if outlook.last is None else 0)


def test_each_code_that_is_promised_has_words_on_the_command_line_and_on_the_page() -> None:
    schema = get_type_hints(StandingPart, include_extras=True)["code"].__metadata__[0].extra_json_schema
    page = (Path(sentences.__file__).parents[1] / "web/strings/en_standing.js").read_text()
    assert set(schema["enum"]) == sentences._PARTS.keys()
    assert set(re.findall(r"^  (\w+): \(", page, re.MULTILINE)) == sentences._PARTS.keys()


@pytest.mark.parametrize("name", [one for one in CASES if SHORT in CASES[one][4]])
def test_a_peer_with_a_petname_or_a_known_owner_is_called_by_it(name: str) -> None:
    facts, outlook, counted, _, sentence = CASES[name]
    owner: PeerOwner = {"user": "u", "name": "Bob", "device": "laptop", "mine": False, "earlier": False}
    callings: list[CalledPeer] = [{"name": "Bob's laptop", "owner": None}, {"name": "", "owner": owner}]
    for called in callings:
        said = describe_standing(facts, outlook, _unheld_of(counted), {PEER: called}.__getitem__)
        _is_called_bobs_laptop(said, sentence)


def _is_called_bobs_laptop(said: RepoStanding, sentence: str) -> None:
    named = sentence.replace(f"peer {SHORT}", "Bob's laptop").replace(f"relay {SHORT}", "Bob's laptop")
    assert standing_sentence(said) == named


def _unheld_of(counted: Unheld | int | None) -> Unheld:
    return counted if isinstance(counted, Unheld) else Unheld(counted)


@pytest.mark.parametrize("name", CASES)
def test_a_caller_without_the_right_to_see_peers_sees_none(name: str) -> None:
    facts, outlook, unheld, state, _ = CASES[name]
    shown = without_peers(describe_standing(facts, outlook, _unheld_of(unheld), _nobody))
    assert (shown["state"], shown["in_sync_with"]) == (state, [])
    assert SHORT not in standing_sentence(shown)
    assert standing_sentence(shown)


def test_progress_is_that_of_the_fastest_transfer_of_what_is_not_here() -> None:
    slow, fast = replace(LINK, behind=50, coming=1.0), replace(LINK, behind=60, coming=20.0)
    outlook = Outlook((replace(LINK, unsent=5, going=9.0), slow, fast), 3, {}, None)
    assert describe_standing(MEMBER, outlook, Unheld(), _nobody, 40)["progress"] == {
        "direction": "receiving",
        "done": 40,
        "total": 100,
        "rate": 20,
        "seconds_left": 3,
    }


def test_what_a_peer_states_and_does_not_send_ends_as_no_progress() -> None:
    """Else one peer could show a repo as behind for ever."""
    for quiet, behind in ((BELIEVED_SECONDS - 1, STATED_COUNT_MAX), (BELIEVED_SECONDS, 0)):
        liar = replace(LINK, behind=STATED_COUNT_MAX, coming=0.0, quiet_seconds=quiet)
        said = describe_standing(MEMBER, _with(liar), Unheld(), _nobody, 40)
        assert (said["state"], said["behind"]) == ("syncing", behind)
        progress = said["progress"]
        assert (progress is None) == (behind == 0)
        assert progress is None or (progress["total"], progress["seconds_left"]) == (None, None)


@pytest.mark.slow
async def test_a_peer_is_believed_for_ten_minutes_after_it_has_sent_something(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60 + 2 * BELIEVED_SECONDS), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with connected(bob, alice) as (of_bob, _):
            await until_equal(alice, bob)
            await trio.sleep(1)
            progress, standings = of_bob.session.progress_of(_topic(alice)), _seen(bob, of_bob)
            assert progress is not None
            assert progress.rounds.peer is not None
            progress.rounds.peer = structs.replace(progress.rounds.peer, count=2**53 - 1)  # as a liar says it
            num = bob.repo().num
            for pause, is_believed in ((BELIEVED_SECONDS - 10, True), (20, False)):
                await trio.sleep(pause)
                (link,) = standings.outlook(bob.repo()).links
                assert (link.behind, link.is_coming, link.is_level) == (STATED_COUNT_MAX, is_believed, False)
                assert standings.take_changed() == {num}, "time alone has passed"
            await trio.sleep(BELIEVED_SECONDS)
            assert standings.take_changed() == set(), "nothing is looked at again for it"


@pytest.mark.slow
async def test_a_first_sync_shows_on_both_sides_how_far_it_is(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "BATCH_COUNT_MAX", 10)
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        for number in range(100):
            alice.write(branch, f"post {number}")
        await bob.joiner.begin(alice.invite(repo))
        async with connected(bob, alice) as (of_bob, of_alice):
            topic, standings = _topic(alice), _seen(bob, of_bob)

            def look(connection: Connection) -> SyncProgress | None:
                progress = connection.session.progress_of(topic)
                rates = connection.transfer_rates
                return None if progress is None else topic_progress(progress, rates, trio.current_time())

            with alice.replica.database.read() as sql:
                total = len(plan_sending(sql, alice.replica.by_topic[topic].num, ()).nums)
            seen: list[tuple[SyncProgress, SyncProgress]] = []
            while not seen or seen[-1][0]["done"] < 90:
                receiving, sending = look(of_bob), look(of_alice)
                if receiving is not None and sending is not None:
                    seen.append((receiving, sending))
                    (link,) = standings.outlook(bob.repo()).links
                    assert link.behind == total - receiving["done"]
                await trio.lowlevel.checkpoint()
            assert {(one["direction"], one["total"]) for one, _ in seen} == {("receiving", total)}
            assert {one["direction"] for _, one in seen} == {"sending"}
            assert {one["total"] for _, one in seen} <= {total, total + 1}, (
                "bob's join comes on the same topic"
            )
            assert len({one["done"] for one, _ in seen}) > 5
            assert len({one["done"] for _, one in seen}) > 5
            await until_equal(alice, bob)
            await trio.sleep(1)
            assert (look(of_bob), look(of_alice)) == (None, None)


def _topic(node: Node) -> TopicKey:
    """On which a node publishes commits of its branch."""
    return writing_topic(node.replica, node.branch()).topic


def _seen(node: Node, connection: Connection | None) -> Standings:
    """A node's standings, its network being this connection."""
    network = Network(node.hub, node.seed, lambda: 0.0)
    if connection is not None:
        state = PeerState(connection.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
        state.connection = connection
        network.inbound.append(state)
    return Standings(node.hub, network)


def _unheld(standings: Standings, node: Node, outlook: Outlook) -> int | None:
    return standings.count_unheld(node.author.user, {node.repo().num: outlook})[node.repo().num].commits


@pytest.mark.slow
async def test_what_others_hold_is_known_as_long_as_one_is_there_and_counted_after(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        alone = _seen(alice, None)
        outlook = alone.outlook(alice.repo())
        assert (outlook.links, outlook.last) == ((), None)
        assert _unheld(alone, alice, outlook) is None
        async with connected(bob, alice) as (_, side):
            await until_equal(alice, bob)
            standings = _seen(alice, side)
            while not (outlook := standings.outlook(alice.repo())).level_since:
                await alice.hub.run_blocking(lambda: None)
            assert list(outlook.level_since) == [bob.key]
            assert _unheld(standings, alice, outlook) == 0
            [held] = [view_holder(one, UNNAMED) for one in standings.holders(alice.repo())]
            assert held["peer"] == id_text(bob.key)
            assert (held["connected"], held["has_all"], held["lacks"]) == (True, True, 0)
        standings._network.inbound.clear()
        alice.write(alice.branch(), "nobody has this")
        outlook = standings.outlook(alice.repo())
        [away] = [view_holder(one, UNNAMED) for one in standings.holders(alice.repo())]
        assert away == {**held, "connected": False, "has_all": False, "lacks": None}, "as it was seen last"
        assert outlook.last is not None
        assert _unheld(standings, alice, outlook) == 1
        await standings.save()
        alice.replica.close()
        alice.open(1_600_000_000_000)  # a clock that was set back
        again = _seen(alice, None)
        restarted = again.outlook(alice.repo())
        assert restarted.last == outlook.last
        assert _unheld(again, alice, restarted) == 1, "a restart forgets nobody"
        assert not again.is_held(alice.repo(), restarted)
        standings = again
        alice.author.queue.write_group(
            [WriteRequest(alice.branch(), [Draft(Post(f"{number}")) for number in range(UNHELD_COUNTED_MAX)])]
        )
        assert _unheld(standings, alice, outlook) == UNHELD_COUNTED_MAX, "no further ones are counted"


@pytest.mark.slow
async def test_who_held_what_is_stored_at_a_bounded_rate(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(20 * SAVE_SECONDS), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with connected(bob, alice) as (_, side):
            await until_equal(alice, bob)
            standings = _seen(alice, side)
            stored: list[float] = []

            def counted(connection: SqlConnection, holders: Mapping[int, Sequence[Holder]]) -> None:
                stored.append(trio.current_time())
                put_holders(connection, holders)

            monkeypatch.setattr(standing, "put_holders", counted)
            began = trio.current_time()
            with trio.move_on_after(4 * SAVE_SECONDS):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(standings.run, alice.author.user)
                    for number in range(200):
                        alice.write(alice.branch(), f"post {number}")
                        await trio.sleep(1)
            assert 2 <= len(stored) <= (trio.current_time() - began) / SAVE_SECONDS
            del stored[:]
            with trio.move_on_after(2 * SAVE_SECONDS):
                await standings.run(alice.author.user)
            assert len(stored) <= 1, "nothing is written where nothing changed"
            del stored[:]
            await standings.save()
            assert stored == []
            await standings.save(is_last=True)
            assert len(stored) == 1, "at the end: until when it was held"
            monkeypatch.setattr(standing, "put_holders", _fail)
            await standings.save(is_last=True)
            monkeypatch.setattr(standing, "put_holders", counted)
            await standings.save()
            assert len(stored) == 2, "what the store did not take is tried again"


def _fail(*_: object) -> None:
    raise StorageError("the disk is full")


def test_of_many_peers_those_that_held_most_are_remembered(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, _ = alice.create_repo()
        peers = [PeerId(bytes([number]) * 32) for number in range(HOLDERS_MAX + 1)]
        memory = _Memory()
        for upto, peer in enumerate(peers):
            _note_level(memory, [peer], 1000, upto)
        assert list(memory.holders) == peers[1:]
        with alice.replica.database.write() as connection:
            put_holders(connection, {repo.num: list(memory.holders.values())})
        with alice.replica.database.read() as connection:
            assert load_holders(connection) == {repo.num: list(memory.holders.values())}


def _behind_since(node: Node) -> int | None:
    return find_absence(node.replica, node.repo(), node.author.user).behind_since


@pytest.mark.slow
async def test_a_reader_is_cut_off_by_a_renewal_and_an_excluded_member_by_the_exclusion(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob)
        await carol.joiner.follow(alice.capability())
        async with connected(carol, alice):
            await until_equal(alice, carol)
        assert _behind_since(carol) is None
        await members_of(alice).remove("repo", id_text(bob.author.user), "")
        await meet(alice, bob, carol)
        for one in (bob, carol):
            since = _behind_since(one)
            assert since is not None
            assert since >= 1_700_000_000, "of its own clock"
        async with connected(bob, alice) as (ours, side):
            await trio.sleep(10)
            excluded = _seen(alice, side).outlook(alice.repo())
            assert not excluded.level_since, "who is excluded holds nothing newer, however level the past is"
            assert [link.unsent for link in excluded.links] == [0]
            seen = _seen(bob, ours).outlook(bob.repo())
            assert [link.behind for link in seen.links] == [1], (
                "bob has what he may have: all but what waits for its key"
            )
            assert not seen.level_since
        assert bob.replica.was_member(bob.repo(), bob.author.user)
        assert not carol.replica.was_member(carol.repo(), carol.author.user)


def test_a_user_who_may_lack_own_commits_is_told_so_whoever_is_in_sync() -> None:
    outlook = Outlook((replace(LINK, is_level=True),), 1, {PEER: 1_700_000_000}, Holder(PEER, 0, 9))
    facts = replace(MEMBER, uncertain="this folder is a copy", own_forks=3)
    said = describe_standing(facts, outlook, Unheld(), _nobody)
    assert (said["state"], said["uncertain"], said["own_forks"]) == ("waiting", "this folder is a copy", 3)
    assert standing_sentence(said) == (
        "you cannot write yet: peers are asked for commits of yours (this folder is a copy); "
        f"3 places of your feed were used twice; in sync with peer {SHORT} since 2023-11-14 22:13 UTC"
    )


@pytest.mark.parametrize(
    "members, links, guests, said",
    [
        (None, 3, 0, ""),
        (3, 3, 0, ""),
        (2, 3, 1, "at least 1 of the peers that follow it is no member's"),
        (0, 3, 3, "at least 3 of the peers that follow it are no member's"),
    ],
)
def test_an_owner_is_told_of_followers_who_can_be_no_members(
    members: int | None, links: int, guests: int, said: str
) -> None:
    followers = [replace(LINK, peer=PeerId(bytes([one]) * 32)) for one in range(links)]
    relay = replace(LINK, peer=PeerId(bytes([99]) * 32), is_relay=True)
    outlook = Outlook((*followers, relay, followers[0]), 5, {}, None)
    shown = describe_standing(replace(MEMBER, members=members), outlook, Unheld(), _nobody)
    assert shown["guests"] == guests
    assert (said in standing_sentence(shown)) if said else ("no member's" not in standing_sentence(shown))


def test_peers_of_another_version_are_told_apart() -> None:
    said = describe_standing(MEMBER, Outlook((), 3, {}, None, foreign=1), Unheld(), _nobody)
    assert (
        standing_sentence(said)
        == "3 peers are connected (1 of another version of Ravel), and none follows this repo"
    )


async def test_nobody_is_level_while_topics_of_the_repo_wait_for_their_turn(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        for _ in range(2):
            alice.author.start_epoch(alice.repo())
        await meet(alice, bob)
        monkeypatch.setattr("protocol.session.session.TOPIC_COUNT_MAX", 2)
        monkeypatch.setattr("protocol.session.session.TOPICS_SETTLING_MAX", 0)
        async with connected(bob, alice) as (_, side):
            standings = _seen(alice, side)
            await wait_all_tasks_blocked()
            (link,) = standings.outlook(alice.repo()).links
            assert (link.waiting, link.is_level) == (4, False), "two topics of each of three epochs"
            monkeypatch.undo()
            side.topics_changed()
            await wait_all_tasks_blocked()
            (link,) = standings.outlook(alice.repo()).links
            assert (link.waiting, link.is_level) == (0, True)


async def test_a_repo_whose_topics_wait_for_their_turn_is_not_said_to_be_followed_by_nobody(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And who may turn out to follow it is no guest of it."""
    monkeypatch.setattr("protocol.session.session.TOPIC_COUNT_MAX", 1)
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        alice.author.founding.create_repo("first")
        bob.author.founding.create_repo("his own")
        repo, _ = alice.author.founding.create_repo("second")
        alice.hub.topics_changed()
        async with connected(bob, alice) as (_, side):
            standings = _seen(alice, side)
            await wait_all_tasks_blocked()
            outlook = standings.outlook(repo)
            (link,) = outlook.links
            assert (link.waiting, link.is_joined, link.is_level) == (2, False, False)
            said = describe_standing(MEMBER, outlook, Unheld(), _nobody)
            assert (said["state"], said["guests"]) == ("syncing", 0)
            assert "2 topics wait to be compared with peer" in standing_sentence(said)
            await trio.sleep(10 * FIRST_TURNS_SECONDS)
            assert standings.outlook(repo).links == (), "the peer has heard of it, and follows it not"


@pytest.mark.slow
async def test_what_a_peer_holds_of_earlier_epochs_is_not_counted_as_on_this_node_alone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Who was excluded holds the exclusion and all before it, and is level never again."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        standings = _seen(alice, None)
        owner: PeerOwner = {"user": "b", "name": "", "device": "", "mine": False, "earlier": False}
        seen: list[PeerStanding] = []

        async def look(other: Node) -> int | None:
            async with connected(other, alice) as (_, side):
                state = PeerState(side.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
                state.connection = side
                standings._network.inbound.append(state)
                for _ in range(4):
                    await trio.sleep(5)
                    standings.look()
                seen.append(standings.holders(alice.repo())[0])
                standings._network.inbound.clear()
            return _unheld(standings, alice, standings.outlook(alice.repo()))

        assert await look(bob) == 0
        for number in range(3):
            alice.write(alice.branch(), f"before {number}")
        await members_of(alice).remove("repo", id_text(bob.author.user), "")
        for number in range(2):
            alice.write(alice.branch(), f"after {number}")
        counted = await look(bob)
        assert seen[-1].link is not None
        called: CalledPeer = {"name": "", "owner": owner}
        gone = view_holder(seen[-1], called, {"somebody else"})
        assert (gone["member"], gone["connected"], gone["has_all"], gone["lacks"]) == (
            False,
            True,
            False,
            None,
        )
        assert view_holder(seen[-1], called, {"b"})["member"]
        assert (
            view_holder(seen[-1], called)["member"] is view_holder(seen[-1], UNNAMED, {"b"})["member"] is None
        )
        absent = _own_ids(alice) - _own_ids(bob, alice)
        assert len(absent) == 3, "what is written in the new epoch, and what opens it"
        with bob.replica.database.read() as connection:
            kept = count_pending(connection)  # for want of a key that bob will not get
        assert counted == len(absent) - kept
        alice.write(alice.branch(), "one more")
        assert _unheld(standings, alice, standings.outlook(alice.repo())) == len(absent) - kept + 1
        assert await look(carol) == 0


def _own_ids(node: Node, author: Node | None = None) -> set[bytes]:
    """Ids of what a user wrote, as far as a node has it."""
    with node.replica.database.read() as connection:
        query = select(commits.c.commit_id).join(authors, authors.c.num == commits.c.author_num)
        return set(connection.execute(query.where(authors.c.user == (author or node).author.user)).scalars())


def test_what_is_here_and_cannot_be_shown_is_said_beside_in_sync() -> None:
    outlook = Outlook((replace(LINK, is_level=True),), 1, {PEER: 1_700_000_000}, Holder(PEER, 0, 9))
    said = describe_standing(replace(MEMBER, unread=2, damaged=1), outlook, Unheld(), _nobody)
    assert standing_sentence(said).startswith(
        "2 commits are of a newer format, which this Ravel does not show; "
        "1 commit is damaged here, and asked of peers; in sync with"
    )
