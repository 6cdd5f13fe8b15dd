"""User actions by which friends let a person in again whose keys are lost: name friends, sign, publish (M19, M20)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_job
from node.ingest.ingest_result import IngestResult
from node.membership.devices import is_devices_repo
from node.membership.members import find_user
from node.membership.persons import held_otherwise, users_of
from node.membership.unsettled import find_next_step
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.crypto.signing import BadSignature
from protocol.formats.body import Body, FriendSignature, Permission, RecoveryFriends, RecoveryGrant
from protocol.formats.links import RecoveryText, SignedRecovery, parse_recovery, recovery_text
from protocol.formats.proofs import recovery_digest, verify_recovery
from protocol.formats.text import id_text, pasted_word
from protocol.ids import CommitId, RepoId, UserId
from protocol.limits.formats import RECOVERY_FRIEND_COUNT_MAX, RECOVERY_TEXT_COUNT_MAX
from ravel.types.recovery import (
    NamedFriends,
    RecoveredRepo,
    RecoveryList,
    RecoveryPerson,
    RecoveryResult,
    RecoverySignatures,
    RepoFriends,
    SignedRepo,
)
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.places import find_keys, find_moves

_INVITE: Final = "have an admin invite the new key"
_ID_THERE: Final = "the new computer's `ravel id` prints its id"
_NAMINGS_BESIDE_MAX: Final = 16
"""Namings beside one another that are looked at: a member, or who has its key, may make any number of them."""
_NOT_HERE: Final = "the repo is not on this computer; a member of it runs this"


class _Wanted(NamedTuple):
    """Subject of friends' signatures: of equal ones each friend has one."""

    repo: RepoId
    friends: CommitId
    user: UserId
    permission: Permission


class Recovery:
    """Names friends, signs as one, and publishes what enough of them have signed."""

    def __init__(self, hub: Hub, author: Author) -> None:
        self._hub = hub
        self._author = author

    async def show(self) -> RecoveryList:
        """List whom this user named as friends, in each repo, and for whom it is one."""
        return await self._hub.run_blocking(self._show)

    async def name_friends(self, friends: list[str], need: int | None, only: str) -> NamedFriends:
        """Name friends in one repo, or in all of this user's; none of them ends it. In each, those who are members."""
        repos = await self._hub.run_blocking(self._own_repos)
        if only:
            repos = [resolve("repo", only, ((one.repo_id, one.name, one) for one in repos))]
        if not repos:
            raise ServiceError(
                "not_found", "you are a member of no repo", "ravel repo create NAME, or ravel repo join -"
            )
        keys = await self._hub.run_blocking(self._find_friends, friends, repos)
        self._check_persons(len(friends), keys, repos)
        least, most = len(keys) // 2 + 1 if keys else 0, len(keys)
        need = least if need is None else need
        if not least <= need <= most:
            raise ServiceError("bad_request", f"of {most} friends {least} to {most} are needed, not {need}")
        done = [await self._name_in(one, keys, need) for one in repos]
        return {"repos": done}

    async def sign(self, member: str, user: str) -> RecoverySignatures:
        """Sign as a friend of a member that a key is its device, in each repo in which it named this user."""
        repos = await self._hub.run_blocking(self._own_repos)
        [person] = await self._hub.run_blocking(self._find_friends, [member], repos)
        key = await self._hub.run_blocking(self._find_key, user, repos, _ID_THERE)
        await self._hub.run_blocking(self._check_new, repos, person, key)
        signed, views = await self._hub.run_blocking(self._sign, repos, person, key)
        if not signed:
            held = [
                await self._hub.run_blocking(self._hub.replica.permission, repo, person) for repo in repos
            ]
            if not any(one is not None for one in held):
                raise ServiceError("not_permitted", f"{member} is no member any more", _INVITE)
            raise ServiceError(
                "not_permitted",
                f"{member} named you in no repo in which this key lacks anything",
                "`ravel recovery show` says for whom you are a friend",
            )
        parts = [
            signed[at : at + RECOVERY_TEXT_COUNT_MAX] for at in range(0, len(signed), RECOVERY_TEXT_COUNT_MAX)
        ]
        texts = [recovery_text(RecoveryText(key, self._author.user, tuple(part))) for part in parts]
        return {"member": id_text(person), "user": id_text(key), "texts": texts, "repos": views}

    async def finish(self, texts: list[str]) -> RecoveryResult:
        """Publish what enough friends have signed, in each repo that is here."""
        found: dict[_Wanted, dict[UserId, FriendSignature]] = {}
        for text in texts:
            given = _parse(text)
            for one in given.signed:
                wanted = _Wanted(one.repo, one.friends, given.user, one.permission)
                signatures = found.setdefault(wanted, {})
                known = signatures.get(given.friend)
                if known is None or not _holds(wanted, known):  # anybody can write a text in a friend's name
                    signatures[given.friend] = FriendSignature(given.friend, one.signature)
        best = sorted(found.items(), key=lambda pair: (pair[0][:3], -len(pair[1]), -pair[0].permission))
        return {"repos": [await self._finish_in(wanted, [*signed.values()]) for wanted, signed in best]}

    # --- steps ---

    def _own_repos(self) -> list[Repo]:
        replica, me = self._hub.replica, self._author.user
        return [
            repo
            for repo in replica.repos.values()
            if repo.has_members
            and repo.repo_id not in replica.lobbies
            and replica.permission(repo, me) is not None
            and not is_devices_repo(replica, repo, me)
        ]

    def _find_friends(self, texts: Sequence[str], repos: Sequence[Repo]) -> list[UserId]:
        """Find users by id or by name in any of some repos, each once and sorted."""
        return sorted({self._find_key(text, repos) for text in texts})

    def _check_persons(self, named: int, keys: Sequence[UserId], repos: Sequence[Repo]) -> None:
        """Raise ServiceError where this person is among friends, or two of them are one person, who would sign twice."""
        persons = {
            user: person for repo in repos for user, person in self._hub.replica.persons(repo.repo_id).items()
        }
        found, me = {persons.get(one, one) for one in keys}, self._author.user
        if persons.get(me, me) in found:
            raise ServiceError("bad_request", "you are no friend of your own", "name other members")
        if len(found) < named:
            raise ServiceError(
                "bad_request", "two of these friends are the same person", "name each person once"
            )

    def _find_key(self, text: str, repos: Sequence[Repo], advice: str = "") -> UserId:
        found = set[UserId]()
        for repo in repos:
            try:
                found.add(find_user(text, self._hub.replica, repo, everyone=True))
            except ServiceError as error:
                if error.code != "not_found":
                    raise
        if len(found) != 1:
            code = "ambiguous" if found else "not_found"
            said = "is more than one person" if found else "is nobody in your repos"
            raise ServiceError(
                code, f"{text!r} {said}", advice or "give the whole id: `ravel id` prints it there"
            )
        return found.pop()

    def _check_new(self, repos: Sequence[Repo], person: UserId, key: UserId) -> None:
        """Raise ServiceError where a key is or was another member's, or passed its place on: it is no new one."""
        for repo in repos:
            persons = self._hub.replica.persons(repo.repo_id)
            with self._hub.replica.membership_lock:
                membership = self._hub.replica.membership(repo.repo_id)
                operations, now = membership.operations, membership.now()
                is_left = key in find_moves(operations, now, key)
                mine = users_of(persons, person) | find_keys(operations, now, person)
                rights = operations.grants_of(key)
                is_other = key not in mine and any(
                    not one.is_device_grant or one.author not in mine for one in rights
                )
            if is_left:
                raise ServiceError("not_permitted", f"this key passed its place in {repo.name} on", _ID_THERE)
            if is_other:
                called = self._called(key, repo) or id_text(key)
                raise ServiceError(
                    "not_permitted",
                    f"this key is or was another member's in {repo.name}: {called}",
                    _ID_THERE,
                )

    async def _name_in(self, repo: Repo, friends: list[UserId], need: int) -> RepoFriends:
        me = self._author.user
        members = await self._hub.run_blocking(self._hub.replica.members, repo)
        here = [one for one in friends if one in members and one != me]
        view = _friends_view(repo, here, need if here else 0, partial(self._called, repo=repo))
        if friends and len(here) < need:
            view["advice"] = f"{len(here)} of these friends are members, and {need} are needed"
            return view
        if len(here) > RECOVERY_FRIEND_COUNT_MAX:
            view["advice"] = f"at most {RECOVERY_FRIEND_COUNT_MAX} friends"
            return view
        body = RecoveryFriends(tuple(here), need if here else 0)
        try:
            view["changed"] = await write_job(self._hub, partial(self._name, repo, body))
        except ServiceError as error:
            view["advice"] = _said(error)
        return view

    def _name(self, repo: Repo, body: RecoveryFriends, stored: IngestResult) -> bool:
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            now = [one.body for one in find_namings(membership, self._author.user)]
        if now == [body] or not (now or body.friends):
            return False
        self._write(repo, body, stored)
        return True

    def _sign(
        self, repos: Sequence[Repo], person: UserId, key: UserId
    ) -> tuple[list[SignedRecovery], list[SignedRepo]]:
        signed: list[SignedRecovery] = []
        views: list[SignedRepo] = []
        for repo in repos:
            with self._hub.replica.membership_lock:
                membership = self._hub.replica.membership(repo.repo_id)
                gives = held_otherwise(membership, person)
                has = membership.now().permission(key) or 0
                namings = [
                    one.commit_id
                    for one in find_namings(membership, person)
                    if isinstance(one.body, RecoveryFriends)
                    and self._author.user in one.body.friends
                    and not _let_in_before(membership, one, key)
                ]
            if gives is None or has >= gives:
                continue
            for naming in namings:
                digest = recovery_digest(repo.repo_id, naming, key, gives)
                signed.append(SignedRecovery(repo.repo_id, naming, gives, self._author.sign(digest)))
            if namings:
                views.append(
                    {"repo": id_text(repo.repo_id), "name": repo.name, "permission": gives.name.lower()}
                )
        return signed, views

    async def _finish_in(self, wanted: _Wanted, signed: Sequence[FriendSignature]) -> RecoveredRepo:
        done: RecoveredRepo = {
            "repo": id_text(wanted.repo),
            "name": "",
            "member": None,
            "member_name": "",
            "user": id_text(wanted.user),
            "permission": wanted.permission.name.lower(),
            "signed": 0,
            "need": 0,
            "let_in": False,
            "already": False,
            "grant": "",
            "grantors": [],
            "advice": "",
        }
        repo = self._hub.replica.tables.of_id.get(wanted.repo)
        if repo is None or not repo.has_members:
            return {**done, "advice": _NOT_HERE}
        try:
            await write_job(self._hub, partial(self._let_in, repo, wanted, signed, done))
        except ServiceError as error:
            done["advice"] = _said(error)
        if done["let_in"] or done["already"]:
            step = await self._hub.run_blocking(find_next_step, self._hub.replica, repo, wanted.user)
            if step is not None:
                done["grant"] = step.command
                done["grantors"] = step.names(self._hub.replica.people, repo.repo_id, wanted.user)
        return done

    def _let_in(
        self,
        repo: Repo,
        wanted: _Wanted,
        signed: Sequence[FriendSignature],
        done: RecoveredRepo,
        stored: IngestResult,
    ) -> None:
        """Publish the grant where enough friends have signed; fills in what is known of it. Raises ServiceError."""
        done["name"] = repo.name
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            naming, now = membership.operations.find(wanted.friends), membership.now()
            if naming is None or not isinstance(naming.body, RecoveryFriends):
                raise ServiceError("incomplete", "who the friends are has not come to this computer yet")
            friends, done["need"] = naming.body.friends, naming.body.threshold
            done["member"] = id_text(naming.author)
            done["member_name"] = self._called(naming.author, repo)
            gives = held_otherwise(membership, naming.author)
            is_last = naming in find_namings(membership, naming.author)
            is_used = _let_in_before(membership, naming, wanted.user)
            done["already"] = (now.permission(wanted.user) or 0) >= wanted.permission
        holding = [one for one in signed if one.friend in friends and _holds(wanted, one)]
        done["signed"] = len(holding)
        if done["already"]:
            return
        member = done["member_name"] or done["member"]
        if gives is None:
            raise ServiceError("not_permitted", f"{member} is no member any more", _INVITE)
        if not is_last:
            raise ServiceError(
                "not_permitted",
                f"{member} has named other friends since",
                "these sign anew with `ravel recovery sign`",
            )
        if gives < wanted.permission:
            raise ServiceError(
                "not_permitted",
                f"{member} may no more than {gives.name.lower()} by now",
                "these sign anew with `ravel recovery sign`",
            )
        if is_used:
            raise ServiceError(
                "not_permitted",
                "these friends let this key in before",
                "have an admin invite it, or friends sign for another new key",
            )
        if len(holding) < done["need"]:
            raise ServiceError(
                "needs_quorum",
                f"{len(holding)} of {done['need']} friends have signed",
                "give the texts of more friends in one command",
            )
        ordered = tuple(sorted(holding, key=lambda one: one.friend))
        self._write(repo, RecoveryGrant(wanted.friends, wanted.user, wanted.permission, ordered), stored)
        done["let_in"] = True

    def _write(self, repo: Repo, body: Body, stored: IngestResult) -> None:
        root = self._hub.replica.root_branch(repo)
        self._author.write_many(root, [Draft(body)], stored=stored)

    def _show(self) -> RecoveryList:
        replica, me = self._hub.replica, self._author.user
        own: list[RepoFriends] = []
        others: list[RecoveryPerson] = []
        is_let_in = False
        for repo in self._own_repos():
            called = partial(self._called, repo=repo)
            with replica.membership_lock:
                membership = replica.membership(repo.repo_id)
                members = membership.now().members()
                held = membership.now().credentials_of(me)
                is_let_in |= all(one.is_device_grant for one in held) and any(
                    isinstance(one.body, RecoveryGrant) for one in held
                )
                named = [one for user in members for one in find_namings(membership, user)]
            for one in named:
                assert isinstance(one.body, RecoveryFriends), "as it is listed"
                if one.author == me and one.body.friends:
                    view = _friends_view(repo, one.body.friends, one.body.threshold, called)
                    gone = sum(friend not in members for friend in one.body.friends)
                    if gone:  # a key that left signs no more, also where its place passed to another
                        view["advice"] = f"of these friends {gone} can sign no more; name friends anew"
                    own.append(view)
                elif me in one.body.friends:
                    others.append(
                        {
                            "repo": id_text(repo.repo_id),
                            "name": repo.name,
                            "user": id_text(one.author),
                            "user_name": called(one.author),
                            "friends": len(one.body.friends),
                            "need": one.body.threshold,
                        }
                    )
        return {"repos": own, "persons": others, "let_in": is_let_in}

    def _called(self, user: UserId, repo: Repo) -> str:
        return self._hub.replica.people.name(repo.repo_id, user)


def find_namings(membership: Membership, user: UserId) -> list[Operation]:
    """Find the statements of a member's friends that no other of its own follows: one, or several beside one another.

    Of more than _NAMINGS_BESIDE_MAX these are those that came last. Hold `membership_lock`. Costs O(the statements).
    """
    operations = membership.operations
    tips: list[Operation] = []
    for one in reversed(operations.namings.get(user, [])):
        if len(tips) == _NAMINGS_BESIDE_MAX:
            break
        if not any(operations.precedes(one, tip) for tip in tips):
            tips.append(one)
    return tips


def _let_in_before(membership: Membership, naming: Operation, key: UserId) -> bool:
    """Return True if friends named so let a key in already, which they do once (M20). Hold `membership_lock`."""
    return any(
        isinstance(one.body, RecoveryGrant) and (one.body.friends, one.body.user) == (naming.commit_id, key)
        for one in membership.operations.recovery_grants.get(naming.author, ())
    )


def _friends_view(
    repo: Repo, friends: Sequence[UserId], need: int, called: Callable[[UserId], str]
) -> RepoFriends:
    return {
        "repo": id_text(repo.repo_id),
        "name": repo.name,
        "friends": [*map(id_text, friends)],
        "friend_names": [called(one) for one in friends],
        "need": need,
        "changed": False,
        "advice": "",
    }


def _said(error: ServiceError) -> str:
    return "; ".join(filter(None, (error.message, error.advice)))


def _holds(wanted: _Wanted, one: FriendSignature) -> bool:
    try:
        verify_recovery(wanted.repo, RecoveryGrant(wanted.friends, wanted.user, wanted.permission, (one,)))
    except BadSignature:
        return False
    return True


def _parse(text: str) -> RecoveryText:
    try:
        return parse_recovery(pasted_word(text))
    except DecodeError as error:
        is_cut = error.reason == "mistyped"
        raise ServiceError(
            "bad_link",
            "a text is incomplete or mistyped" if is_cut else f"this is no text of a friend: {error}",
            "copy all of what `ravel recovery sign` printed there",
        ) from None
