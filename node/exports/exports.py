"""Runs exports of the store for Spark: on request or on schedule, one at a time, each in a subprocess.

What waits for an export waits in trio: when the daemon stops, or EXPORT_SECONDS_MAX have passed, the process is ended,
which leaves the export that was there. A scheduled export that fails is logged, shown, and tried again after a pause
that doubles.
"""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import msgspec
import structlog
import trio

from node.home.config_sections import ExportConfig
from node.home.home import Home, load_pseudonym_key
from node.runtime.backoff import doubled_pause
from node.runtime.errors import ServiceError
from node.runtime.install_hint import install_command
from node.runtime.metrics import Family, Sample
from protocol.crypto.keys import StoreKey
from protocol.limits.formats import MIB
from protocol.limits.users import EXPORT_SECONDS_MAX
from ravel.types.node import ExportResult, ExportStatus
from storage.engine.database import StorageError

log = structlog.get_logger()

FIRST_SECONDS_MAX: Final = 60.0
"""Within so many seconds after the start the first export begins, by chance: nodes started together do not meet."""
RETRY_SECONDS: Final = 60.0
"""The pause after a failure; twice as long after each further one, up to the interval."""
_SAID_SIZE_MAX: Final = 1000
_NEXT_STEP: Final = (
    "see [export] in `ravel config show`, whether its destination can be written, and `ravel fsck`"
)


@dataclass(slots=True)
class ExportState:
    """Counts of exports since the daemon started. Times are unix seconds; 0: never."""

    finished_at: float = 0
    seconds: float = 0.0  # that the last one took
    commits: int = 0  # that it holds
    error: str = ""  # of the last one; empty where it went well
    failures: int = 0  # in all
    next_at: float = 0  # when the next scheduled one begins


class _Answer(msgspec.Struct):
    """JSON form of `export_worker.ExportAnswer`."""

    summary: ExportResult | None
    error: str


class Exports:
    """Exports to one destination, in the name of one node."""

    def __init__(
        self, home: Home, node: str, clock: Callable[[], float], store_key: StoreKey, *, has_quotas: bool
    ) -> None:
        """Prepare exports. `store_key` opens what is sealed in the store."""
        self._home = home
        self._store_key = store_key
        self._node = node
        self._clock = clock
        self._has_quotas = has_quotas
        self._lock = trio.Lock()
        self.state = ExportState()

    @property
    def _config(self) -> ExportConfig:
        return self._home.config.export

    @property
    def destination(self) -> str:
        """Return the destination of exports: a path or a URL."""
        return self._home.export_destination

    async def write(self) -> ExportResult:
        """Write what is new since the last export as Parquet. Raises StorageError, ServiceError."""
        async with self._lock:
            began = time.monotonic()
            try:
                summary = await self._run(self._request())
            except (StorageError, ServiceError) as error:
                self.state.failures += 1
                self.state.error = str(error)
                raise
            self.state.finished_at, self.state.seconds = self._clock(), time.monotonic() - began
            self.state.commits, self.state.error = summary["commits"], ""
            if summary["unjudged_repos"]:
                log.warning(
                    "an export lacks members of repos whose root branches are damaged; `ravel fsck` names them",
                    repos=summary["unjudged_repos"],
                )
            return summary

    async def run(self) -> None:
        """Export on schedule until cancelled. Does nothing without a schedule."""
        interval = self._config.interval * 60.0
        if not interval:
            return
        await self._sleep(random.uniform(0, min(FIRST_SECONDS_MAX, interval / 10)))  # noqa: S311  # no secret
        in_a_row = 0
        while True:
            began = trio.current_time()
            try:
                summary = await self.write()
            except (StorageError, ServiceError) as error:
                pause = doubled_pause(in_a_row, RETRY_SECONDS, interval)
                in_a_row += 1
                log.error("export failed, to be tried again", error=str(error), seconds=pause)
            else:
                in_a_row = 0
                pause = max(0.0, interval - (trio.current_time() - began))
                log.info("exported", commits=summary["commits"], added=summary["added"])
            await self._sleep(pause)

    def status(self) -> ExportStatus:
        """Return the state of exports, for people and doctors."""
        state = self.state
        return {
            "destination": self.destination,
            "interval": self._config.interval,
            "finished_at": int(state.finished_at) or None,
            "next_at": int(state.next_at) or None,
            "commits": state.commits,
            "failures": state.failures,
            "last_error": state.error,
        }

    def families(self) -> list[Family]:
        """Return the metrics of exports."""
        state = self.state
        return [
            Family(
                "ravel_export_finished_seconds",
                "gauge",
                "Unix time of the last good export since the start; 0: none.",
                [Sample(state.finished_at)],
            ),
            Family(
                "ravel_export_seconds",
                "gauge",
                "Time that the last good export took.",
                [Sample(state.seconds)],
            ),
            Family("ravel_export_commits", "gauge", "Commits in the export.", [Sample(state.commits)]),
            Family(
                "ravel_export_failures_total", "counter", "Exports that failed.", [Sample(state.failures)]
            ),
            Family(
                "ravel_export_faulty", "gauge", "1 while the last export failed.", [Sample(bool(state.error))]
            ),
        ]

    async def _sleep(self, seconds: float) -> None:
        self.state.next_at = self._clock() + seconds
        await trio.sleep(seconds)

    def _request(self) -> bytes:
        config, relay = self._config, self._home.config.relay
        quotas = {
            "total": relay.size_max * MIB,
            "topic": relay.topic_size_max * MIB,
            "peer": relay.peer_size_max * MIB,
        }
        key = load_pseudonym_key(self._home.path).hex() if config.pseudonyms else ""
        # Read by `export_worker.ExportRequest`, which is not imported here: it brings Arrow with it.
        return msgspec.json.encode(
            {
                "home": str(self._home.path),
                "destination": self.destination,
                "options": config.options,
                "node": self._node,
                "created_at": int(self._clock()),
                "keep_seconds": config.keep * 3600,
                "parts_max": config.parts,
                "has_bodies": config.bodies,
                "has_blocks": config.blocks,
                "delta": config.format == "delta",
                "pseudonym_key": key,
                "storage_url": self._home.storage_url,
                "store_key": self._store_key.hex(),
                "quotas": quotas if self._has_quotas else None,
            }
        )

    async def _run(self, request: bytes) -> ExportResult:
        if find_spec("pyarrow") is None:
            advice = f"install it: {install_command('export')}"
            raise ServiceError("missing_extra", "PyArrow is not installed, which writes Parquet", advice)
        try:
            with trio.fail_after(EXPORT_SECONDS_MAX):
                finished = await trio.run_process(
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        "node.exports.export_worker",
                    ],  # -P: never a module of the current folder
                    stdin=request,
                    capture_stdout=True,
                    capture_stderr=True,
                    check=False,
                    deliver_cancel=_end,
                    start_new_session=True,  # a Ctrl-C meant for the daemon is not for it
                )
        except trio.TooSlowError:
            raise StorageError(f"an export was ended after {EXPORT_SECONDS_MAX} seconds") from None
        except OSError as error:
            raise StorageError(f"an export cannot be begun: {error}") from error
        try:
            answer = msgspec.json.decode(finished.stdout, type=_Answer)
        except msgspec.DecodeError:
            # What Python says of a defect names files and lines, and no value of ours; drivers may say more than that.
            said = finished.stderr[-_SAID_SIZE_MAX:].decode(errors="replace").strip().splitlines()
            kind = said[-1].partition(":")[0] if said else "it said nothing"
            raise StorageError(f"the export's process ended with {finished.returncode}: {kind}") from None
        if answer.summary is None:
            raise ServiceError("storage_failed", answer.error, _NEXT_STEP)
        return answer.summary


async def _end(process: trio.Process) -> None:
    """Stop an export at once: it is whole with its manifest, or absent, and the next one removes its scratch folder."""
    process.kill()
