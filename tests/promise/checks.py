"""The promise, as checks with names. Each compares nodes with one another, or with what the generator knows."""

from collections.abc import Iterator
from itertools import pairwise

from node.ingest.replica import load_blocks_of, load_membership, open_stored
from node.membership.persons import find_persons_in
from node.membership.recovery import find_namings
from protocol.formats.body import Permission, Remove
from protocol.formats.content import Post
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen
from protocol.ids import BranchId, CommitId, EpochId, UserId
from storage.commits.commits import TimelineRow, iterate_arrivals, load_timeline
from storage.commits.pending import count_pending, load_pending, load_rejected
from tests.promise.draw import RELAY
from tests.promise.people import Person
from tests.promise.texts import show_documents
from tests.promise.theft import Theft, find_opened
from tests.promise.world import Broken, World, Written
from tests.support.restored import state_of
from tests.support.tables import assert_tables_are_stored
from verifier.places import find_heirs, find_moves, find_recovered

Shown = dict[BranchId, list[CommitId]]


def check_faults(world: World) -> None:
    """Nothing failed inside of a node, as far as it logged that."""
    if world.faults:
        raise Broken("no_faults", world.faults[0][-3000:])


def counts_of(person: Person) -> tuple[int, int]:
    """How many commits a node has accepted, and how many wait there."""
    nums = list(person.replica.branches)
    with person.replica.database.read() as connection:
        accepted = sum(1 for _ in iterate_arrivals(connection, nums))
        return accepted, count_pending(connection)


def rows_of(person: Person) -> list[TimelineRow]:
    """Rows of all accepted commits of a node, void ones too."""
    with person.replica.database.read() as connection:
        return list(iterate_arrivals(connection, list(person.replica.branches)))


def accepted_by(person: Person) -> set[CommitId]:
    """Ids of all accepted commits of a node, void ones too."""
    return {row.commit_id for row in rows_of(person)}


def voids_of(person: Person) -> set[CommitId]:
    """Ids of its void ones."""
    return {row.commit_id for row in rows_of(person) if row.is_void}


def waiting_at(person: Person) -> set[CommitId]:
    """Ids of the commits that wait at a node."""
    found: set[CommitId] = set()
    with person.replica.database.read() as connection:
        for num in person.replica.branches:
            found |= {commit_id for commit_id, _, _ in load_pending(connection, num, set())}
    return found


def orders_of(person: Person) -> Shown:
    """The timeline of each branch."""
    with person.replica.database.read() as connection:
        return {
            branch.branch_id: [row.commit_id for row in load_timeline(connection, branch.num, 0, 100_000)]
            for branch in person.replica.branches.values()
        }


def statement_of(person: Person) -> str:
    """Return what a membership checkpoint of all that is here would sign."""
    with person.replica.membership_lock:
        membership = person.replica.membership(person.repo().repo_id)
        return membership.digest_members(membership.now().heads).hex()


def places_of(person: Person) -> dict[str, object]:
    """Return who is a device of whom, whose place passed to whom, by what, and who lets whom in as friends."""
    replica, repo_id = person.replica, person.repo().repo_id
    stated = replica.persons(repo_id)
    with replica.membership_lock:
        membership = replica.membership(repo_id)
        operations, now = membership.operations, membership.now()
        moves = find_moves(operations, now)
        heirs = find_heirs(moves)
        users = operations.users()
        return {
            "rights": {user: sorted(now.rights_held(user)) for user in users},
            "stated": dict(stated),
            "persons": find_persons_in(membership, stated),
            "moves": {user: one.commit_id for user, one in moves.items()},
            "heirs": heirs,
            "recovered": find_recovered(operations, now, heirs),
            "friends": {user: {one.commit_id for one in find_namings(membership, user)} for user in users},
        }


def checkpoints_of(person: Person) -> dict[CommitId, bool | None]:
    """Return the membership checkpoints that a node considers, and which of them are true."""
    with person.replica.membership_lock:
        membership = person.replica.membership(person.repo().repo_id)
        considered = membership.checkpoints.considered(membership.operations)
        return {one.commit_id: membership.is_checkpoint_true(one) for one in considered}


async def epochs_of(person: Person) -> dict[str, dict[str, object]]:
    """Epochs with all that follows from the set of commits, and where the node writes."""
    shown = (await person.rotation.list_epochs(""))["epochs"]
    return {one["epoch"]: {**one, "follows": sorted(one["follows"])} for one in shown}


async def check_promise(world: World) -> None:
    """Compare all honest members. Raises Broken."""
    members = world.members()
    _check_verdicts(world)
    _check_nothing_waits(world, members)
    _check_equal(world, "equal_sets", {one.name: accepted_by(one) for one in members})
    held = {one.name: one.replica.members(one.repo()) for one in members}
    for one, other in pairwise(held):
        if held[one] != held[other]:
            raise Broken(
                "equal_members",
                f"{one}: {_say_members(world, held[one])}; {other}: {_say_members(world, held[other])}",
            )
    places = {one.name: places_of(one) for one in members}
    for one, other in pairwise(places):
        for what, found in places[one].items():
            if found != places[other][what]:
                raise Broken("equal_places", f"{what}: {one}: {found}; {other}: {places[other][what]}")
    signed = {one.name: statement_of(one) for one in members}
    for one, other in pairwise(signed):
        if signed[one] != signed[other]:
            raise Broken("equal_statements", f"{one} and {other} would sign other members")
    _check_checkpoints(world, members)
    _check_equal(world, "equal_voids", {one.name: voids_of(one) for one in members})
    orders = {one.name: orders_of(one) for one in members}
    for one, other in pairwise(orders):
        if orders[one] != orders[other]:
            raise Broken("equal_order", f"{one} and {other} show branches in other orders")
    digests = {
        one.name: sorted(one.digest(branch) for branch in one.replica.branches.values()) for one in members
    }
    for one, other in pairwise(digests):
        if digests[one] != digests[other]:
            raise Broken("equal_order", f"{one} and {other} have other digests")
    epochs = {one.name: await epochs_of(one) for one in members}
    for one, other in pairwise(epochs):
        if epochs[one] != epochs[other]:
            said = [
                f"{epoch[:8]} {one}: {epochs[one].get(epoch)} {other}: {epochs[other].get(epoch)}"
                for epoch in epochs[one].keys() | epochs[other].keys()
                if epochs[one].get(epoch) != epochs[other].get(epoch)
            ]
            raise Broken("equal_epochs", "; ".join(said))
    for member in members:
        _check_opens_all(world, member)
    _check_secrecy(world)
    _check_healing(world)
    _check_writers(world)
    _check_writers_may(world, members)


def _check_checkpoints(world: World, members: list[Person]) -> None:
    """What an honest member signed is true at all; of what an adversary signed all think alike."""
    honest = {one.user for name, one in world.people.items() if world.is_honest(name)}
    found = {one.name: checkpoints_of(one) for one in members}
    for one, other in pairwise(found):
        if found[one] != found[other]:
            raise Broken("equal_statements", f"{one} and {other} take other checkpoints for true")
    for member in members:
        authors = {row.commit_id: row.author for row in rows_of(member)}
        for commit_id, is_true in found[member.name].items():
            if not is_true and authors[commit_id] in honest:
                raise Broken("true_statements", f"{say_commit(world, commit_id)} is false at {member.name}")


def _say_members(world: World, held: dict[UserId, Permission]) -> str:
    return ", ".join(f"{world.name_of(user)} {one.name.lower()}" for user, one in held.items())


def _find_rows(world: World, commit_id: CommitId) -> Iterator[TimelineRow]:
    return (row for one in world.honest() for row in rows_of(one) if row.commit_id == commit_id)


def say_commit(world: World, commit_id: CommitId) -> str:
    """Say what a commit is."""
    for one in world.written:
        if one.commit_id == commit_id:
            return f"{commit_id.hex()[:8]} ({one.text!r})"
    for row in _find_rows(world, commit_id):
        return f"{commit_id.hex()[:8]} ({row.body_kind} by {world.name_of(row.author)})"
    return f"{commit_id.hex()[:8]} ({world.forged.get(commit_id, 'unknown')})"


def _check_equal(world: World, check: str, sets: dict[str, set[CommitId]]) -> None:
    whole = set().union(*sets.values())
    lacking = {name: whole - held for name, held in sets.items() if whole - held}
    if lacking:
        said = "; ".join(
            f"{name} lacks {len(ids)}: {', '.join(say_commit(world, one) for one in sorted(ids)[:4])}"
            for name, ids in lacking.items()
        )
        raise Broken(check, said)


def _check_verdicts(world: World) -> None:
    """What one honest node accepts, none rejects: members or not. What honest people wrote, none rejects at all."""
    honest = world.honest()
    accepted = {one.name: accepted_by(one) for one in honest}
    whole = set().union(*accepted.values())
    for one in honest:
        with one.replica.database.read() as connection:
            rejected = load_rejected(connection, sorted(whole))
        if rejected:
            names = [name for name, ids in accepted.items() if ids & rejected]
            said = ", ".join(say_commit(world, commit_id) for commit_id in sorted(rejected)[:4])
            raise Broken("equal_verdicts", f"{one.name} rejects what {' '.join(names)} accepted: {said}")


def _check_nothing_waits(world: World, members: list[Person]) -> None:
    """At a member nothing waits that a member wrote, or accepted: none is hostile."""
    users = {one.user for one in members}
    accepted = set().union(*(accepted_by(one) for one in members))
    for one in members:
        # An epoch of who was excluded may be sealed to a prekey that is gone, and nobody else may hold it.
        waiting = {
            it
            for it in waiting_at(one) - world.forged.keys()
            if it in accepted or any(row.author in users for row in _find_rows(world, it))
        }
        if waiting:
            said = ", ".join(say_commit(world, commit_id) for commit_id in sorted(waiting)[:4])
            raise Broken("nothing_waits", f"at {one.name} {len(waiting)} wait: {said}")


def _check_opens_all(world: World, person: Person) -> None:
    """A member reads each post as it was written."""
    texts = {one.commit_id: one.text for one in world.written}
    replica = person.replica
    rows = [row for row in rows_of(person) if row.commit_id in texts and not row.is_erased]
    with replica.database.read() as connection:
        blocks = load_blocks_of(connection, rows)
        for row in rows:
            _, body = open_stored(replica, row, blocks[row.num])
            if not isinstance(body, Post) or body.text != texts[row.commit_id]:
                raise Broken(
                    "opens_all", f"{person.name} reads {body!r} where {texts[row.commit_id]!r} was written"
                )


# --- secrecy ---


def _check_secrecy(world: World) -> None:
    """No former member holds the key in which somebody wrote who knew that it is none any more."""
    for outsider in world.people.values():
        if outsider.name == RELAY or not outsider.has_repo:
            continue
        keys = {(one.epoch_id, one.key) for one in world.keys_of(outsider)}
        for written in world.written:
            author = world.people[written.author]
            key = next(
                one.key
                for one in author.replica.tables.epochs.values()
                if one.epoch_id == written.epoch_id and one.claimed_by is None
            )
            if (written.epoch_id, key) in keys and not _may_read(world, outsider, written):
                raise Broken(
                    "nobody_excluded_reads",
                    f"{outsider.name} opens {written.text!r} in epoch {written.epoch_id.hex()[:8]}, "
                    f"whose author knew that {outsider.name} is no member any more",
                )


def _check_healing(world: World) -> None:
    """No thief who only listens opens what was written after an epoch that knows a later prekey of the robbed.

    Not where the robbed membership ended beside that prekey. Who knows of the end alone opens the epoch in one that need not
    know the prekey, for the excluded would have epochs started without end; and who has admitted it again hands that one
    over to an older prekey.
    """
    for theft in world.thefts:
        if _was_ended_beside(world, theft):
            continue
        for one in world.honest():
            with one.replica.membership_lock:
                membership = one.replica.membership(one.repo().repo_id)
                operations, now = membership.operations, membership.now()
                drawn = operations.find(theft.prekey)
                if drawn is None or now.prekey_of(theft.user) is None:
                    continue  # not here; or stated beside one another, for a feed was lost
                healed = [epoch for epoch in operations.epochs if operations.precedes(drawn, epoch)]
            opened = find_opened(theft, one)
            for written in world.written:
                if written.author != one.name or written.epoch_id not in opened:
                    continue
                known = set(one.roots()[: written.view.count])
                gives = any(_reaches(one, leak.epoch_id, written) for leak in world.leaks)
                if not gives and any(epoch.commit_id in known for epoch in healed):
                    raise Broken("a_stolen_home_heals", f"a thief opens {written.text!r} of {one.name}")


def _was_ended_beside(world: World, theft: Theft) -> bool:
    """Return True if the robbed membership, once given, was over for somebody who did not know the prekey."""
    for one in world.honest():
        with one.replica.membership_lock:
            given = one.replica.membership(one.repo().repo_id).operations.grants_of(theft.user)
        places = {commit_id: place for place, commit_id in enumerate(one.roots())}
        first = min((places[it.commit_id] for it in given), default=len(places))
        drawn = places.get(theft.prekey, len(places))
        for view in world.views[one.name]:
            if first < view.count <= drawn and theft.user not in view.members:
                return True
    return False


def _check_writers(world: World) -> None:
    """Nobody has the writers' secret of an epoch in which somebody wrote who could see that, and knew of the demotion."""
    for reader in world.people.values():
        secrets = {one.epoch_id for one in reader.replica.tables.epochs.values() if one.writers_secret}
        for written in world.written:
            held = written.view.members.get(reader.user, Permission.OWNER)
            if written.epoch_id not in secrets or held >= Permission.WRITE:
                continue
            author = world.people[written.author]
            known = set(author.roots()[: written.view.count])
            if reader.user in _find_known_holders(author, written.epoch_id, known, of_writers=True):
                detail = f"{reader.name}, who may read, has the writers' secret by which {written.text!r} was published"
                raise Broken("nobody_demoted_writes", detail)


def _check_writers_may(world: World, members: list[Person]) -> None:
    """Check that who may write has the writers' secret, unless an adversary may have given a false one (E10)."""
    honest = {one.user for name, one in world.people.items() if world.is_honest(name)}
    for one in members:
        epoch, held = one.epoch(), one.replica.members(one.repo())[one.user]
        with one.replica.membership_lock:
            operations = one.replica.membership(one.repo().repo_id).operations
            started = [it for it in operations.epochs if it.started_epoch == epoch.epoch_id]
            givers = {it.author for it in (*started, *operations.hands_of(epoch.epoch_id))}
        if held >= Permission.WRITE and epoch.writers_seed is None and givers <= honest:
            raise Broken("writers_have_secrets", f"{one.name} lacks that of the epoch in use")


async def check_duties(world: World) -> None:
    """Nodes have started by themselves what is due, and opened what is closed, where anybody may write. Raises Broken."""
    for one in world.members():
        held = one.replica.members(one.repo()).get(one.user)
        if held is None:
            raise Broken("equal_members", f"{one.name} does not know to be a member")
        if held < Permission.WRITE:
            continue
        if not any(epoch["clean"] for epoch in (await epochs_of(one)).values()):
            raise Broken("duties_are_done", f"at {one.name} an epoch is due")
        with one.replica.membership_lock:
            membership = one.replica.membership(one.repo().repo_id)
            closed = membership.epochs.find_unopened({one.epoch().epoch_id}, membership.now().heads)
        if closed:
            raise Broken("duties_are_done", f"at {one.name} the epoch in use does not open {len(closed)}")


def _may_read(world: World, outsider: Person, written: Written) -> bool:
    """Whether that somebody reads words is no breach of the promise."""
    if outsider.user in written.view.members:
        return True
    author = world.people[written.author]
    known = set(author.roots()[: written.view.count])
    if outsider.user in _find_known_holders(author, written.epoch_id, known):
        return False  # the author could see it
    causes = _find_ends(world, author, outsider.user, known)
    if causes is None:
        return True  # never a member as far as the author knew: a follower by a link
    causes |= {CommitId(written.epoch_id)}
    for one in world.honest():
        roots = one.roots()
        for view in world.views[one.name]:
            if outsider.user in view.members and causes <= set(roots[: view.count]) and _holds(one, written):
                # Not all that ended the membership counted there, or somebody was demoted who admitted the outsider again,
                # which starts no epoch: what was handed over then is not taken back.
                return True
    given = world.given.get(outsider.name, ())
    if any(_reaches(one, epoch, written) for one in world.honest() for epoch in given):
        return True  # a link opens the repo until the next epoch, whoever holds it
    gives = {leak.commit_id for leak in world.leaks if _reaches(author, leak.epoch_id, written)}
    return bool(gives - known)


def _find_known_holders(
    author: Person, epoch: EpochId, known: set[CommitId], *, of_writers: bool = False
) -> set[UserId]:
    """Return who has the key of an epoch by what its author knew: by a box, by publishing in it, or in one that opens it.

    `of_writers`, who has its writers' secret by a box.
    """
    with author.replica.membership_lock:
        operations = author.replica.membership(author.repo().repo_id).operations
        roots = [operations[one] for one in author.roots() if one in known]
    if of_writers:
        return {
            user
            for one in roots
            for user in (
                one.start.writers
                if one.start is not None and one.started_epoch == epoch
                else [item.user for item in one.body.boxes if item.writers_box is not None]
                if isinstance(one.body, EpochHand) and one.body.epoch == epoch
                else ()
            )
        }
    opens = {
        (one.started_epoch, given)
        for one in roots
        if isinstance(one.body, EpochInit) and one.start is not None
        for given in one.start.gives
    }
    opens |= {
        (one.epoch, given.epoch)
        for one in roots
        if isinstance(one.body, EpochOpen)
        for given in one.body.epochs
    }
    reaching = {epoch}
    while fresh := {one for one, given in opens if given in reaching} - reaching:
        reaching |= fresh
    found = {one.publisher or one.author for one in roots if one.epoch in reaching}
    for one in roots:
        if isinstance(one.body, EpochInit) and one.started_epoch in reaching and one.start is not None:
            found.update(one.start.members)
        elif isinstance(one.body, EpochHand) and one.body.epoch in reaching:
            found.update(item.user for item in one.body.boxes)
    return found


def _find_ends(world: World, author: Person, user: UserId, known: set[CommitId]) -> set[CommitId] | None:
    """Find what ended a membership and starts an epoch, as far as an author knew; nothing where that was the own leave."""
    with author.replica.membership_lock:
        operations = author.replica.membership(author.repo().repo_id).operations
        people, ahead = {user}, [user]
        found: set[CommitId] = set()
        was_member = False
        while ahead:
            one = ahead.pop()
            for grant in operations.grants_of(one):
                if grant.commit_id not in known:
                    continue
                was_member = was_member or one == user
                givers = {grant.author}
                invitation = getattr(grant.body, "invitation", None)
                if invitation is not None:
                    givers = {operations[invitation].author}
                    found |= {
                        r.commit_id
                        for r in operations.revocations_of(invitation)
                        # Who joined before stays.
                        if r.commit_id in known and not operations.precedes(grant, r)
                    }
                fresh = givers - people
                people |= fresh
                ahead += sorted(fresh)
            found |= {
                r.commit_id
                for r in operations.removals_by_others(one)
                if r.commit_id in known
                and isinstance(r.body, Remove)
                and (r.body.keeps or 0) < Permission.WRITE
            }
    return found if was_member else None


def _holds(person: Person, written: Written) -> bool:
    return any(one.epoch_id == written.epoch_id for one in person.replica.tables.epochs.values())


def _reaches(author: Person, epoch: EpochId, written: Written) -> bool:
    """Whether an epoch opens the one that something was written in, by all that its author knows."""
    with author.replica.membership_lock:
        epochs = author.replica.membership(author.repo().repo_id).epochs
        if epochs.find(epoch) is None or epochs.find(written.epoch_id) is None:
            return False
        nums = epochs._nums
        return epochs._reach.opens(nums[epoch], nums[written.epoch_id])


async def check_documents(world: World) -> None:
    """Compare the sets, dicts and texts of all honest members. Raises Broken."""
    for branch_id in world.branches:
        shown = {one.name: await show_documents(one, branch_id) for one in world.members()}
        for one, other in pairwise(shown):
            for what, said in shown[one].items():
                if said != shown[other][what]:
                    told = f"{what} of {branch_id.hex()[:8]}: {one}: {said[-900:]}; {other}: {shown[other][what][-900:]}"
                    raise Broken("equal_documents", told)


async def check_restarts(world: World) -> None:
    """What a node has in memory is what its store has; after a restart it says the same."""
    people = world.honest()
    for person in world.rng.sample(people, min(2, len(people))):
        await person.stop()
        assert_tables_are_stored(person.replica)
        before = await _said(person)
        person.reopen()
        _check_restored(person)
        after = await _said(person)
        if before != after:
            parts = [name for name in before if before[name] != after[name]]
            raise Broken(
                "restarts_agree", f"{person.name} says otherwise after a restart: {', '.join(parts)}"
            )


def _check_restored(person: Person) -> None:
    """Check that a snapshot restores of a membership all that judging its commits again gives."""
    replica, repo_id = person.replica, person.repo().repo_id
    with replica.membership_lock:
        found = replica.membership(repo_id)
        with replica.database.read() as connection:
            judged = load_membership(connection, replica.tables, repo_id)
        if not found.saved_count:
            raise Broken("restarts_restore", f"{person.name} has kept no snapshot")
        differing = [name for name, held in state_of(judged).items() if state_of(found)[name] != held]
        if differing:
            raise Broken("restarts_restore", f"{person.name} restores other {', '.join(differing)}")


async def _said(person: Person) -> dict[str, object]:
    repo = person.repo()
    with person.replica.membership_lock:
        membership = person.replica.membership(repo.repo_id)
        now = membership.now()
        lacking = [
            (epoch.epoch_id, user, membership.epochs.surely_holds(user, epoch.epoch_id))
            for epoch in person.replica.tables.held_epochs(repo.num).values()
            for user in sorted(now.members())
            if membership.epochs.find(epoch.epoch_id) is not None
        ]
    return {
        "members": person.replica.members(repo),
        "places": places_of(person),
        "order": orders_of(person),
        "voids": voids_of(person),
        "epochs": await epochs_of(person),
        "surely holds": sorted(lacking),
        "waiting": waiting_at(person),
        "writes in": person.epoch().epoch_id,
    }
