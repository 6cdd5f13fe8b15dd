"""A node's API over a real server and a real connection, in this process."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import httpx
import trio
from httpx._transports import default as transports
from starlette import routing
from starlette.types import ASGIApp

from node.api.api import create_app
from node.api.callers import Callers
from node.api.event_streams import EventStreams
from node.api.services import Services, make_services
from node.contract.access import ACTIONS
from node.exports.exports import Exports
from node.home.config_sections import ApiConfig, Config
from node.home.home import Home
from node.home.tokens import TokenFile
from node.http.remote import Remote
from node.http.server import open_api_listener, serve_api
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.observe.repo_list import ListedRepos
from protocol.formats.text import id_text
from ravel.types.repos import RepoView
from tests.support.answers import CHECKED
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes

# Each application compiles the same three hundred paths.
vars(routing)["compile_path"] = cache(routing.compile_path)
# Each client reads all certificates that the system trusts, which takes 25 ms, though most speak plain HTTP.
vars(transports)["create_ssl_context"] = cache(httpx.create_ssl_context)

TOKEN: Final = "t" * 64
AUTH: Final = {"Authorization": f"Bearer {TOKEN}"}


def service_of(
    node: Node,
    folder: Path,
    listen: str = "127.0.0.1:7474",
    advertise: str = "",
    clock: Callable[[], float] | None = None,
    remote: Remote | None = None,
) -> Services:
    """A node's service, as a daemon makes it. `clock` is that of tokens."""
    return make_services(
        hub=node.hub,
        network=Network(node.hub, node.seed, lambda: 0.0),
        author=node.author,
        joiner=node.joiner,
        node_key=node.key,
        home=folder,
        addresses=OwnAddresses(listen, advertise),
        exports=Exports(
            Home(node.replica.database.folder, Config()),
            id_text(node.key),
            lambda: 1_700_000_000.0,
            STORE_KEY,
            has_quotas=False,
        ),
        tokens=TokenFile(folder, clock or (lambda: 1_700_000_000.0)),
        clock=lambda: 1_700_000_000.0,
        remote=remote,
    )


async def assert_listed_as_new(service: Services) -> None:
    """What a node keeps of its repos is what it would describe now, if it described all of them."""
    kept = await service.branches.repo_list.list()
    anew = await ListedRepos(
        service.branches.repo_list.hub, service.branches.standings, service.branches.repo_list.views
    ).list()
    assert [_without_revision(one) for one in kept["repos"]] == [
        _without_revision(one) for one in anew["repos"]
    ]


def _without_revision(view: RepoView) -> dict[str, object]:
    return {**view, "revision": 0, "standing": {**view["standing"], "held_at": None}}


def app_of(service: Services, streams: EventStreams | None = None) -> ASGIApp:
    """The API of a service. `TOKEN` is the node's own token."""
    return create_app(service, Callers(TOKEN, service.node.tokens.file), streams)


@dataclass(frozen=True, slots=True)
class Served:
    """A served node, and a client that has the node's own token."""

    node: Node
    client: httpx.AsyncClient
    streams: EventStreams
    service: Services
    remote: Remote | None = None

    def elsewhere(self, **headers: str) -> httpx.AsyncClient:
        """A browser of another machine, which trusts the node's certificate."""
        assert self.remote is not None, "it is served for other machines, too"
        context = ssl.create_default_context(cafile=self.remote.certificate.path)
        url = f"https://127.0.0.1:{self.remote.port}"
        return httpx.AsyncClient(base_url=url, headers=headers, verify=context)


@asynccontextmanager
async def served(
    folder: Path, clock: Callable[[], float] | None = None, api: ApiConfig | None = None
) -> AsyncIterator[Served]:
    """A node and its server, for at most half a minute. The client checks every answer against the table.

    With a `tls` in `api`, for other machines too.
    """
    with fail_after(30), open_nodes(folder, "alice") as (node,):
        streams = EventStreams()
        remote = None
        if api is not None:
            remote = Remote(Home(folder, Config(api=api)), time.time, lambda: ["127.0.0.1"])
        service = service_of(node, folder, clock=clock, remote=remote)
        app = app_of(service, streams)
        async with trio.open_nursery() as nursery:
            listener = open_api_listener("127.0.0.1", 0)
            port = listener.getsockname()[1]
            nursery.start_soon(streams.run)
            nursery.start_soon(service.node.background.run)
            nursery.start_soon(serve_api, app, listener)
            if remote is not None:
                over_tls = open_api_listener("127.0.0.1", 0)
                remote.port = over_tls.getsockname()[1]
                nursery.start_soon(serve_api, app, over_tls, remote)
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers=AUTH, event_hooks=CHECKED
            ) as client:
                yield Served(node, client, streams, service, remote)
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def holder(one: Served, kind: str, name: str = "phone") -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that has a token of a kind, with all actions."""
    tokens = one.service.node.tokens
    if kind == "app":
        secret = (await tokens.create(name, [*ACTIONS], [], [], 3600))["token"]
    else:
        secret = await (tokens.make_for_page() if kind == "page" else tokens.make_for_browser(name))
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(
        base_url=one.client.base_url, headers=headers, event_hooks=CHECKED
    ) as client:
        yield client


def code_of(answer: httpx.Response) -> str:
    """Return the code of a refusal; `done` where it is none."""
    return str(answer.json().get("error", {}).get("code", "done"))
