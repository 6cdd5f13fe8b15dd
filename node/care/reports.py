"""The analysis report for a page: an export of what is new, and `ravel analyze` on this machine, beside the daemon."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypedDict

import msgspec
import structlog

from node.care.background import Background, run_command
from node.exports.exports import Exports
from node.runtime.blocking import RunBlocking
from node.runtime.errors import EXIT_OK, ServiceError
from node.runtime.install_hint import install_command
from protocol.limits.users import REPORT_SECONDS_MAX, REPORT_SIZE_MAX
from ravel.types.care import ReportStatus
from storage.engine.database import StorageError

log = structlog.get_logger()

FOLDER_NAME: Final = "analysis"
"""In the node's folder. It names repos and branches in the clear, as the node's own files are for its owner alone."""


_FILE_LINK: Final = b'<a class="file" href='
_NO_LINK: Final = b'<a class="file" data-path='


class _Made(TypedDict):
    """Answer of `ravel analyze`."""

    commits: int


class Reports:
    """Makes the report of one node, one at a time. `clock` gives unix seconds."""

    def __init__(
        self,
        home: Path,
        exports: Exports,
        background: Background,
        run_blocking: RunBlocking,
        clock: Callable[[], float],
    ) -> None:
        self._folder = home / FOLDER_NAME
        self._home = home
        self._exports = exports
        self._background = background
        self._run_blocking = run_blocking
        self._clock = clock
        self._step: Literal["", "export", "analyze"] = ""
        self._began_at: int | None = None
        self._error = ""

    async def start(self) -> ReportStatus:
        """Begin one. Raises ServiceError `already_running`, `missing_extra`."""
        if self._step:
            raise ServiceError("already_running", "a report is being made", "wait until it is done")
        if find_spec("duckdb") is None:
            raise ServiceError(
                "missing_extra",
                "DuckDB is not installed",
                f"install it: {install_command('analytics-local')}",
            )
        self._background.start(self._make)
        self._step, self._error, self._began_at = "export", "", int(self._clock())
        return await self.show()

    async def show(self) -> ReportStatus:
        """Return the state of the analysis, and the report that is there."""
        path = self._folder / "report.html"
        try:
            finished_at = int((await self._run_blocking(path.stat)).st_mtime)
        except OSError:
            finished_at = None
        return {
            "running": bool(self._step),
            "step": self._step,
            "began_at": self._began_at,
            "finished_at": finished_at,
            "path": str(path),
            "error": self._error,
        }

    async def read(self) -> bytes:
        """Return the report that is there, a page of HTML, for a frame. Raises ServiceError `not_found`, `too_large`."""

        def read() -> bytes:
            with (self._folder / "report.html").open("rb") as file:
                return file.read(REPORT_SIZE_MAX + 1)

        try:
            content = await self._run_blocking(read)
        except OSError:
            raise ServiceError("not_found", "there is no report yet", "make one") from None
        if len(content) > REPORT_SIZE_MAX:
            raise ServiceError(
                "too_large", f"the report has more than {REPORT_SIZE_MAX} bytes", f"open {self._folder}"
            )
        # The files that it links to lie beside it in the folder, and not where the frame has it from.
        return content.replace(_FILE_LINK, _NO_LINK)

    async def _make(self) -> None:
        try:
            await self._exports.write()
            self._step = "analyze"
            out = ("--engine", "local", "--out", str(self._folder))
            ran = await run_command(self._home, "analyze", *out, seconds_max=REPORT_SECONDS_MAX)
            made = msgspec.convert(ran.answer, _Made)
        except msgspec.ValidationError as error:
            self._error = f"`ravel analyze` has answered in another form: {error}"
            log.error("report failed", error=str(error))
        except (ServiceError, StorageError) as error:
            advice = error.advice if isinstance(error, ServiceError) else ""
            self._error = f"{error} ({advice})" if advice else str(error)
            log.error("report failed", error=str(error))
        else:
            if ran.exit_code != EXIT_OK:
                self._error = (
                    "The order that was computed anew is not the one that the node has: see the report."
                )
            log.info("report made", commits=made["commits"])
        finally:
            self._step = ""
