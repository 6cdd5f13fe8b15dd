"""States what this user calls itself in each repo, and keeps what it calls others. User actions, and the automatic part.

What a user says once is stated in every repo where it may write, also in those that it joins or creates later. The file of
names says what is to be stated, and the root branches what was; nothing else is remembered. Petnames stay in that file.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_job
from node.home.people_file import (
    OwnProfile,
    PeopleFile,
    check_person_name,
    read_people,
    with_petname,
    write_people,
)
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from node.membership.lobbies import is_lobby
from node.membership.members import find_user
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.body import Permission
from protocol.formats.profiles import Profile, tidy_name
from protocol.formats.text import id_text, parse_id
from protocol.ids import AnyId, PeerId
from protocol.limits.formats import PROFILE_COLOR_COUNT, PROFILE_INTERVAL_MS
from ravel.types.people import OwnName, OwnRepo, Petname, PetnameList
from storage.commits.blocks import DamagedBlock
from storage.repos.repos import Repo

log = structlog.get_logger()

_STATED_AT_ONCE: Final = 64
"""Repos in which a name is stated before other work has its turn: some tenths of a second."""


class ProfileKeeper:
    """Writes statements where they are due, for one user. Runs in worker threads."""

    def __init__(self, replica: Replica, author: Author, clock_ms: Callable[[], int], home: Path) -> None:
        """Reads the file of names. Raises ServiceError `bad_config`."""
        self._replica = replica
        self._author = author
        self._clock_ms = clock_ms
        self._home = home
        self._file = read_people(home)
        self._replica.people.set_petnames(*self._file.names())
        self._tick: int | None = None
        self._left: set[int] = set()
        """Repos in which it may be due: they were not looked at since they changed, or have to wait."""

    @property
    def me(self) -> OwnProfile:
        """Return this user's own name."""
        return self._file.me

    def keep(self, people: PeopleFile) -> None:
        """Put names in place of those that are there. Raises ServiceError."""
        write_people(self._home, people)
        if people.me != self._file.me:
            self._left = set(self._replica.repos)
        self._file = people
        self._replica.people.set_petnames(*people.names())

    @property
    def file(self) -> PeopleFile:
        """All names."""
        return self._file

    def statement_status(self, repo: Repo) -> str:
        """Return whether a repo has this user's profile: `stated`, `due`, or `not_permitted` if the user may not write."""
        replica, me = self._replica, self._author.user
        if not repo.has_members:
            return "not_permitted"
        known = replica.people.stated(repo.repo_id).get(me)
        wanted = self._file.me
        said = (None, None) if known is None else (known.name, known.color)
        if said == (wanted.name, wanted.color) or wanted.stated_at == 0:
            return "stated"
        if (replica.permission(repo, me) or 0) < Permission.WRITE:
            return "not_permitted"
        # Said later by another node of this user: else the two would contradict each other once a minute for ever.
        return "stated" if known is not None and known.stated_at >= wanted.stated_at else "due"

    def state(self, stored: IngestResult) -> float | None:
        """State the name in some repos that lack it; returns in how many seconds more can be stated, None for never.

        Looks at repos that have changed since the last call, and at those in which it could not be stated then.
        `stored` gets what was written. Raises StorageError. A refusal by the rules is logged, and tried again after the
        next change.
        """
        wait: float | None = None
        written = 0
        self._tick, changed = self._replica.shown.roots_since(self._tick)
        self._take_back(changed)
        self._left |= set(changed)
        here = [repo for num in sorted(self._left) if (repo := self._replica.repos.get(num)) is not None]
        due = [repo for repo in here if self.statement_status(repo) == "due"]
        self._left = {repo.num for repo in due}
        for repo in due:
            now_ms = self._clock_ms()
            if repo.is_behind or repo.repo_id in self._replica.own_feeds.uncertain:
                continue  # until the secrets or the feed's end have come, which is a change
            if not self._is_free(repo, now_ms):
                rest = PROFILE_INTERVAL_MS - now_ms % PROFILE_INTERVAL_MS
                wait = min(rest / 1000, wait or rest / 1000)
                continue
            if written == _STATED_AT_ONCE:
                wait = 0.0
                break
            root, drafts = self._replica.root_branch(repo), [Draft(self._body(), timestamp=now_ms)]
            try:
                self._author.write_many(root, drafts, stored=stored)
                written += 1
                self._left.discard(repo.num)
            except ServiceError as error:
                log.warning("a name is not stated", repo=id_text(repo.repo_id), reason=error.message)
        return wait

    def _take_back(self, changed: Iterable[int]) -> None:
        """Be called as in one of these repos where that was said later: the user came back by words, a file or a backup."""
        me = self._file.me
        repos = [repo for num in changed if (repo := self._replica.repos.get(num)) is not None]
        known = [self._replica.people.stated(repo.repo_id).get(self._author.user) for repo in repos]
        stated = [one for one in known if one is not None and one.stated_at > me.stated_at]
        last = max(stated, key=lambda one: one.stated_at, default=None)
        if last is not None and (last.name, last.color) != (me.name, me.color):
            me = OwnProfile(last.name, last.color, last.stated_at)
            self.keep(msgspec.structs.replace(self._file, me=me))

    def next_stated_at(self) -> int:
        """Return a time for a statement of now: later than all that this user's nodes have stated."""
        known = [
            self._replica.people.stated(repo.repo_id).get(self._author.user)
            for repo in self._replica.repos.values()
        ]
        return max([self._clock_ms(), *(one.stated_at + 1 for one in known if one is not None)])

    def _body(self) -> Profile:
        return Profile(self._file.me.name, self._file.me.color)

    def _is_free(self, repo: Repo, now_ms: int) -> bool:
        with self._replica.membership_lock:
            profiles = self._replica.membership(repo.repo_id).profiles
            return profiles.is_free(self._author.user, now_ms)


class NameActions:
    """User actions on names: one's own name, and petnames for others."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        keeper: ProfileKeeper,
        wake: Callable[[], None],
        list_peers: Callable[[], Iterable[PeerId]],
    ) -> None:
        """`wake` has the keeper look again, and `list_peers` gives the nodes that are known."""
        self._hub = hub
        self._author = author
        self._keeper = keeper
        self._wake = wake
        self._list_peers = list_peers

    async def show_me(self) -> OwnName:
        """Show this user's own name, and where others see it."""
        return await self._hub.run_blocking(self._own)

    async def state_me(self, name: str | None, color: int | None) -> OwnName:
        """Call this user so from now on; None for nothing. In each repo it is stated within a minute or so."""
        checked = None if name is None else check_person_name(name)
        if color is not None and not 0 <= color < PROFILE_COLOR_COUNT:
            raise ServiceError("bad_request", f"a color is a number from 0 to {PROFILE_COLOR_COUNT - 1}")
        await write_job(self._hub, partial(self._state, checked, color))
        self._wake()  # for what has to wait for the next minute
        return await self.show_me()

    async def list_petnames(self) -> PetnameList:
        """List this user's petnames for others."""
        people = self._hub.replica.people
        return {"petnames": _listed(people.petnames), "peers": _listed(people.peer_names)}

    async def set_petname(self, user: str, name: str | None, *, peer: bool) -> Petname:
        """Call a user, or (`peer`) a node, so on this node alone; None for nothing."""
        checked = None if name is None else check_person_name(name)
        found = await self._hub.run_blocking(self._find_peer if peer else self._find, user)
        await self._hub.write(self._keep_petname, found, checked, peer)
        return {"user": id_text(found), "name": checked or ""}

    # --- steps ---

    def _own(self) -> OwnName:
        repos: list[OwnRepo] = [
            {"repo": id_text(repo.repo_id), "name": repo.name, "state": self._keeper.statement_status(repo)}
            for repo in self._hub.replica.repos.values()
            if not is_lobby(self._hub.replica, repo)
        ]
        me = self._keeper.me
        return {
            "user": id_text(self._author.user),
            "name": me.name,
            "shown": self._shown(me.name),
            "color": me.color,
            "repos": repos,
        }

    def _shown(self, own: str | None) -> str:
        """Return the name of the person whose device this is, as a repo has it; empty where it is the own one."""
        replica, me = self._hub.replica, self._author.user
        for repo in replica.repos.values():
            stated = replica.people.stated(repo.repo_id).get(me)
            known = replica.people.of(repo.repo_id).get(me)
            if known is not None and known.name != own and (stated is None or stated.name != known.name):
                return known.name
        return ""

    def _state(self, name: str | None, color: int | None, stored: IngestResult) -> None:
        me = OwnProfile(name, color, self._keeper.next_stated_at())
        self._keeper.keep(msgspec.structs.replace(self._keeper.file, me=me))
        self._keeper.state(stored)

    def _keep_petname(self, raw: AnyId, name: str | None, is_peer: bool) -> None:
        self._keeper.keep(with_petname(self._keeper.file, raw, name, is_peer=is_peer))

    def _find(self, text: str) -> AnyId:
        """Find a user by id, else one known in any repo, or named, by a name or the beginning of the id."""
        try:
            return parse_id(text)
        except DecodeError:
            pass
        replica, found = self._hub.replica, dict[AnyId, None]()
        for repo in replica.repos.values():
            try:
                found[AnyId(find_user(text, replica, repo, everyone=True))] = None
            except DamagedBlock:  # who is a member there cannot be told now
                continue
            except ServiceError as error:
                if error.code == "ambiguous":
                    raise
        if not found:
            wanted = tidy_name(text)
            found |= {raw: None for raw, name in replica.people.petnames.items() if name == wanted}
        if len(found) > 1:
            listed = ", ".join(id_text(raw)[:12] for raw in list(found)[:8])
            raise ServiceError("ambiguous", f"more than one person fits {text!r}: {listed}", "give the id")
        if not found:
            raise ServiceError(
                "not_found",
                f"nobody here is called {text!r}",
                "give the whole id: `ravel member list REPO` shows it",
            )
        return next(iter(found))

    def _find_peer(self, text: str) -> AnyId:
        """Find a node by id, or a peer by the beginning of its id or its petname."""
        try:
            return parse_id(text)
        except DecodeError:
            people = self._hub.replica.people
            known = dict.fromkeys([*map(AnyId, self._list_peers()), *people.peer_names])
            return resolve("peer", text, [(raw, people.peer_name(raw), raw) for raw in known])


def _listed(names: Mapping[AnyId, str]) -> list[Petname]:
    ordered = sorted(names.items(), key=lambda one: (one[1].casefold(), one[0]))
    return [{"user": id_text(raw), "name": name} for raw, name in ordered]
