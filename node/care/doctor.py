"""`ravel doctor`: diagnoses what stops the node from working or soon will, and says what to do. Changes nothing.

It looks at the folder, the store, the disk and the clock by itself, and asks the daemon, if one runs, about its peers.
"""

import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from node.care.forecasts import Forecast, Pace, find_pace, forecast_daemon, forecast_disk
from node.home.config_sections import NetworkConfig
from node.home.folder_mark import check_store_stayed, is_copy
from node.home.home import UNWRITABLE_ADVICE, Home, open_home, room_advice
from node.home.identity import read_keys
from node.home.listen_addresses import is_loopback
from node.home.private_files import KEYS_NAME, find_drafts
from node.home.tokens import TokenFile
from node.ingest.own_feeds import ADVICE
from node.observe.sentences import (
    bound_sentence,
    clock_sentence,
    displaced_sentence,
    own_commits_sentence,
    part_sentence,
    standing_sentence,
    version_sentence,
)
from node.observe.watching import free_space, store_sizes
from node.runtime.errors import LOST_STORE_ADVICE, UNKNOWN_SCHEMA_ADVICE, ServiceError, storage_failed
from node.runtime.process import machine_memory
from node.runtime.version import RELEASED_AT
from node.runtime.wording import counted, date_text, size_text
from node.sync.addresses import AddressSource
from protocol.limits.formats import MIB
from protocol.limits.peers import CLOCK_DRIFT_MAX_SECONDS
from protocol.limits.users import DISK_FREE_MIN
from ravel import connect
from ravel.home import TOKEN_NAME
from ravel.types.node import ExportStatus, NodeStatus
from ravel.types.peers import PeerView, RelayStatus
from ravel.types.repos import RepoList
from storage.check.check_integrity import name_server
from storage.commits.damaged import DamagedCount, count_damaged
from storage.commits.growth import count_held, load_growth
from storage.commits.pending import UNREAD, count_pending
from storage.commits.search_index import find_index_fault
from storage.commits.stored_counts import load_newest_arrival
from storage.engine import store_seal
from storage.engine.database import LostStore, NewerSchema, NoStore, OlderSchema, StorageError, read_store
from storage.engine.losses import read_loss
from storage.engine.postgresql import find_risks
from storage.engine.quarantine import measure_quarantine

OK: Final = "ok"
WARNING: Final = "warning"
PROBLEM: Final = "problem"
_DISK_LOW: Final = 1 << 30
"""Bytes of free disk below which one should look for more."""
_FILES_FREE_LOW: Final = 1000
_QUARANTINE_LARGE: Final = 1 << 30
"""Bytes in quarantine from which on one should look. Only a request deletes them: they may be all that is left."""
_QUARANTINE_OLD_SECONDS: Final = 30 * 86_400
"""Age of the oldest file in quarantine from which on one should look: a month to find that something is missing."""
_RELAY_FULL_SOON_DAYS: Final = 14
"""Days before a relay is full from which on its operator should act: a larger disk takes some."""
_FORECAST_NEAR_DAYS: Final = 90
"""Days before a bound is met from which on one should act: another machine takes some weeks."""
_FORECAST_ADVICE: Final = {
    "disk": "make room there, or move the folder to a larger disk; `ravel storage` shows what grows",
    "start": "look at the daemon's log for what takes long; a faster machine starts sooner",
    "memory": "give the machine more memory; `ravel storage` shows what grows",
    "topics": "beyond it they take turns, and nothing is lost; `ravel repo forget` ends those of a repo",
}
DAMAGED_ADVICE: Final = "let the daemon run, and connect to a peer that has them: `ravel peer add`"
_UNSETTLED_ADVICE: Final = {
    "place_claimed": "`ravel member list REPO` lists ids; an admin runs `ravel member exclude REPO ID`, and where it is a "
    "founder's place `ravel repo fork` goes on without the other",
    "signers_gone": "`ravel quorum show REPO` lists the signers",
    "let_in": "after that `ravel recovery friends` names friends anew",
}
"""Advice where a key moved, was copied or was lost, by the code of the state."""
_READING: Final = ("read", "former")
"""Permissions of who cannot start an epoch that is due."""
_KEPT: Final = (AddressSource.CONFIGURED, AddressSource.LINK)
"""Addresses at which somebody expects the peer: what was learned may be wrong, and is given up by itself."""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check: `ok`, a `warning` or a `problem`, what was seen, and the next step."""

    name: str
    state: str
    detail: str
    advice: str = ""


def examine(path: Path, *, now: Callable[[], float] = time.time) -> list[Check]:
    """Run all checks of a node's folder. Raises ServiceError `not_initialised`."""
    checks = list(_check_folder(path))
    try:
        home = open_home(path)
    except ServiceError as error:
        if error.code == "not_initialised":
            raise
        return [*checks, Check("configuration", PROBLEM, error.message, error.advice)]
    checks.append(Check("configuration", OK, str(home.config_path)))
    checks += _check_keys(home)
    checks += check_discovery(home.config.network)
    checks += _check_disk(path, home.config.storage.size_max * MIB)
    pace = _read_pace(home, now())
    checks += check_forecasts(_forecast_disk(path, pace, now()), now())
    checks += _check_store(home, now())
    checks += _check_set_aside(path, now())  # what that found to be lost, too
    checks += _check_daemon(home, pace, now())
    is_clock_wrong = any(one.name == "clock" and one.state != OK for one in checks)
    return [one for one in checks if not (is_clock_wrong and one.name == "clock" and one.state == OK)]


def _check_folder(path: Path) -> Iterator[Check]:
    if not path.exists():
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        yield Check("folder", PROBLEM, f"{path} is open to others ({mode:o})", f"chmod 700 {path}")
    elif not os.access(path, os.W_OK):
        yield Check("folder", PROBLEM, f"{path} cannot be written", UNWRITABLE_ADVICE)
    else:
        yield Check("folder", OK, f"{path} is for its owner alone")
    wrong = [
        one.name
        for one in sorted(path.iterdir())
        if one.is_file() and one.suffix != ".log" and stat.S_IMODE(one.stat().st_mode) & 0o077
    ]
    if wrong:
        advice = f"chmod 600 {' '.join(str(path / name) for name in wrong)}"
        yield Check("files", PROBLEM, f"open to others: {', '.join(wrong)}", advice)


def _check_keys(home: Home) -> Iterator[Check]:
    try:
        file = read_keys(home.path)
    except ServiceError as error:
        yield Check("keys", PROBLEM, error.message, error.advice)
    else:
        if file.protection == "none":
            yield Check(
                "keys",
                WARNING,
                f"{KEYS_NAME} can be read, and lies in the clear",
                "seal it: ravel key seal; or see that the disk is encrypted; after a theft: ravel key refresh",
            )
        else:
            yield Check("keys", OK, f"{KEYS_NAME} can be read, and is sealed ({file.protection})")
    if begun := [path.name for path in find_drafts(home.path) if path.name.startswith(f"{KEYS_NAME}.")]:
        detail = f"a command that was killed has left {', '.join(begun)}: the keys may lie there in the clear"
        yield Check(
            "keys", PROBLEM, detail, "the next start of the daemon removes it, and so does `ravel key seal`"
        )
    try:
        _ = home.api_token
    except ServiceError as error:
        yield Check("keys", PROBLEM, error.message, error.advice)
    else:
        yield Check("keys", OK, f"{TOKEN_NAME} can be read")
    try:
        count = sum(one.revoked_at is None for one in TokenFile(home.path, time.time).tokens())
    except ServiceError as error:
        yield Check("tokens", PROBLEM, error.message, error.advice)
    else:
        yield Check("tokens", OK, f"{counted(count, 'token')} of apps and pages")


def _check_disk(path: Path, size_max: int) -> Iterator[Check]:
    free, sizes = free_space(path), store_sizes(path)
    detail = f"{size_text(free)} are free; the store has {size_text(sum(sizes.values()))}"
    advice = "make room there; `ravel gc --dry-run` says what the store could do without"
    if free < DISK_FREE_MIN:
        yield Check("disk", PROBLEM, detail, advice)
    elif free < _DISK_LOW or free < sizes["database"]:
        yield Check("disk", WARNING, f"{detail}, which a migration would copy", advice)
    else:
        yield Check("disk", OK, detail)
    if 0 < size_max < (taken := sizes["database"] + sizes["packs"]):
        detail = f"database and packs have {size_text(taken)}, and storage.size_max is {size_text(size_max)}"
        advice = (
            "`ravel status` says what keeps contents here; `ravel gc` shrinks a database that has emptied"
        )
        yield Check("disk", WARNING, detail, advice)
    files = os.statvfs(path)
    if files.f_files and files.f_favail < _FILES_FREE_LOW:
        yield Check(
            "disk", WARNING, f"the file system has room for {files.f_favail} files", "make room there"
        )


def _check_set_aside(path: Path, now: float) -> Iterator[Check]:
    """Report what earlier starts found to be lost, and what they put into quarantine."""
    loss = read_loss(path)
    if is_copy(path):
        detail = "this folder is a copy: its next start asks peers for what was written at the original since"
        advice = "run one of the two alone, for good: both are the same node and the same user"
        yield Check("own feeds", WARNING, detail, advice)
    elif loss is not None and loss.is_lost:
        state = PROBLEM if loss.is_damage else WARNING
        yield Check("own feeds", state, f"{loss.detail}; nothing is written to what was here then", ADVICE)
    elif loss is not None and loss.returned:
        detail = f"{loss.detail}; nothing is written to {len(loss.returned)} of the repos that came by links"
        yield Check("own feeds", WARNING, detail, ADVICE)
    kept = measure_quarantine(path)
    if kept.files:
        is_much = kept.size > _QUARANTINE_LARGE or now - kept.oldest > _QUARANTINE_OLD_SECONDS
        detail = f"{counted(kept.files, 'file')} with {size_text(kept.size)}, the oldest since {date_text(kept.oldest)}"
        advice = "when nothing is missing from the store: ravel gc --quarantine" if is_much else ""
        yield Check("quarantine", WARNING if is_much else OK, detail, advice)


def _check_store(home: Home, now: float) -> Iterator[Check]:
    newest = 0
    risks: list[str] = []
    try:
        check_store_stayed(home.path)
        with read_store(home.path, url=home.storage_url) as connection:
            newest = load_newest_arrival(connection)
            unread, damaged = count_pending(connection, reason=UNREAD), count_damaged(connection)
            name, risks = name_server(connection), find_risks(connection)
            is_clean = store_seal.is_clean(connection)
            fault = find_index_fault(connection)
    except NoStore:
        yield Check("store", OK, "none yet")
    except LostStore as error:
        yield Check("store", PROBLEM, str(error), LOST_STORE_ADVICE)
    except OlderSchema as error:
        yield Check("store", OK, str(error))
    except NewerSchema as error:
        yield Check("store", PROBLEM, str(error), UNKNOWN_SCHEMA_ADVICE)
    except StorageError as error:
        advice = (
            "is that server up, and [storage] url right?"
            if home.storage_url
            else room_advice(home.path) or "ravel fsck; ravel fsck --repair; ravel restore BACKUP"
        )
        failed = storage_failed(error, advice)
        yield Check("store", PROBLEM, failed.message, failed.advice)
    else:
        yield Check("store", OK, f"it can be read ({name})")
        for risk in risks:
            yield Check("store", WARNING, risk, "change the server's configuration")
        if unread:
            detail = f"of a format that this Ravel does not know: {counted(unread, 'commit')}"
            yield Check("store", WARNING, detail, "install a newer Ravel")
        if damaged != DamagedCount(0, 0):
            lost, blocks = counted(damaged.commits, "commit"), counted(damaged.blocks, "block")
            detail = f"damaged, and asked of peers: {lost}, {blocks} of files"
            yield Check("store", WARNING, detail, DAMAGED_ADVICE)
        if fault:
            advice = "start the daemon again, which makes it anew"
            yield Check("search", WARNING, f"the search index is damaged: {fault}", advice)
        if is_clean is False:
            detail = "secrets that lay in it before it was sealed may still stand on its pages"
            advice = "make room for a copy of it: the next start, while nothing else reads it, writes it anew"
            yield Check("store", WARNING, detail, advice)
    yield _check_clock(now, newest / 1000)


def _check_clock(now: float, newest: float) -> Check:
    """Check the clock: no order rests on it, but invitations expire by it, and people read its times."""
    advice = "set the clock, and keep it right with NTP"
    if now < RELEASED_AT:
        return Check(
            "clock", PROBLEM, f"it says {date_text(now)}, which is before this Ravel was made", advice
        )
    if newest > now + CLOCK_DRIFT_MAX_SECONDS:
        detail = f"it says {date_text(now)}, and this node has stored something at {date_text(newest)}"
        return Check("clock", PROBLEM, detail, advice)
    return Check("clock", OK, f"it says {date_text(now)}")


def _read_pace(home: Home, now: float) -> Pace | None:
    """Read how the store grows; None where too little is known, or it cannot be read, which another check says."""
    try:
        with read_store(home.path, url=home.storage_url) as connection:
            return find_pace(load_growth(connection), count_held(connection), now)
    except StorageError:
        return None


def _forecast_disk(path: Path, pace: Pace | None, now: float) -> Iterator[Forecast]:
    sizes = store_sizes(path)
    if pace is not None and sizes["database"]:  # else the rows are on a server, whose disk is not looked at
        size = sizes["database"] + sizes["packs"]
        yield forecast_disk(pace, size, free_space(path) - DISK_FREE_MIN, now)


def check_forecasts(forecasts: Iterable[Forecast], now: float) -> Iterator[Check]:
    """Report when bounds are met, and warn of those that are near."""
    for one in forecasts:
        is_near = one.at is not None and one.at - now < _FORECAST_NEAR_DAYS * 86_400
        yield Check(
            "forecast", WARNING if is_near else OK, one.detail, _FORECAST_ADVICE[one.what] if is_near else ""
        )


def _check_daemon(home: Home, pace: Pace | None, now: float) -> Iterator[Check]:
    try:
        client = connect(home.path)
    except ServiceError as error:
        yield Check("daemon", WARNING, error.message, error.advice)
        yield from _check_ports(home)
        return
    try:
        status, readiness = client.show_status(), json.loads(client.page("/readyz"))
        relay = client.show_relay() if status["relay"] else None
        repos = client.list_repos()
        metrics = client.page("/metrics")
    except ServiceError as error:
        yield Check("daemon", PROBLEM, error.message, error.advice or "look at its log")
        return
    finally:
        client.close()
    wrong = [f"{name}: {answer}" for name, answer in readiness["checks"].items() if answer != "ok"]
    if wrong:
        yield Check("daemon", PROBLEM, "; ".join(wrong), "look at the disk and at the daemon's log")
    else:
        yield Check("daemon", OK, f"it runs, and listens on {status['listen']}")
    yield from check_peers(status, repos)
    yield from check_bound(status)
    yield from check_keys_in_use(status)
    yield from check_members_clocks(status)
    yield from check_connected(status, repos)
    yield from check_repos(repos)
    if pace is not None:
        yield from check_forecasts(forecast_daemon(pace, metrics, machine_memory(), now), now)
    yield check_export(status["export"])
    if relay is not None:
        yield from check_relay(relay)


def _check_ports(home: Home) -> Iterator[Check]:
    """Check that a daemon could listen at the configured addresses."""
    for key, address in (
        ("network.listen", home.config.network.listen),
        ("network.websocket_listen", home.config.network.websocket_listen),
        ("api.listen", home.config.api.listen),
        ("api.tls", home.config.api.tls),
    ):
        if not address:
            continue
        host, _, port = address.rpartition(":")
        host = "0.0.0.0" if host == "*" else host.strip("[]")  # noqa: S104  # it is only looked whether it is free
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, int(port)))
        except OSError as error:
            yield Check(
                "ports", PROBLEM, f"{key} = {address}: {error.strerror or error}", "choose another address"
            )
        else:
            yield Check("ports", OK, f"{key} = {address} is free")


def check_discovery(config: NetworkConfig) -> Iterator[Check]:
    """Check that discovery on the local network can find anybody there."""
    if config.discover_lan and is_loopback(config.listen):
        detail = f"network.discover_lan is on, and network.listen = {config.listen} is this machine alone"
        yield Check("discovery", WARNING, detail, 'set [network] listen = "*:7474"')


def check_peers(status: NodeStatus, repos: RepoList) -> Iterator[Check]:
    """Report peers that do not answer, and commits that none of them has, from a daemon's status."""
    connected = [peer for peer in status["peers"] if peer["state"] == "connected"]
    away = [peer for peer in status["peers"] if peer["state"] != "connected" and peer["source"] in _KEPT]
    known = {peer["peer"] for peer in connected}
    advice = "is it running, and its address right? `ravel peer add` gives it another"
    if status["key_use"]["displaced_at"] is not None:
        advice = "stop the other node with this node's key: peers keep one connection with a key"
    for peer in away:
        if peer["peer"] not in known:
            who = peer["name"] or peer["peer"]
            detail = f"{who} at {peer['address']}: {peer['last_error'] or 'being dialed'}"
            yield Check("peers", WARNING, detail, advice)
    for peer in connected:
        if detail := version_sentence(peer):
            # Features that one side lacks are told at the greeting, and left out. Unknown messages were lost.
            state = WARNING if peer["unknown_messages"] else OK
            advice = "compare `ravel --version` on both, and install the newer one"
            yield Check("peers", state, f"{peer['name'] or peer['peer']} runs {detail}", advice)
        if peer["waiting_topics"]:
            waiting = counted(peer["waiting_topics"], "topic")
            detail = f"{waiting} not compared yet with {peer['name'] or peer['peer']}: each takes its turn"
            yield Check("topics", OK, detail)
    if connected:
        yield Check("peers", OK, f"{len(connected)} connected")
    if status["pending"] and _is_over(repos):
        detail = f"waiting for causes that are not for this computer: {counted(status['pending'], 'commit')}"
        yield Check("topics", OK, detail)
    elif status["pending"] and connected and not _at_work(connected):
        detail = f"waiting for causes that no connected peer has: {counted(status['pending'], 'commit')}"
        yield Check("topics", WARNING, detail, "connect to a peer that has them: `ravel peer add`")
    else:
        yield Check("topics", OK, f"waiting for their causes: {counted(status['pending'], 'commit')}")


def _is_over(repos: RepoList) -> bool:
    """Return True if this user has no part any more in some repos, and no other one waits for causes."""
    standings = [repo["standing"] for repo in repos["repos"]]
    waits = any(part["code"] == "causes_missing" for one in standings for part in one["parts"])
    return not waits and any(one["state"] in ("former", "cut_off") for one in standings)


def check_bound(status: NodeStatus) -> Iterator[Check]:
    """Say what keeps the store over the bound on its size, from a daemon's status."""
    if detail := bound_sentence(status["storage_bound"]):
        advice = (
            "connect to a member's computer that keeps all (`ravel repo holders`), raise `ravel config set "
            "storage.size_max`, or delete a repo: `ravel repo forget`"
        )
        yield Check("disk", WARNING, detail, advice)


def check_keys_in_use(status: NodeStatus) -> Iterator[Check]:
    """Say that another node uses a key of this one, as a daemon's status shows it."""
    if detail := displaced_sentence(status["key_use"]):
        advice = "stop one of the two for good: a restored or copied folder is the same node and user"
        yield Check("keys", PROBLEM, detail, advice)
    if detail := own_commits_sentence(status["key_use"]):
        advice = (
            "see that this is the only node with your key; a device has a user of its own: `ravel device add`"
        )
        yield Check("keys", WARNING, detail, advice)


def check_members_clocks(status: NodeStatus) -> Iterator[Check]:
    """Compare the clock with those of members who write now."""
    if detail := clock_sentence(status["clock"]):
        advice = "compare it with a clock that is right; set it, and keep it right with NTP"
        state = WARNING if status["clock"]["authors"] == 1 else PROBLEM
        yield Check("clock", state, f"it is {detail}", advice)


def check_repos(repos: RepoList) -> Iterator[Check]:
    """Report what is absent of repos, and who can help."""
    passed: dict[str, list[str]] = {}
    for repo in repos["repos"]:
        standing = repo["standing"]
        if standing["own_forks"]:
            twice = counted(standing["own_forks"], "place")
            detail = f"{repo['name']}: {twice} of your feed used twice, which stays so"
            advice = "`ravel feed check BRANCH` lists them; see that no second node uses your key"
            yield Check("own feeds", WARNING, detail, advice)
        if any(part["code"] == "false_checkpoint" for part in standing["parts"]):
            advice = (
                "`ravel repo checkpoints REPO` lists them; `ravel fsck` looks at this store; ask who signed"
            )
            yield Check("repos", PROBLEM, f"{repo['name']}: {standing_sentence(standing)}", advice)
        for part in standing["parts"]:
            if part["code"] in _UNSETTLED_ADVICE:
                detail = f"{repo['name']}: {part_sentence(part)}"
                yield Check("repos", WARNING, detail, _UNSETTLED_ADVICE[part["code"]])
        if standing["guests"]:
            readers = counted(standing["guests"], "reader")
            verb = "is" if standing["guests"] == 1 else "are"
            detail = f"{repo['name']}: at least {readers} who {verb} no member {verb} connected, by a link"
            yield Check(
                "repos", OK, detail, "to end that for what is written from now on: `ravel repo renew REPO`"
            )
        if standing["uncertain"]:
            continue  # said of all of them, also without a daemon
        if standing["state"] == "former":  # as it is meant to be, whatever comes no more
            for part in standing["parts"]:
                if part["code"] == "former" and part.get("people"):
                    passed.setdefault(part["people"][0], []).append(repo["name"])
        elif standing["state"] in ("cut_off", "damaged"):
            advice = "ask a member for a new link" if standing["state"] == "cut_off" else DAMAGED_ADVICE
            yield Check("repos", WARNING, f"{repo['name']}: {standing_sentence(standing)}", advice)
        elif standing["state"] in ("alone", "not_shared") and standing["held_at"] and standing["unheld"]:
            advice = "let a peer that follows it be online, or connect to one: `ravel peer add`"
            yield Check("repos", WARNING, f"{repo['name']}: {standing_sentence(standing)}", advice)
        elif standing["state"] == "waiting" or standing["epoch_due"]:
            advice = "wait until a node of theirs is online, or connect to one: `ravel peer add`"
            if repo["permission"] in _READING:
                advice = (
                    "nothing here can help: ask a member who may write to write something, or for a new link"
                )
            elif standing["epoch_due"]:
                advice = "write something where you may, or ask one of them to: that starts new secrets"
            yield Check("repos", WARNING, f"{repo['name']}: {standing_sentence(standing)}", advice)
    for heir, names in passed.items():
        yield Check("repos", OK, f"{', '.join(names)}: your place has passed to {heir}")


def check_connected(status: NodeStatus, repos: RepoList) -> Iterator[Check]:
    """Say that nobody is connected where others have held something: to be alone is fine for a repo of one's own."""
    shared = [repo["name"] for repo in repos["repos"] if repo["standing"]["held_at"] is not None]
    if shared and not any(peer["state"] == "connected" for peer in status["peers"]):
        detail = f"no peer is connected, and others have held {counted(len(shared), 'repo')} of those here"
        yield Check(
            "peers", WARNING, detail, "is this machine on a network? `ravel peer list` shows who is dialed"
        )


def check_export(export: ExportStatus) -> Check:
    """Report the exports of a daemon's status."""
    if export["last_error"]:
        return Check(
            "export",
            WARNING,
            export["last_error"],
            "look at [export] of the configuration; `ravel export` tries it at once",
        )
    if export["interval"]:
        return Check(
            "export", OK, f"every {counted(export['interval'], 'minute')} to {export['destination']}"
        )
    return Check("export", OK, "on request")


def check_relay(relay: RelayStatus) -> Iterator[Check]:
    """Report a relay's room, the quotas that it has promised, and its disk."""
    days, room = relay["full_in_days"], relay["size_max"] - relay["size"]
    if relay["blocks_damaged"]:
        detail = f"damaged: {counted(relay['blocks_damaged'], 'block')} of others' files"
        yield Check("relay", WARNING, detail, "look at the disk; ravel fsck")
    if room > relay["free"]:
        free = size_text(relay["free"])
        detail = f"it may take {size_text(room)} more, and {free} are free: the disk is full before it is"
        yield Check("relay", WARNING, detail, "make room, or lower `ravel config set relay.size_max`")
    if relay["promised"] > relay["size_max"]:
        detail = (
            f"the quotas of its accounts are {size_text(relay['promised'])} together, and it takes "
            f"{size_text(relay['size_max'])}"
        )
        yield Check(
            "relay",
            WARNING,
            detail,
            "raise `ravel config set relay.size_max`, or `ravel relay change` quotas",
        )
    if days is not None and days <= _RELAY_FULL_SOON_DAYS:
        detail = f"at the rate of the last week it is full in {counted(days, 'day')}"
        yield Check("relay", WARNING, detail, "ravel relay status; then make room, or raise relay.size_max")
    yield Check("relay", OK, f"{size_text(relay['size'])} of {size_text(relay['size_max'])} are taken")


def _at_work(peers: list[PeerView]) -> bool:
    return any(
        topic["state"] in ("comparing", "sending", "receiving") for peer in peers for topic in peer["topics"]
    )
