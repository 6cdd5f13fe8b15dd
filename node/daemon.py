"""The daemon: the one place where everything is put together, started, and stopped.

Order of start: lock the folder, open the store, listen, serve the API, dial kept peers, write the run file, say ready.
SIGTERM and SIGINT stop it: connections say goodbye, the store is closed, the run file removed. What was acknowledged is
durable at any moment, so SIGKILL costs nothing but the goodbye.
"""

import os
import signal
import sys
import time

import structlog
import trio

from node import logs
from node.api import create_app
from node.blocking import threads, tune_interpreter
from node.errors import ServiceError
from node.home import Home, lock_home, remove_run_file, write_run_file
from node.http_server import serve_api
from node.hub import Hub
from node.joining import Joiner
from node.network import Network, listening_address, open_listener
from node.outbound import Author
from node.replica import Replica
from node.service import NodeService
from node.signature_pool import SignaturePool
from protocol.signing import public_key
from protocol.text import id_text
from storage.database import NewerSchema, StorageError
from storage.repos import load_peers

log = structlog.get_logger()


def run(home: Home) -> None:
    """Run a node in the foreground until it is told to stop. Raises ServiceError when it cannot start."""
    logs.configure(home.config.log.level)
    tune_interpreter()
    with lock_home(home.path):
        try:
            replica = Replica(home.path)
        except NewerSchema as error:
            raise ServiceError(
                "newer_schema", str(error), "install the Ravel that last ran here, or a newer one"
            ) from None
        except StorageError as error:
            raise ServiceError(
                "storage_failed", str(error), "check the disk and the folder's permissions"
            ) from None
        pool = SignaturePool()
        try:
            trio.run(_serve, home, replica, pool)
        finally:
            pool.close()
            replica.close()


async def _serve(home: Home, replica: Replica, pool: SignaturePool) -> None:
    node_seed = home.node_seed
    hub = Hub(replica, threads(), _clock_ms, pool.check)
    author = Author(replica, home.user_seed, _clock_ms)
    joiner = Joiner(hub, author)
    network = Network(hub, node_seed, time.time)
    node_key = public_key(node_seed)
    try:
        listeners = await open_listener(home.config.network.listen)
    except OSError as error:
        raise ServiceError(
            "bad_config",
            f"cannot listen on {home.config.network.listen}: {error}",
            f"choose another [network] listen in {home.config_path}",
        ) from None
    listen = listening_address(listeners)
    service = NodeService(
        hub=hub,
        network=network,
        author=author,
        joiner=joiner,
        node_key=node_key,
        home=home.path,
        listen=listen,
        export_folder=home.export_folder,
        clock=time.time,
    )
    host, _, port = home.config.api.listen.rpartition(":")
    async with trio.open_nursery() as nursery:
        app = create_app(service, home.api_token)
        api_port = await nursery.start(serve_api, app, host.strip("[]"), int(port))
        await nursery.start(network.run, listeners)
        nursery.start_soon(joiner.run)
        for peer in home.config.network.peers:
            network.keep(peer.peer, peer.address)
        with replica.database.read() as connection:
            kept = load_peers(connection)
        for row in kept:
            network.keep(row.peer, row.address)
        api = f"{host}:{api_port}"
        write_run_file(home.path, pid=os.getpid(), api=api, listen=listen, peer=id_text(node_key))
        log.info("ready", node=id_text(node_key), listen=listen, api=api)
        print(f"ready: peer {id_text(node_key)} listens on {listen}, API on http://{api}", flush=True)
        try:
            await _wait_for_signal()
        finally:
            remove_run_file(home.path)
        nursery.cancel_scope.cancel()
    print("stopped", file=sys.stderr, flush=True)


async def _wait_for_signal() -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            log.info("stopping", signal=signal.Signals(number).name)
            return


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000
