"""User-facing errors with code, message and next step, and the table of exit codes and HTTP statuses.

Nothing else in Ravel knows an exit code or an HTTP status; 2, for a command line that is not understood, is Typer's.
Errors of peers (bad bytes, bad commits) are not here: they are `DecodeError` and verdicts, which end in logs and counts,
never in a traceback.
"""

from dataclasses import dataclass
from typing import Final

from ravel.errors import RavelError
from storage.engine.errors import LostStore, StorageError, StoreLocked


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Exit code and HTTP status of one error code."""

    exit_code: int
    http_status: int
    meaning: str


EXIT_OK: Final = 0
EXIT_UNEXPECTED: Final = 1
EXIT_STOPPED: Final = 130
"""Exit code of a command that Ctrl-C stopped, as shells have it."""
EXIT_RESTART: Final = 75
"""Exit code of a daemon that a service is to start again: `EX_TEMPFAIL` of sysexits.h."""

ERROR_KINDS: Final[dict[str, ErrorKind]] = {
    "bad_request": ErrorKind(3, 400, "the request is not of the expected form"),
    "not_found": ErrorKind(4, 404, "nothing here has that name or id"),
    "ambiguous": ErrorKind(5, 409, "the prefix or name fits more than one"),
    "already_exists": ErrorKind(6, 409, "the name is taken"),
    "not_permitted": ErrorKind(7, 403, "this member does not have the permission"),
    "needs_quorum": ErrorKind(7, 403, "signers of the repo have to approve first"),
    "bad_link": ErrorKind(8, 400, "the link is mistyped, of another kind, or of an unknown version"),
    "expired": ErrorKind(9, 410, "the invitation is no longer valid"),
    "bad_config": ErrorKind(10, 409, "the configuration is not usable"),
    "not_initialised": ErrorKind(11, 500, "there is no node in this folder"),
    "already_running": ErrorKind(12, 409, "another process uses this folder"),
    "not_running": ErrorKind(13, 503, "no daemon answers for this folder"),
    "unauthorized": ErrorKind(14, 401, "the API token is missing or wrong"),
    "token_expired": ErrorKind(14, 401, "the API token is no longer valid"),
    "forbidden_host": ErrorKind(15, 403, "the request was not made to a loopback name"),
    "forbidden_origin": ErrorKind(15, 403, "the request comes from a web page of another origin"),
    "too_large": ErrorKind(16, 413, "the input is over a stated limit"),
    "unknown_parent": ErrorKind(17, 400, "an imported item names a parent that was not imported before it"),
    "bad_input": ErrorKind(18, 400, "a file or repository to import is malformed"),
    "storage_failed": ErrorKind(19, 507, "the store could not be read or written"),
    "newer_schema": ErrorKind(20, 500, "the store was written by a newer Ravel"),
    "bad_export": ErrorKind(21, 500, "an export is incomplete, altered or of an unknown schema"),
    "missing_extra": ErrorKind(22, 500, "an optional part of Ravel is not installed"),
    "mismatch": ErrorKind(23, 500, "two computations that must agree differ"),
    "incomplete": ErrorKind(24, 409, "parts of it have not arrived at this node yet"),
    "interrupted": ErrorKind(25, 503, "a transfer was cut; a second run continues it"),
    "feed_forked": ErrorKind(26, 409, "an author used one place of a feed for several commits"),
    "busy": ErrorKind(27, 503, "the maximum number of requests is being served"),
    "wrong_passphrase": ErrorKind(28, 403, "the passphrase does not open the keys"),
    "locked": ErrorKind(29, 503, "the keys are sealed and no passphrase or keyring opened them"),
    "damaged": ErrorKind(30, 500, "a check found damage in the store"),
    "unhealthy": ErrorKind(31, 503, "`ravel doctor` found a problem that stops the node from working"),
    "feed_uncertain": ErrorKind(32, 409, "own commits may be lost, and no peer was asked yet"),
    "insufficient_scope": ErrorKind(33, 403, "the API token is valid, but not for that"),
    "last_copy": ErrorKind(34, 409, "it would be deleted, and no other node is known to hold it"),
    "answer_lost": ErrorKind(
        35, 409, "the answer to a write was lost, and nothing tells whether it was done"
    ),
    "incompatible": ErrorKind(36, 500, "an answer is not of the form that this client knows"),
    "key_reused": ErrorKind(37, 409, "an idempotency key came before with another request"),
    "method_not_allowed": ErrorKind(38, 405, "the path is an endpoint's, and the method is not"),
    "internal": ErrorKind(EXIT_UNEXPECTED, 500, "a defect in Ravel"),
}
"""Error code -> how it is shown. Codes are stable: scripts may depend on them."""


LOST_STORE_ADVICE: Final = (
    "restore a backup: `ravel --home NEW restore BACKUP`; if there is none, begin with an empty store: "
    "`ravel fsck --accept-loss`"
)
UNKNOWN_SCHEMA_ADVICE: Final = (
    "use the Ravel that last ran here, or a newer one; a home made before 0.1 is not read: "
    "docs/communities/backups.md says how to carry its texts over"
)
READ_ONLY_ADVICE: Final = (
    "`ravel repo list` says how you stand; ask an admin of the repo for write: "
    "`ravel id` prints the user id that `ravel member grant` takes"
)
"""What to do for who may not write there."""


ServiceError = RavelError
"""An expected failure of this node: its code is one of ERROR_KINDS. To clients it is the same error."""


def kind_of(error: RavelError) -> ErrorKind:
    """Exit code and HTTP status of an error. A newer node may say codes that are not known here."""
    return ERROR_KINDS.get(error.code, ERROR_KINDS["internal"])


def storage_failed(error: StorageError, advice: str) -> ServiceError:
    """Return the answer where the store could not be read or written.

    `advice` is for other causes than a lock and a lost store, which have their own.
    """
    if isinstance(error, LostStore):
        advice = LOST_STORE_ADVICE
    if isinstance(error, StoreLocked):
        advice = "end the program that holds it, such as a sqlite3 shell: `fuser -v ravel.sqlite` names it"
    return ServiceError("storage_failed", str(error), advice)


def damaged(error: Exception) -> ServiceError:
    """Return the error of a store that lacks bytes it had."""
    return ServiceError(
        "damaged",
        f"blocks of it were damaged: {error}",
        "`ravel status` says whether they are damaged here: connect to a peer that has them; "
        "else stop the daemon, and: ravel fsck --repair",
    )
