"""The daemon: builds, starts and stops all components.

Order of start: lock the folder, open the store, listen, write the run file, serve the API, dial kept peers, say ready (to
the service manager too).
SIGTERM, SIGINT and SIGHUP stop it: connections say goodbye, the store is closed, the run file removed. What was acknowledged
is durable at any moment, so SIGKILL costs nothing but the goodbye.
"""

import errno
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from node.api.api import create_app
from node.api.callers import Callers
from node.api.event_streams import EventStreams
from node.api.repeats import new_run
from node.api.services import Services, make_services
from node.authoring.author import Author
from node.care.freeing import SpaceFreeing
from node.circuits.quotas import CircuitQuotas
from node.circuits.switch import CircuitSwitch
from node.content.file_fetching import FileFetcher
from node.content.search_indexer import SearchIndexer
from node.content.search_texts import TextIndexer
from node.exports.exports import Exports
from node.home.config_sections import ANYONE, RelayConfig
from node.home.config_values import NOTHING, PeerConfig, list_advertised
from node.home.folder_mark import mark_store, note_copy
from node.home.home import Home, lock_home, room_advice, run_file
from node.home.identity import read_keys
from node.home.key_file import Keys
from node.home.listen_addresses import is_unspecified
from node.home.starting import DAEMON_LOG_NAME
from node.home.tokens import TokenFile
from node.http.remote import Remote
from node.http.server import open_api_listener, serve_api
from node.ingest.acceptance import retry_kept
from node.ingest.native_reading import Reader, make_reader
from node.ingest.replica import Replica
from node.membership.joining import Joiner
from node.network.interfaces import list_addresses
from node.network.lan import LanDiscovery, announced_address, watch_lan
from node.network.line import listening_address, open_listener
from node.network.network import Network
from node.network.own_addresses import OwnAddresses, Router, RouterState
from node.network.port_mapping import PortMapper, ask_router
from node.relay.refusals import CIRCUIT
from node.relay.relay import RelayService
from node.runtime import logs
from node.runtime.blocking import threads, tune_interpreter
from node.runtime.clock import now_ms, now_seconds
from node.runtime.errors import EXIT_RESTART, UNKNOWN_SCHEMA_ADVICE, ServiceError, storage_failed
from node.runtime.installation import check_installation
from node.runtime.process import READY, STOPPING, allow_open_files, find_holder, notify
from node.sync.addresses import AddressSource
from node.sync.block_repair import BlockRepairer
from node.sync.body_fetching import BodyFetcher
from node.sync.feed_recovery import FeedRecovery
from node.sync.file_deposits import FileDepositor
from node.sync.hub import Hub
from node.sync.partner_files import PartnerFiles
from protocol.crypto.signing import public_key
from protocol.formats.text import id_text
from protocol.formats.web_address import is_web_address
from protocol.ids import PeerId
from protocol.limits.formats import KIB, MIB
from protocol.limits.peers import RELAY_TOPIC_COUNT_MAX
from ravel.home import command_for, owner_advice
from storage.commits.blocks import DamagedBlock
from storage.engine.copies import drop_open_copies
from storage.engine.database import NewerSchema, StorageError
from storage.peers.peers import load_links, load_peers, load_reached
from storage.relay.quotas import RelayQuotas

if TYPE_CHECKING:
    from node.network.websocket import WebListener

log = structlog.get_logger()

_PORTS_TRIED_MAX: Final = 100
"""Ports that are tried for one that is free, in a millisecond each."""
_CHOSEN_BY_UP: Final = ("network.listen", "api.listen")
"""Listeners of which `ravel up` takes another address."""
_STREAMS_END_SECONDS = 1.0
"""Time that event streams have to say that they end."""
_Ended = tuple[int, tuple[Home, Keys] | None]
"""Signal that ended a run. After another user's key was taken up, also what the next run starts with."""


def run(home: Home, open_keys: Callable[[], Keys]) -> None:
    """Run a node in the foreground until a signal stops it. Raises ServiceError when it cannot start.

    The keys are asked for when the folder is held: nobody types a passphrase to learn that a daemon runs already.
    """
    logs.configure(home.config.log.level, home.path / DAEMON_LOG_NAME)
    tune_interpreter()
    allow_open_files()
    check_installation()
    with lock_home(home.path):
        ended_by, again = _run_with(home, open_keys())
        while again is not None:
            ended_by, again = _run_with(*again)
    if ended_by == signal.SIGHUP:
        sys.exit(EXIT_RESTART)


def _run_with(home: Home, keys: Keys) -> _Ended:
    """Run a node with these keys until something ends it."""
    try:
        note_copy(home.path)
        replica = Replica(home.path, keys.store_key, home.storage_url)
        with suppress(OSError):  # on a full disk it is noted at a later start
            mark_store(home.path)
        if read_keys(home.path).protection != "none":
            drop_open_copies(home.path)
    except NewerSchema as error:
        raise ServiceError("newer_schema", str(error), UNKNOWN_SCHEMA_ADVICE) from None
    except DamagedBlock as error:
        raise ServiceError("damaged", str(error), "ravel fsck --repair") from None
    except StorageError as error:
        raise storage_failed(error, _advice(home)) from None
    except OSError as error:
        raise ServiceError("storage_failed", str(error), _advice(home)) from None
    reader = make_reader(home.config.node.workers)
    try:
        return trio.run(_serve, home, keys, replica, reader)
    finally:
        replica.close()


def _advice(home: Home) -> str:
    if home.storage_url:
        return "look at [storage] url, and whether that server is up: `ravel doctor` tries it"
    return (
        room_advice(home.path)
        or owner_advice(home.path)
        or (
            "check the disk and the folder's permissions; if both are good, `ravel fsck` tells what is damaged "
            "(docs/communities/repair.md)"
        )
    )


async def _serve(home: Home, keys: Keys, replica: Replica, reader: Reader) -> _Ended:
    """Open all that can fail, then run: what is wrong is said before anything has begun."""
    tokens = TokenFile(home.path, now_seconds)
    callers = Callers(home.api_token, tokens)
    hub = Hub(replica, threads(), now_ms, reader)
    hub.bound.size_max = home.config.storage.size_max * MIB
    if home.config.relay.enabled:
        hub.relay = RelayService(
            replica.database,
            _relay_quotas(home.config.relay),
            hub.run_blocking,
            now_ms,
            reader.check,
            giving_way=hub.giving_way,
        )
    author = Author(replica, keys.user_seed, now_ms)
    joiner = Joiner(hub, author)
    node_key = public_key(keys.node_seed)
    if (accepted := sum(map(len, retry_kept(replica, now_ms()).accepted.values()))) > 0:
        log.info("commits accepted that were kept until they could be", count=accepted)
    host, _, port = home.config.api.listen.rpartition(":")
    with _listening(home, "api.listen", home.config.api.listen):
        api_listener = open_api_listener(host.strip("[]"), int(port))
    remote, remote_listener = _open_remote(home)
    with _listening(home, "network.listen", home.config.network.listen):
        listeners = await open_listener(home.config.network.listen)
    listen = listening_address(listeners)
    web = await _web_listener(home)
    api = f"{host}:{api_listener.getsockname()[1]}"
    addresses = OwnAddresses(listen, home.config.network.advertise, lambda: hub.run_blocking(list_addresses))
    await addresses.start()
    network = _make_network(home, keys, hub, addresses)
    kept = _load_peers(network, replica, home.config.network.peers)
    exports = Exports(
        home, id_text(node_key), now_seconds, keys.store_key, has_quotas=home.config.relay.enabled
    )
    services = make_services(
        hub=hub,
        network=network,
        author=author,
        joiner=joiner,
        node_key=node_key,
        home=home.path,
        addresses=addresses,
        web_address=web.address if web is not None else "",
        exports=exports,
        tokens=tokens,
        clock=now_seconds,
        has_search=home.config.search.enabled,
        remote=remote,
        settings=home.settings,
    )
    run = new_run()
    with (
        # Before anybody can see that it runs, and tell it to stop.
        trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals,
        run_file(home.path, api=api, listen=listen, peer=id_text(node_key), run=run),
    ):
        async with trio.open_nursery() as nursery:
            streams = EventStreams()
            nursery.start_soon(streams.run)
            app = create_app(services, callers, streams, run)
            nursery.start_soon(serve_api, app, api_listener, None, hub.user_requests)
            if remote is not None and remote_listener is not None:
                nursery.start_soon(serve_api, app, remote_listener, remote, hub.user_requests)
                nursery.start_soon(remote.run, hub.run_blocking)
                log.info("other machines may come", tls=home.config.api.tls, port=remote.port)
            await nursery.start(network.run, listeners, web)
            if home.config.network.discover_lan:
                nursery.start_soon(LanDiscovery(network, announced_address(listen), watch_lan).run)
            nursery.start_soon(addresses.run)
            if home.config.network.map_port and addresses.is_open:
                addresses.note_router(Router(RouterState.ASKING))
                nursery.start_soon(PortMapper(addresses, ask_router).run)
            nursery.start_soon(joiner.run)
            nursery.start_soon(services.branches.standings.run, author.user)
            nursery.start_soon(SpaceFreeing(hub, author.user).run)
            for run_task in _background_tasks(services, has_search=home.config.search.enabled):
                nursery.start_soon(run_task)
            for peer, address, source, others in kept:
                network.keep(peer, address, source, others)
            log.info("ready", node=id_text(node_key), listen=listen, api=api)
            notify(READY, f"STATUS=peer {id_text(node_key)} listens on {listen}")
            also = f" and {web.address}" if web is not None else ""
            print(
                f"ready: peer {id_text(node_key)} listens on {listen}{also}, API on http://{api}", flush=True
            )
            ended_by = await _wait_for(signals)
            taken = services.node.own_keys.recovered if ended_by == signal.SIGHUP else None
            if taken is None:
                notify(STOPPING)
            with trio.move_on_after(_STREAMS_END_SECONDS):
                await streams.close()
            await services.node.tokens.save_uses()
            await services.branches.standings.save(is_last=True)
            nursery.cancel_scope.cancel()
    if taken is None:
        print("stopped", file=sys.stderr, flush=True)
        return ended_by, None
    # At the same port, also where any was asked for: the page goes on there.
    config = replace(home.config, api=replace(home.config.api, listen=api))
    return ended_by, (replace(home, config=config), taken)


def _make_network(home: Home, keys: Keys, hub: Hub, addresses: OwnAddresses) -> Network:
    config, is_relay = home.config.network, hub.relay is not None
    # Introductions hold IP addresses alone, which a WebSocket address is not.
    dialable = (one for one in list_advertised(config.advertise) if not is_web_address(one))
    network = Network(
        hub,
        keys.node_seed,
        now_seconds,
        own_address="" if config.advertise == NOTHING else next(dialable, addresses.listen),
        introduces=config.introductions and not is_relay,
        addresses=addresses,
        takes_circuits=config.circuits and not is_relay,
        punches=config.punching and not is_relay,
        switch=_circuit_switch(home.config.relay, hub.relay, public_key(keys.node_seed)),
    )
    if hub.relay is not None:
        hub.relay.is_dialed = network.is_kept
        hub.relay.is_partner = network.relays.__contains__
    return network


def _background_tasks(services: Services, *, has_search: bool) -> list[Callable[[], Awaitable[object]]]:
    """List what runs from start to stop, beside the API and the network."""
    hub = services.hub
    tasks: list[Callable[[], Awaitable[object]]] = [
        services.node.exports.run,
        services.node.tokens.run,
        services.node.background.run,
        services.branches.stated_comments.run,
        BlockRepairer(hub).run,
        FeedRecovery(hub).run,
        BodyFetcher(hub).run,
        FileDepositor(hub).run,
        FileFetcher(hub, services.branches.files).run,
        PartnerFiles(hub).run,
        SearchIndexer(hub, is_enabled=has_search).run,
    ]
    if has_search:
        tasks.append(TextIndexer(hub, services.branches.texts).run)
    return tasks


async def _web_listener(home: Home) -> "WebListener | None":
    config = home.config.network
    if not config.websocket_listen:
        return None
    from node.network.websocket import WebListener, load_certificate  # few nodes need what it imports

    tls = None
    if config.websocket_certificate or config.websocket_key:
        certificate, key = (home.path / name for name in (config.websocket_certificate, config.websocket_key))
        try:
            tls = load_certificate(certificate, key)
        except OSError as error:
            raise ServiceError(
                "bad_config",
                f"[network] websocket_certificate cannot be used: {error}",
                "it is a PEM file with the chain, websocket_key one with its key, and both can be read by this user",
            ) from None
    with _listening(home, "network.websocket_listen", config.websocket_listen):
        return WebListener(await open_listener(config.websocket_listen), tls)


def _load_peers(
    network: Network, replica: Replica, configured: tuple[PeerConfig, ...]
) -> list[tuple[PeerId, str, AddressSource, Sequence[str]]]:
    """Tell the network what the store knows of peers; return the peers to stay connected to: key, address, its
    source, other addresses."""
    with replica.database.read() as connection:
        stored, network.linked = load_peers(connection), load_links(connection)
        network.load(load_reached(connection))
    network.banned.update(row.peer for row in stored if row.is_banned)
    network.relays.update(row.peer for row in stored if row.is_relay)
    network.relays.update(one.peer for one in configured if one.relay)
    return [
        *((one.peer, one.address, AddressSource.CONFIGURED, ()) for one in configured),
        *(
            (row.peer, row.address, AddressSource(row.source), row.others)
            for row in stored
            if not row.is_banned
        ),
    ]


def _open_remote(home: Home) -> tuple[Remote | None, socket.socket | None]:
    """Open the listener for other machines and its socket, if the configuration has one."""
    address = home.config.api.tls
    if not address:
        return None, None
    remote = Remote(home, now_seconds, lambda: _hosts_at(address))
    host, _, port = address.rpartition(":")
    with _listening(home, "api.tls", address):
        listener = open_api_listener(host.strip("[]"), int(port))
    remote.port = listener.getsockname()[1]
    return remote, listener


def _hosts_at(address: str) -> list[str]:
    """Return the hosts by which other machines reach a listener."""
    if not is_unspecified(address):
        return [address.rpartition(":")[0].strip("[]")]
    return [str(one.host) for one in list_addresses()] or ["127.0.0.1"]


@contextmanager
def _listening(home: Home, key: str, address: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        taken = [address]
        if (
            error.errno == errno.EADDRINUSE
            and key == "api.listen"
            and not _is_free(home.config.network.listen)
        ):
            taken.append(home.config.network.listen)  # both are said at once: it is opened after this one
        holder = find_holder(int(address.rpartition(":")[2])) if error.errno == errno.EADDRINUSE else None
        held_by = f"; process {holder[0]} ({holder[1]}) listens there" if holder else ""
        raise ServiceError(
            "bad_config",
            f"cannot listen on {' and '.join(taken)}: {error}{held_by}",
            _port_advice(home, key, taken),
        ) from None


def _port_advice(home: Home, key: str, taken: Sequence[str]) -> str:
    """Name free ports in one command that a shell takes as it is."""
    held = {one.rpartition(":")[2] for one in (home.config.network.listen, home.config.api.listen)}
    chosen: dict[str, str] = {}
    for address in taken:
        host, _, port = address.rpartition(":")
        further = (f"{host}:{int(port) + step}" for step in range(1, _PORTS_TRIED_MAX + 1))
        free = next((one for one in further if one.rpartition(":")[2] not in held and _is_free(one)), "")
        chosen[address] = free or f"{host}:PORT"
        held.add(free.rpartition(":")[2])
    if key not in _CHOSEN_BY_UP:
        return (
            f"choose another port: {command_for(home.path)} config set {key} {shlex.quote(chosen[taken[0]])}"
        )
    listeners = (("--listen", home.config.network.listen), ("--api", home.config.api.listen))
    words = [f"{option} {shlex.quote(chosen[held_by])}" for option, held_by in listeners if held_by in chosen]
    return f"choose another port: {command_for(home.path)} up {' '.join(words)}"


def _is_free(address: str) -> bool:
    """Return True if a listener could be opened there now."""
    host, _, port = address.rpartition(":")
    try:
        open_api_listener(host.strip("[]"), int(port)).close()
    except (OSError, OverflowError):
        return False
    return True


def _relay_quotas(config: RelayConfig) -> RelayQuotas:
    return RelayQuotas(
        total=config.size_max * MIB,
        topic=config.topic_size_max * MIB,
        peer=config.peer_size_max * MIB,
        subnet=config.subnet_size_max * MIB,
        topic_count=RELAY_TOPIC_COUNT_MAX,
        peer_topic_count=config.peer_topics_max,
        subnet_topic_count=config.subnet_topics_max,
        takes_strangers=config.accept == ANYONE,
    )


def _circuit_switch(
    config: RelayConfig, relay: RelayService | None, node_key: PeerId
) -> CircuitSwitch | None:
    if relay is None or not config.circuits:
        return None
    quotas = CircuitQuotas(
        total=config.circuits_max,
        peer=config.peer_circuits_max,
        rate=config.circuit_rate_max * KIB,
        day=config.circuit_day_max * MIB,
        takes_strangers=config.accept == ANYONE,
    )
    refused = partial(relay.refusals.count, CIRCUIT)
    return CircuitSwitch(node_key, quotas, relay.visitor, refused=refused)


async def _wait_for(signals: AsyncIterator[int]) -> int:
    number = await anext(signals)
    log.info("stopping", signal=signal.Signals(number).name)
    return number
