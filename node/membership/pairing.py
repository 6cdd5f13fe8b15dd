"""User actions on a person's devices: add, list, remove. `devices` holds the automatic part.

`node.membership.devices` has what is done without being asked.
"""

from functools import cache, partial
from shlex import quote
from typing import Final

import trio

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import create_repo, write_commit, write_job
from node.ingest.ingest_result import IngestResult
from node.membership.devices import (
    DeviceKeeper,
    DevicesHome,
    find_devices,
    find_home,
    find_left_home,
    find_removed,
    find_remover,
    last_end,
)
from node.membership.members import Members
from node.membership.persons import held_otherwise, users_of
from node.membership.promotion import Promotion, find_move_time
from node.membership.sharing import Sharing
from node.membership.unsettled import find_next_step
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.runtime.wording import date_text
from node.sync.hub import Hub
from protocol.formats.body import Permission, RecoveryGrant, RepoInit
from protocol.formats.devices import Device, DeviceEnd, DevicesRepo
from protocol.formats.links import device_link_text, find_kept_ask
from protocol.formats.proofs import device_end_digest
from protocol.formats.text import id_text
from protocol.ids import UserId
from protocol.limits.formats import DEVICE_COUNT_MAX
from ravel.types.devices import (
    DeviceLinkView,
    DeviceList,
    DeviceRepo,
    DeviceSync,
    GivenRepo,
    LeftRepo,
    LetInDevice,
    PromotedDevice,
    RemovedDevice,
    StayedDevice,
)
from storage.repos.repos import Repo
from verifier.operations import Operation
from verifier.places import find_heirs, find_keys, find_moves

_REPO_NAME: Final = "devices"
_ON_THE_FIRST: Final = (
    "run it on the first device, or leave that one's with `ravel device remove` and this user's id"
)
_OF_FOUNDER: Final = "nobody may; `ravel repo fork` goes on without it (docs/people/devices.md)"


class Pairing:
    """Adds devices, and removes them."""

    def __init__(self, hub: Hub, author: Author, sharing: Sharing, members: Members) -> None:
        self._hub = hub
        self._author = author
        self._sharing = sharing
        self._members = members
        self._keeper = DeviceKeeper(hub.replica, author, hub.clock_ms)

    async def add(self, expires_seconds: int, reach: str = "machine") -> DeviceLinkView:
        """Make a link for a device. Who uses it first is handed on all that this user has, now and later."""
        home = await self._hub.run_blocking(self._home)
        if home is not None and home.person != self._author.user:
            raise ServiceError(
                "not_permitted", f"this is a device of {self._called(home)} already", _ON_THE_FIRST
            )
        if home is None:
            await self._refuse_passed("run it there")
            home = await self._found()
        others = await self._hub.run_blocking(self._others, home)
        if len(others) + 1 >= DEVICE_COUNT_MAX:
            raise ServiceError(
                "too_large",
                f"a person has at most {DEVICE_COUNT_MAX} devices",
                "`ravel device remove` removes one",
            )
        link, made = await self._sharing.invite_device(home.repo, expires_seconds, reach)
        return {
            "person": id_text(home.person),
            "repo": id_text(home.repo.repo_id),
            "link": device_link_text(link),
            "id": made["id"],
            "expires_at": made["expires_at"],
            "addresses": made["addresses"],
            "reach": made["reach"],
        }

    async def join(self, link: str) -> DeviceList:
        """Become a device by a link; waits a while until that is so, and goes on without it."""
        # As a member again it would void its own move for all who see whose devices these are.
        await self._refuse_passed("this computer cannot become a device again")
        home = await self._hub.run_blocking(self._home)
        if home is not None:
            if home.person != self._author.user:
                raise ServiceError(
                    "already_exists",
                    f"this is a device of {self._called(home)} already",
                    "`ravel device list` lists what it may; `ravel device remove` with this user's id ends that",
                )
            others = await self._hub.run_blocking(self._others, home)
            if others:
                raise ServiceError(
                    "already_exists",
                    "this is the first device of others",
                    "`ravel device remove` takes them out first",
                )
        await self._sharing.join_as_device(link)
        return await self.list_all()

    async def list_all(self) -> DeviceList:
        """List the devices of this user's person, and their standing in the repos of the first that are here."""
        return await self._hub.run_blocking(self._list)

    async def sync(self) -> DeviceSync:
        """Hand on again, as the first device, whatever another lacks, also where it was taken from it."""
        home = await self._hub.run_blocking(self._home)
        if home is None or home.person != self._author.user:
            raise ServiceError("not_permitted", "repos are handed on by the first device", "run it there")
        given: list[GivenRepo] = []
        for device, repo, gives in await self._hub.run_blocking(self._lacking, home):
            advice = ""
            try:
                await write_job(self._hub, partial(self._keeper.hand_repo_to, home, device, repo, gives))
            except ServiceError as error:
                advice = error.message
                if gives is not None and error.code == "not_permitted":
                    grant = f"{quote(repo.name)} {id_text(device)} {gives.name.lower()}"
                    advice += f"; an admin may: `ravel member grant {grant}`"
            one: GivenRepo = {
                "device": id_text(device),
                "repo": id_text(repo.repo_id),
                "name": repo.name,
                "advice": advice,
            }
            given.append(one)
        return {"given": given}

    async def remove(self, device: str) -> RemovedDevice:
        """Take a device out of all repos, and withdraw the statement. Of oneself, only withdraw it.

        What the first device gave it takes back as a reader, too. Returns for each repo what was done, and what is left to
        do.
        """
        home = await self._hub.run_blocking(self._home)
        if home is None:
            await self._refuse_passed("run it there")
            raise ServiceError("not_found", "this user has no other devices", "`ravel device add` adds one")
        users = [home.person, *await self._hub.run_blocking(self._others, home), self._author.user]
        key = resolve(
            "device", device, ((user, self._name(home, user), user) for user in dict.fromkeys(users))
        )
        if key == home.person == self._author.user:
            raise ServiceError(
                "bad_request", "this is the first device", "remove the others, or do it on one of them"
            )
        repos = await self._hub.run_blocking(self._repos_of, key)
        # The devices repo last: what fails before can be tried again.
        ordered = sorted(repos, key=lambda one: one.num == home.repo.num)
        return {
            "device": id_text(key),
            "repos": [await self._remove_from(home, repo, key) for repo in ordered],
        }

    async def promote(self, device: str) -> PromotedDevice:
        """Pass this user's place to a device in all repos: it is the first one then, and this one no member any more."""
        run, me = self._hub.run_blocking, self._author.user
        home = await run(self._home) or await run(find_left_home, self._hub.replica, me)
        if home is None:
            raise ServiceError("not_found", "this user has no other devices", "`ravel device add` adds one")
        if me not in home.keys:
            raise ServiceError(
                "not_permitted",
                f"this is a device of {self._called(home)}",
                "run it on the first device, whose place passes",
            )
        others = await run(self._others, home) if home.person == me else [home.person]
        key = resolve("device", device, ((user, self._name(home, user), user) for user in others))
        promotion = Promotion(self._hub, self._author, self._keeper)
        return {"device": id_text(key), "repos": await promotion.pass_all(home, key, others)}

    # --- steps ---

    async def _refuse_passed(self, advice: str) -> None:
        """Raise ServiceError if this user's place passed to another device."""
        left = await self._hub.run_blocking(find_left_home, self._hub.replica, self._author.user)
        if left is not None:
            heir = self._name(left, left.person) or id_text(left.person)
            since = find_move_time(self._hub.replica, left.repo, self._author.user)
            said = f"your place has passed to the computer {heir} on {date_text(since)}"
            raise ServiceError("not_permitted", said, advice)

    async def _remove_from(self, home: DevicesHome, repo: Repo, device: UserId) -> LeftRepo:
        me, is_home, run = self._author.user, repo.num == home.repo.num, self._hub.run_blocking
        done: LeftRepo = {
            "repo": id_text(repo.repo_id),
            "name": repo.name,
            "taken_back": False,
            "excluded": False,
            "renewed": False,
            "left": False,
            "advice": "",
        }
        asks = f"ask an admin for `{_exclusion(repo, device)}`"
        if (
            device == home.person
            and not is_home
            and (held := await run(self._hub.replica.permission, repo, me))
        ):
            # Its devices go along: what they hold, it gave.
            asks += f" and then `ravel member grant {quote(repo.name)} {id_text(me)} {held.name.lower()}`"
        try:
            done["taken_back"] = await write_job(self._hub, partial(self._retract, home, repo, device))
            if is_home and me != home.person and device in (me, home.person):
                await self._members.leave(id_text(repo.repo_id), force=False)
                done["left"] = True
            elif device != me:
                before = self._hub.replica.writing_epoch(repo).epoch_id
                keeps = await run(self._given_by_others, repo, device)
                removed = await self._members.remove(
                    id_text(repo.repo_id), id_text(device), keeps, person=False
                )
                done["excluded"] = not keeps
                done["renewed"] = removed["epoch"] != id_text(before)
                if keeps:
                    done["advice"] = f"others gave it the permission {keeps}; {asks}"
        except ServiceError as error:
            if is_home or home.person not in (me, device):
                advice = "run `ravel device remove` on the first device too"
            elif error.code != "needs_quorum" and await run(self._is_founder, repo, device):
                advice = _OF_FOUNDER
            else:
                advice = f"{asks}: {error.advice}"
            done["advice"] = f"{error.message}; {advice}"
        return done

    def _given_by_others(self, repo: Repo, device: UserId) -> str:
        """Return the permission that a device keeps where this user may take back only what it gave itself; empty: none."""
        me = self._author.user
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            now, operations = membership.now(), membership.operations
            kept = held_otherwise(membership, device, find_keys(operations, now, me))
            is_admin = (now.permission(me) or 0) >= Permission.ADMIN
            is_less = kept is not None and kept < (now.permission(device) or 0)
            return kept.name.lower() if kept is not None and is_less and not is_admin else ""

    def _is_founder(self, repo: Repo, user: UserId) -> bool:
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            init = membership.operations.epochs[0].body
            keys = find_keys(membership.operations, membership.now(), user)
            return isinstance(init, RepoInit) and bool(keys.intersection(init.owners))

    def _home(self) -> DevicesHome | None:
        return find_home(self._hub.replica, self._author.user)

    def _repos_of(self, user: UserId) -> list[Repo]:
        """Repos that a user is a member of."""
        replica = self._hub.replica
        return [
            repo
            for repo in replica.repos.values()
            if repo.has_members
            and repo.repo_id not in replica.lobbies
            and replica.permission(repo, user) is not None
        ]

    def _others(self, home: DevicesHome) -> list[UserId]:
        return find_devices(self._hub.replica, home, self._hub.clock_ms())

    async def _found(self) -> DevicesHome:
        """Make the devices repo, under a name that is free here."""
        replica = self._hub.replica
        taken = {repo.name for repo in replica.repos.values()}
        names = [_REPO_NAME, *(f"{_REPO_NAME}-{number}" for number in range(2, len(taken) + 3))]
        name = next(name for name in names if name not in taken)
        user = self._author.user
        # Two writes: a repo without its statement would be found by nobody.
        with trio.CancelScope(shield=True):
            repo = await create_repo(self._hub, self._author, name)
            await write_commit(self._hub, self._author, replica.root_branch(repo), DevicesRepo(user))
        return DevicesHome(repo, user, frozenset({user}))

    def _retract(self, home: DevicesHome, repo: Repo, device: UserId, stored: IngestResult) -> bool:
        """Retract that the device and this user, or this user as a device, are one person; False if nothing was said."""
        replica, me = self._hub.replica, self._author.user
        if me == home.person:
            pair = me, device
        elif device in (me, home.person):
            pair = home.person, me
        else:
            return False
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            heirs = find_heirs(find_moves(membership.operations, membership.now(), me))
            said = [
                one.body.since
                for one in membership.device_statements
                if isinstance(one.body, Device)
                and (heirs.get(one.body.person, one.body.person), one.body.device) == pair
            ]
            persons = {pair[0], *(old for old, heir in heirs.items() if heir == pair[0])}
            if max(said, default=-1) <= last_end(membership, persons, pair[1]):
                return False
            if (membership.now().permission(me) or 0) < Permission.WRITE:
                return False
        until = max(self._hub.clock_ms(), *said)
        signature = self._author.sign(device_end_digest(repo.repo_id, *pair, until))
        body = DeviceEnd(*pair, until, me == home.person, signature)
        self._author.write_many(replica.root_branch(repo), [Draft(body)], stored=stored)
        return True

    def _list(self) -> DeviceList:
        me, let_in = self._author.user, self._let_in()
        home = self._home()
        if home is None:
            joining = any(
                repo.invitation is not None and find_kept_ask(repo.invitation) is None
                for repo in self._hub.replica.repos.values()
            )
            former = find_remover(self._hub.replica, me)
            left = find_left_home(self._hub.replica, me)
            return {
                "person": id_text(me),
                "repo": None,
                "joining": joining,
                "devices": [],
                "stayed": [],
                "let_in": let_in,
                "removed_by": None if former is None else id_text(former.person),
                "removed_by_name": ""
                if former is None
                else self._hub.replica.people.name(former.repo.repo_id, former.person),
                "moved_to": None if left is None else id_text(left.person),
                "moved_to_name": "" if left is None else self._name(left, left.person),
            }
        users = dict.fromkeys([home.person, *self._others(home), me])
        return {
            "person": id_text(home.person),
            "repo": id_text(home.repo.repo_id),
            "joining": False,
            "devices": [
                {
                    "user": id_text(user),
                    "name": self._name(home, user),
                    "first": user == home.person,
                    "this": user == me,
                    "repos": [] if user == home.person else [view for _, view in self._stand(home, user)],
                }
                for user in users
            ],
            "stayed": self._stayed(home),
            "let_in": let_in,
            "removed_by": None,
            "removed_by_name": "",
            "moved_to": None,
            "moved_to_name": "",
        }

    def _stayed(self, home: DevicesHome) -> list[StayedDevice]:
        """List the repos in which devices that the first one removed are members."""
        found: list[StayedDevice] = []
        for device in find_removed(self._hub.replica, home):
            for repo in self._repos_of(device):
                held = self._hub.replica.permission(repo, device)
                if held is None:  # it went meanwhile
                    continue
                is_founder = self._is_founder(repo, device)
                one: StayedDevice = {
                    "device": id_text(device),
                    "called": self._name(home, device),
                    "repo": id_text(repo.repo_id),
                    "name": repo.name,
                    "permission": held.name.lower(),
                    "advice": _OF_FOUNDER if is_founder else f"an admin may: `{_exclusion(repo, device)}`",
                }
                found.append(one)
        return found

    def _let_in(self) -> list[LetInDevice]:
        """List the keys that friends let in as this person's, this user among them, and that are members by it."""
        replica, me = self._hub.replica, self._author.user
        found: list[LetInDevice] = []
        for repo in replica.repos.values():
            if not repo.has_members:
                continue
            mine, name = (
                users_of(replica.persons(repo.repo_id), me),
                partial(replica.people.name, repo.repo_id),
            )
            with replica.membership_lock:
                membership = replica.membership(repo.repo_id)
                credentials_of = cache(membership.now().credentials_of)
                grants = membership.operations.recovery_grants
                counting: dict[UserId, list[tuple[Operation, RecoveryGrant]]] = {}
                for member in grants.keys() & mine:
                    for one in membership.operations.in_order(grants[member]):
                        if isinstance(one.body, RecoveryGrant) and one in credentials_of(one.body.user):
                            counting.setdefault(one.body.user, []).append((one, one.body))
                held = held_otherwise(membership, me) or 0
            for user, pairs in counting.items():  # several friends may publish beside each other
                given = [body for _, body in pairs]
                if user == me and held >= max(body.permission for body in given):  # granted since
                    continue
                friends = list(dict.fromkeys(one.friend for body in given for one in body.signatures))
                step = find_next_step(replica, repo, user) if user == me else None
                view: LetInDevice = {
                    "device": id_text(user),
                    "this": user == me,
                    "repo": id_text(repo.repo_id),
                    "name": repo.name,
                    "friends": [*map(id_text, friends)],
                    "friend_names": [*map(name, friends)],
                    "time": pairs[0][0].timestamp // 1000,
                    "grant": "" if step is None else step.command,
                    "grantors": [] if step is None else step.names(replica.people, repo.repo_id, me),
                }
                found.append(view)
        return found

    def _called(self, home: DevicesHome) -> str:
        """Return the name of the person whose devices these are, else the id."""
        return self._hub.replica.people.name(home.repo.repo_id, home.person) or id_text(home.person)

    def _name(self, home: DevicesHome, device: UserId) -> str:
        """Return the device's own name, which tells it from the others: all are shown by that of the person."""
        people = self._hub.replica.people
        said = people.stated(home.repo.repo_id).get(device)
        return people.petname(device) or (said.name if said is not None and said.name is not None else "")

    def _stand(self, home: DevicesHome, device: UserId) -> list[tuple[Repo, DeviceRepo]]:
        """List how a device stands in each repo that the first device is a member of."""
        replica = self._hub.replica
        found = []
        for repo in replica.repos.values():
            held = replica.permission(repo, home.person) if repo.has_members else None
            if held is None or repo.num == home.repo.num or repo.repo_id in replica.lobbies:
                continue
            has = replica.permission(repo, device)
            view: DeviceRepo = {
                "repo": id_text(repo.repo_id),
                "name": repo.name,
                "permission": None if has is None else has.name.lower(),
                "shown": replica.persons(repo.repo_id).get(device) == home.person,
                "lacking": (has or 0) < held,
            }
            found.append((repo, view))
        return found

    def _lacking(self, home: DevicesHome) -> list[tuple[UserId, Repo, Permission | None]]:
        """List repos that other devices lack, with what they get there, or show as another person's."""
        replica = self._hub.replica
        found: list[tuple[UserId, Repo, Permission | None]] = []
        for device in self._others(home):
            for repo, view in self._stand(home, device):
                if view["lacking"]:
                    with replica.membership_lock:
                        membership = replica.membership(repo.repo_id)
                        held = membership.now().permission(home.person)
                        # What is held by a device grant the rules let nobody give on, and say so.
                        gives = held_otherwise(membership, home.person) or held
                        if gives is not None and gives <= (membership.now().permission(device) or 0):
                            gives = held
                    found.append((device, repo, gives))
                elif view["permission"] != Permission.READ.name.lower() and not view["shown"]:
                    found.append((device, repo, None))
        return found


def _exclusion(repo: Repo, device: UserId) -> str:
    return f"ravel member exclude {quote(repo.name)} {id_text(device)}"
