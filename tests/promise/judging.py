"""Compares a member with the judge of `tests/verdicts`, which was written from the pages of the rules alone.

Nodes that all have the same wrong rule agree with one another. The judge takes in what the member has accepted, and what
adversaries gave it. It must come to the same commits, members, timelines and epochs.
"""

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from protocol.codec import DecodeError
from protocol.crypto.keys import AgreementSecret
from protocol.formats.publication import decode_publication
from protocol.ids import AgreementKey, BlockId, CommitId
from storage.commits.pending import load_rejected
from storage.repos.prekeys import load_prekeys
from tests.promise import checks
from tests.promise.forging import Forge, Forged
from tests.promise.orders import find_items
from tests.promise.people import Person
from tests.promise.world import Broken, World
from tests.verdicts.epochs import latest_held, surely_holds
from tests.verdicts.formats import Commit
from tests.verdicts.judge import Node, Opener
from tests.verdicts.statements import digest
from tests.verdicts.views import View

_SAID_MAX: Final = 4
"""Differences that are told."""
Told = dict[str, Any]


def check_judge(world: World) -> None:
    """Compare what a member made of all that came to it. Raises Broken."""
    members = world.members()
    if not members:
        return
    person = world.rng.choice(members)
    node = Node(Opener(_history_of(world, person)))
    told = node.results()
    _check_commits(world, person, told["commits"])
    held = {user.hex(): level.name.lower() for user, level in person.replica.members(person.repo()).items()}
    _compare(person, "members", held, told["members"])
    order = {branch.hex(): [one.hex() for one in ids] for branch, ids in checks.orders_of(person).items()}
    timelines = {branch: it["timeline"] for branch, it in told["branches"].items() if it["timeline"]}
    _compare(person, "timelines", {one: ids for one, ids in order.items() if ids}, timelines)
    found = {one.hex(): is_true for one, is_true in checks.checkpoints_of(person).items()}
    _compare(person, "checkpoints", found, told.get("checkpoints", {}))
    accepted = View(node.ledger.graph, frozenset(one.id for one in node.ledger.accepted(True)))
    _compare(person, "statement", {"": checks.statement_of(person)}, {"": digest(accepted).hex()})
    _compare(person, "epochs", *_find_epochs(person, node, told["epochs"]))
    _check_hands(world, node)


def _check_hands(world: World, node: Node) -> None:
    """Check that honest nodes hand epochs over where E10 says: in the latest that a member surely held as they knew."""
    honest = {one.user for name, one in world.people.items() if world.is_honest(name)}
    for hand in node.ledger.accepted(True):
        if hand.author not in honest or hand.body.tag != "epoch-hand1":
            continue
        before = node.ledger.graph.before(_first_of_turn(node, hand).id)
        for user, *_ in hand.body.boxes:
            latest = latest_held(before, user)
            if latest not in (None, hand.epoch):
                said = f"{world.name_of(hand.author)} hands {world.name_of(user)} an epoch in {hand.epoch.hex()[:8]}"
                raise Broken("as_the_rules_say", f"{said}, not in {latest.hex()[:8]}")


def _first_of_turn(node: Node, hand: Commit) -> Commit:
    """Find the first of the hand-overs of one epoch that a node wrote one after another, as it had chosen them before."""
    hands = [one for one in node.ledger.accepted(True) if one.body.tag == "epoch-hand1"]
    said = {one.id: (one.author, one.body.epoch) for one in hands}
    while len(hand.acks) == 1 and said.get(hand.acks[0]) == said[hand.id]:
        hand = node.ledger.graph.commits[hand.acks[0]]
    return hand


def _history_of(world: World, person: Person) -> Told:
    """All that a node has accepted or was given by adversaries, as `tests/verdicts` has it.

    A node signs what it passes on for the topic where it belongs. What adversaries gave on other topics alone (V1) is
    judged as they gave it.
    """
    repo = person.repo()
    forged: dict[CommitId, list[Forged]] = {}
    items: list[bytes] = []
    for (giver, taker), taken in world.taken.items():
        forge = world.forges[giver]
        assert isinstance(forge, Forge)
        given = [forge.given[number] for number in sorted(taken)]
        items += [one.encoded for one in given if taker == person.name]
        for one in given:
            with suppress(DecodeError):
                forged.setdefault(decode_publication(one.encoded).commit_id, []).append(one)
    for topic, item in find_items(person):
        as_given = forged.get(decode_publication(item).commit_id, [])
        is_misplaced = as_given and all(one.topic != topic for one in as_given)
        items += [one.encoded for one in as_given] if is_misplaced else [item]
    epochs = person.replica.tables.held_epochs(repo.num).values()
    return {
        "repo": repo.repo_id.hex(),
        "init": repo.init_id.hex(),
        "user_seed": person.user_seed.hex(),
        "prekeys": [one.hex() for one in _prekeys_of(person).values()],
        "keys": [[one.epoch_id.hex(), one.key.hex()] for one in epochs],
        "publications": [b64encode(item).decode() for item in items],
    }


def _prekeys_of(person: Person) -> Mapping[AgreementKey, AgreementSecret]:
    with person.replica.database.read() as connection:
        return load_prekeys(connection, person.repo().num)


def _check_commits(world: World, person: Person, told: Told) -> None:
    rows, waiting = checks.rows_of(person), checks.waiting_at(person)
    found = {row.commit_id: "void" if row.is_void else "accepted" for row in rows}
    found |= dict.fromkeys(waiting, "pending")
    judged = {CommitId(BlockId(bytes.fromhex(one))): it for one, it in told.items()}
    with person.replica.database.read() as connection:
        found |= dict.fromkeys(load_rejected(connection, sorted(judged)), "rejected")
    with person.replica.membership_lock:
        stated = person.replica.membership(person.repo().repo_id).now().prekeys_of(person.user)
    has_forgotten = len(stated) > len(_prekeys_of(person))
    said = []
    for one in sorted(judged.keys() | {row.commit_id for row in rows}):
        here, meant = found.get(one), judged.get(one, {"is": None})
        # What never counts need not be kept: its topic may not be followed any more, and what waits has bounds.
        if has_forgotten and (here, meant["is"]) == ("rejected", "pending"):
            continue  # the node opened it with a prekey that is gone
        if here != meant["is"] and (here is not None or meant["is"] in ("accepted", "void")):
            said.append(f"{checks.say_commit(world, one)} is {here or 'not there'}, not {meant}")
    if said:
        raise Broken("as_the_rules_say", f"at {person.name}: {'; '.join(said[:_SAID_MAX])}")


def _find_epochs(person: Person, node: Node, told: Told) -> tuple[Told, Told]:
    """What a member and the judge say of epochs: which count, are tips and clean, where to write, who surely holds which."""
    replica, ledger = person.replica, node.ledger
    view = View(ledger.graph, frozenset(one.id for one in ledger.accepted(True)))
    with replica.membership_lock:
        membership = replica.membership(person.repo().repo_id)
        now, epochs = membership.now(), membership.epochs
        preferred = epochs.find_preferred(now)
        started = membership.operations.epochs
        users = sorted(now.members())
        found = {
            "counting": [one.started_epoch for one in started if now.counts(one)],
            "tips": [one.started_epoch for one in now.epoch_tips()],
            "clean": [one.started_epoch for one in epochs.find_clean(now)],
        }
        holders = {
            f"{one.started_epoch.hex()[:8]} {user.hex()[:8]}": epochs.surely_holds(user, one.started_epoch)
            for one in started
            for user in users
        }
        judged = {
            f"{one.started_epoch.hex()[:8]} {user.hex()[:8]}": surely_holds(view, one.started_epoch, user)
            for one in started
            for user in users
        }
    return (
        {
            **{part: sorted(one.hex() for one in ids) for part, ids in found.items()},
            "written_in": None if preferred is None else preferred.started_epoch.hex(),
            **holders,
        },
        {part: told[part] for part in (*found, "written_in")} | judged,
    )


def _compare(person: Person, what: str, found: Told, judged: Told) -> None:
    said = [
        f"{one[:8]} {found.get(one)}, not {judged.get(one)}"
        for one in sorted(found.keys() | judged.keys())
        if found.get(one) != judged.get(one)
    ]
    if said:
        raise Broken("as_the_rules_say", f"{what} at {person.name}: {'; '.join(said[:_SAID_MAX])}")
