"""Handler of searches, limited to branches that the caller may read."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from node.api.callers import Caller, caller_of
from node.api.requests import json_response, read_query
from node.api.services import Services
from node.content.search import Question, parse_cursor
from node.content.search_words import Term, Words, parse_query
from node.contract.search import SEARCH
from node.membership.members import find_user
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import UserId
from protocol.limits.users import SEARCH_NAMES_MAX, SEARCH_SECONDS
from ravel.types.search import NameHit, SearchResult
from storage.commits.blocks import DamagedBlock
from storage.repos.repos import Branch
from verifier.posts import devices_of


class SearchHandler:
    """Finds branches, authors and names of a search request, and asks `Search` for hits."""

    def __init__(self, services: Services) -> None:
        self._search = services.branches.search
        self._names = services.branches.names
        self._targets = services.targets
        self._replica = services.hub.replica
        self._run_blocking = services.hub.run_blocking

    async def search(self, request: Request) -> Response:
        """Search what the caller may read."""
        caller, given = caller_of(request), read_query(request, SEARCH.query)
        return json_response(await self._answer(caller, **given))

    async def _answer(
        self,
        caller: Caller,
        *,
        text: str,
        repo: str,
        branch: str,
        author: str,
        since: int | None,
        until: int | None,
        limit: int,
        after: str,
    ) -> SearchResult:
        terms = parse_query(text)
        branches = await self._run_blocking(self._targets.branches, caller, repo, branch)
        authors = None
        if author:
            authors = await self._run_blocking(self._find_authors, author, branches)
        question = Question(terms, branches, limit, authors)
        if since is not None:
            question = replace(question, since=since * 1000)
        if until is not None:
            question = replace(question, until=until * 1000 + 999)
        if after:
            question = replace(question, before=parse_cursor(after))
        found = await self._search.find(question)
        names: list[NameHit] = []
        if not (author or after or since is not None or until is not None):
            names = await self._run_blocking(self._find_names, terms, branches)
        view = await self._search.view(branches)  # that others have work must not show
        return {"hits": found.hits, "names": names, "next": found.cursor, "index": view}

    # --- in threads ---

    def _find_authors(self, text: str, branches: Sequence[Branch]) -> Mapping[int, frozenset[UserId]]:
        """Return the users of the named person by repo number.

        Raises ServiceError `not_found` where none does, `ambiguous` where one calls several so, `busy` where it takes long.
        """
        ends = time.thread_time() + SEARCH_SECONDS
        replica = self._replica
        found: dict[int, frozenset[UserId]] = {}
        missing = ServiceError("not_found", f"nobody is called {text!r}, or has an id that begins so")
        for repo_num in sorted({branch.repo_num for branch in branches}):
            repo = replica.repos.get(repo_num)
            if repo is None:
                continue
            if time.thread_time() > ends:  # without some repos' users, hits would be missing unseen
                raise ServiceError(
                    "busy",
                    "the author is looked for in too many repos at once",
                    "name a repo or a branch, too",
                )
            try:
                user = find_user(text, replica, repo, everyone=True)
            except ServiceError as error:
                if error.code != "not_found":
                    raise
                missing = error
            except DamagedBlock:  # its members cannot be told now
                continue
            else:
                found[repo_num] = frozenset(devices_of(replica.persons(repo.repo_id), [user])[user])
        if not found:
            raise missing
        return found

    def _find_names(self, terms: Sequence[Term], branches: Sequence[Branch]) -> list[NameHit]:
        """Branches and tags whose names have all terms, as far as they are found in time."""
        ends = time.thread_time() + SEARCH_SECONDS
        found: list[NameHit] = []
        for hit in self._names_of(branches):
            if time.thread_time() > ends:
                break
            if Words(hit["name"]).has(terms):
                found.append(hit)
                if len(found) == SEARCH_NAMES_MAX:
                    break
        return found

    def _names_of(self, branches: Sequence[Branch]) -> Iterator[NameHit]:
        """Yield all names: branches, then tags of their commits."""
        repos = self._replica.repos  # once: a repo may be deleted while these are given
        here = [branch for branch in branches if branch.repo_num in repos]
        by_id = {(branch.repo_num, branch.branch_id): branch for branch in here}
        for branch in here:
            yield {
                "kind": "branch",
                "name": branch.name,
                "repo": id_text(branch.facts.repo_id),
                "repo_name": repos[branch.repo_num].name,
                "branch": id_text(branch.branch_id),
            }
        for repo_num in sorted({branch.repo_num for branch in here if branch.facts.has_members}):
            repo = repos[repo_num]
            try:
                tags = self._names.tags(repo)
            except DamagedBlock:  # they are stated in commits that are asked of peers
                continue
            for name, tag in sorted(tags.items()):
                if tag.commit is not None and (repo_num, tag.branch) in by_id:
                    yield {
                        "kind": "tag",
                        "name": name,
                        "repo": id_text(repo.repo_id),
                        "repo_name": repo.name,
                        "branch": id_text(tag.branch),
                        "commit": id_text(tag.commit),
                    }
