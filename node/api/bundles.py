"""Bundles over HTTP: written while they are sent, and read as they come."""

from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response

from node.api.files import archive_response
from node.api.requests import answer_json, read_chunks, read_query
from node.api.targets import Targets
from node.care.bundle_reading import read_bundle
from node.care.bundle_writing import write_bundle
from node.contract.bundles import WRITE_BUNDLE
from node.membership.joining import Joiner
from node.sync.hub import Hub


class BundleHandlers:
    """Handlers of bundles, which are streams of bytes and not JSON."""

    def __init__(self, hub: Hub, joiner: Joiner, targets: Targets) -> None:
        self._hub = hub
        self._joiner = joiner
        self._targets = targets

    async def write(self, request: Request) -> Response:
        """Answer with a bundle of a repo."""
        query = read_query(request, WRITE_BUNDLE.query)
        return await archive_response(
            request,
            "repo.bundle",  # a file's name may be seen by who must not know the repo's
            self._write(request.path_params["repo"], query["branches"], query["since"]),
        )

    async def read(self, request: Request) -> Response:
        """Take the bundle that is the request's body."""
        return await answer_json(read_bundle(self._hub, self._joiner, read_chunks(request)))

    def _write(self, repo_text: str, names: str, since: int | None) -> AsyncGenerator[bytes]:
        replica, repo = self._hub.replica, self._targets.repo(repo_text)
        chosen = replica.branches_in(repo.num)
        if names:
            prefix = self._targets.text_of(repo)
            found = [self._targets.branch(f"{prefix}:{name}") for name in names.split(",") if name]
            chosen = list({branch.num: branch for branch in found}.values())
        since_ms = None if since is None else since * 1000
        return write_bundle(replica, repo, chosen, since_ms, self._hub.run_blocking)
