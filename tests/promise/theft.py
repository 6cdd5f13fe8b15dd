"""Homes that are copied right before their users state fresh prekeys, and what the thief, who then only listens, opens."""

from dataclasses import dataclass

from node.ingest.replica import load_start_parts
from protocol.crypto.epoch_boxes import BOX_SIZE, BoxOpener, epoch_mark, own_secret
from protocol.crypto.keys import AgreementSecret, EpochKey
from protocol.crypto.signing import key_pair
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, open_keys
from protocol.ids import CommitId, EpochId, Mark, RepoId, UserId
from storage.repos.prekeys import load_prekeys
from tests.promise.people import Person
from verifier.epoch_commits import epoch_statement
from verifier.operations import Operation


@dataclass(slots=True)
class Theft:
    """A copy of a home: what it opens with, and the prekey that its user stated right after."""

    user: UserId
    keys: set[EpochId]
    secrets: list[AgreementSecret]
    prekey: CommitId


def copy_home(person: Person) -> tuple[set[EpochId], list[AgreementSecret]]:
    """Copy what a home holds of the repo: epochs, and secrets that open boxes."""
    repo = person.repo()
    with person.replica.database.read() as connection:
        secrets = [*load_prekeys(connection, repo.num).values()]
    return {*person.replica.tables.held_epochs(repo.num)}, [
        *secrets,
        own_secret(key_pair(person.user_seed)[1]),
    ]


def find_opened(theft: Theft, person: Person) -> set[EpochId]:
    """Find the epochs that a thief comes to hold by all that an honest member has accepted."""
    repo, replica = person.repo(), person.replica
    with replica.membership_lock:
        operations = replica.membership(repo.repo_id).operations
        all_of_them = operations.since(0)
    real = {one.epoch_id: one.key for one in replica.tables.held_epochs(repo.num).values()}
    opened, size = set(theft.keys), -1
    while size != len(opened):
        size = len(opened)
        for one in all_of_them:
            if one.epoch not in opened and one.started_epoch not in opened:
                continue  # it cannot be read
            match one.body:
                case EpochInit():
                    opened |= _open_init(theft, person, one, opened, real)
                case EpochOpen():
                    opened.update(given.epoch for given in one.body.epochs)
                case EpochHand():
                    boxes = [item.box for item in one.body.boxes if item.user == theft.user]
                    if any(_opens(theft, one.body.mark, box, repo.repo_id) for box in boxes):
                        opened.add(one.body.epoch)
                case _:
                    pass
    return opened


def _open_init(
    theft: Theft, person: Person, init: Operation, opened: set[EpochId], real: dict[EpochId, EpochKey]
) -> set[EpochId]:
    assert init.start is not None, "an init starts an epoch"
    repo_id, mark = person.repo().repo_id, epoch_statement(init).mark
    with person.replica.database.read() as connection:
        parts = load_start_parts(connection, person.replica.tables, init.commit_id)
    found: set[EpochId] = set()
    if theft.user in init.start.members:
        place = BOX_SIZE * sum(other < theft.user for other in init.start.members)
        if _opens(theft, mark, parts.boxes[place : place + BOX_SIZE], repo_id):
            found.add(init.started_epoch)
    if init.started_epoch in opened | found:
        given = open_keys(real[init.started_epoch], repo_id, mark, parts.keys) or ()
        found.update(one.epoch for one in given)
    return found


def _opens(theft: Theft, mark: Mark, box: bytes, repo_id: RepoId) -> bool:
    for secret in theft.secrets:
        key = BoxOpener(theft.user, secret, mark).open(box)
        if key is not None and epoch_mark(EpochKey(key), repo_id) == mark:
            return True
    return False
