"""Describes repos as the API shows them: what this user may do there, how much there is, and how it stands with others."""

from collections.abc import Mapping, Sequence

from node.authoring.author import Author
from node.ingest.people import SHORT_ID_LENGTH
from node.ingest.vouchers import Vouched
from node.membership.comments import is_own_comments
from node.membership.devices import is_devices_repo
from node.membership.inbox import Inbox
from node.membership.joining import Joiner
from node.membership.lobbies import find_repo, is_lobby
from node.membership.member_checkpoints import find_false_signers
from node.membership.promotion import find_heir
from node.membership.requests import Requests
from node.membership.unsettled import NOTHING_UNSETTLED, called_claimant, find_unsettled
from node.observe.absent import NOTHING_ABSENT, find_absence
from node.observe.standing import Standings
from node.observe.standing_view import NO_OUTLOOK, Outlook, RepoFacts, Unheld, describe_standing
from node.sync.hub import Hub
from node.timelines.arriving import maker_name
from node.timelines.views import repo_view
from protocol.formats.links import find_kept_ask
from protocol.formats.text import id_text
from protocol.ids import RepoId, UserId
from ravel.types.repos import RepoView, StandingPart
from storage.commits.blocks import DamagedBlock
from storage.commits.damaged import count_damaged_in
from storage.commits.feeds import count_forks_of
from storage.commits.pending import count_unread_in
from storage.repos.repos import Branch, Repo


class RepoViews:
    """Describes repos for one user. `describe` is for worker threads."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        joiner: Joiner,
        standings: Standings,
        requests: Requests,
        inbox: Inbox,
    ) -> None:
        self._hub = hub
        self._author = author
        self._joiner = joiner
        self._standings = standings
        self._requests = requests
        self._inbox = inbox

    def describe(
        self,
        repos: Sequence[Repo],
        outlooks: Mapping[int, Outlook],
        revisions: Mapping[int, int],
        asked: frozenset[RepoId],
    ) -> dict[int, RepoView | None]:
        """Describe repos by number; None for one that is not shown, or was deleted meanwhile.

        `asked` are repos that this user has asked to join. Raises StorageError.
        """
        replica = self._hub.replica
        seen = {repo.num: outlooks.get(repo.num, NO_OUTLOOK) for repo in repos}
        unheld = self._standings.count_unheld(self._author.user, seen)
        branches = replica.shown.count_in(replica.database, list(seen))
        with replica.database.read() as connection:
            forks = count_forks_of(connection, self._author.user)
            unread = count_unread_in(connection)
            damaged = count_damaged_in(connection) if replica.has_damaged else {}
            false = {repo.num: self._hub.windows.vouchers.find_false(connection, repo.num) for repo in repos}
        found: dict[int, RepoView | None] = {}
        for repo in repos:
            num, current = repo.num, replica.repos.get(repo.num)
            if current is None:
                found[num] = None
            elif is_lobby(replica, current):
                found[num] = self._ask_view(current, seen[num], revisions[num])
            else:
                found[num] = self._view(
                    current,
                    branches[num],
                    seen[num],
                    unheld[num],
                    own_forks=forks.get(num, 0),
                    unread=unread.get(num, 0),
                    damaged=damaged.get(num, 0),
                    revision=revisions[num],
                    is_asked=current.repo_id in asked,
                    false=false[num],
                )
        return found

    def _view(
        self,
        repo: Repo,
        branches: list[Branch],
        outlook: Outlook,
        unheld: Unheld,
        *,
        own_forks: int,
        unread: int,
        damaged: int,
        revision: int,
        is_asked: bool,
        false: Vouched | None,
    ) -> RepoView:
        replica = self._hub.replica
        permission, was_member, is_damaged, of_devices, of_comments = None, False, False, False, False
        waiting, offers, absence = 0, 0, NOTHING_ABSENT
        signers: list[UserId] = []
        moved_to: UserId | None = None
        others: int | None = None
        unsettled = NOTHING_UNSETTLED
        try:
            permission = replica.permission(repo, self._author.user)
            was_member = replica.was_member(repo, self._author.user)
            moved_to = find_heir(replica, repo, self._author.user) if permission is None else None
            of_devices = is_devices_repo(replica, repo, self._author.user)
            of_comments = is_own_comments(replica, repo, self._author.user, self._hub.clock_ms())
            waiting, offers = self._requests.count_waiting(repo), self._inbox.count_waiting(repo)
            absence = find_absence(replica, repo, self._author.user)
            signers, is_whole = find_false_signers(replica, repo)
            if not is_whole:
                replica.shown.restate([repo.num])  # the next look goes on
            if permission is not None or moved_to is not None:
                unsettled = find_unsettled(replica, repo, self._author.user)
            if permission is not None and outlook.links:
                others = len(replica.members(repo)) - 1
        except DamagedBlock:
            is_damaged = True
        is_joining = permission is None and (repo.invitation is not None or is_asked)
        facts = RepoFacts(
            permission is not None,
            was_member,
            is_joining=is_joining,
            is_damaged=is_damaged,
            is_behind=absence.behind_since is not None,
            has_members=repo.has_members,
            refused=self._joiner.refused.get(repo.repo_id, ""),
            behind_since=absence.behind_since or None,
            requests=waiting,
            waiting=absence.waiting,
            holders=self._called(repo, absence.holders),
            is_due=absence.is_due,
            starters=self._called(repo, absence.starters),
            uncertain=replica.own_feeds.why_uncertain(repo.repo_id),
            own_forks=own_forks,
            unread=unread,
            damaged=damaged,
            vouched=self._vouched(repo, branches),
            false_voucher="" if false is None else maker_name(replica, repo.repo_id, false.states),
            false_signers=self._called(repo, signers),
            moved_to="" if moved_to is None else self._hub.replica.people.device_name(repo.repo_id, moved_to),
            claims=tuple(
                (
                    *self._called(repo, [user]),
                    *(called_claimant(replica.people, repo.repo_id, one) for one in claimants),
                )
                for user, claimants in unsettled.claims.items()
            ),
            signers_gone=self._called(repo, unsettled.signers_gone),
            next_step=None
            if (step := unsettled.next_step) is None
            else (step.command, tuple(step.names(replica.people, repo.repo_id, self._author.user))),
            members=others,
            not_kept=sum(not one.is_kept for one in branches),
            kept_days=repo.kept_days,
            of_comments=of_comments,
        )
        return repo_view(
            repo,
            branches,
            permission,
            was_member=was_member,
            standing=describe_standing(
                facts,
                outlook,
                unheld,
                self._hub.owners.called,
                sum(one.commit_count - one.void_count for one in branches),
            ),
            is_joining=is_joining,
            requests=waiting,
            offers=offers,
            revision=revision,
            is_damaged=is_damaged,
            of_devices=of_devices,
        )

    def _vouched(self, repo: Repo, branches: Sequence[Branch]) -> StandingPart | None:
        """Return whose word the newest posts rest on that are shown now. Costs O(window) where anything has changed."""
        vouched = self._hub.windows.vouchers.find(repo.num)
        for branch in branches:
            if vouched is None or branch.branch_id != vouched.states.branch:
                continue
            shown = self._hub.windows.find(branch.num)
            if shown is not None and shown.vouched is not None:
                name = maker_name(self._hub.replica, repo.repo_id, shown.vouched)
                return {"code": "vouched", "people": [name], "at": shown.vouched.at // 1000}
        return None

    def _called(self, repo: Repo, users: Sequence[UserId]) -> tuple[str, ...]:
        """Return the members' names: this user's name for them, else the start of their ids."""
        people = self._hub.replica.people
        return tuple(people.name(repo.repo_id, user) or id_text(user)[:SHORT_ID_LENGTH] for user in users)

    def _is_here(self, lobby: Repo) -> bool:
        """Return True if the repo that a lobby asks for is here, where it is shown itself."""
        link = find_kept_ask(lobby.invitation)
        return link is not None and find_repo(self._hub.replica, link.repo) is not None

    def _ask_view(self, lobby: Repo, outlook: Outlook, revision: int) -> RepoView | None:
        """Describe a repo that this user asked for while nothing of it is here. Lobbies of others have no view."""
        ask = self._requests.made_in(lobby)
        if ask is None or ask["status"] == "withdrawn" or self._is_here(lobby):
            return None
        facts = RepoFacts(False, False, True, False, False, True, ask=ask)
        return {
            "repo": ask["repo"],
            "name": ask["repo_name"],
            "permission": "joining",
            "whole": True,
            "of_devices": False,
            "branches": 0,
            "commits": 0,
            "requests": 0,
            "offers": 0,
            "revision": revision,
            "standing": describe_standing(facts, outlook, Unheld(), self._hub.owners.called),
        }
