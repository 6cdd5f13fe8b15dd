"""Raises the process's limit of open files and sockets: shells set 1,024, and let a process ask for more."""

import resource

import structlog

from protocol.limits.users import OPEN_FILES_WANTED

log = structlog.get_logger()


def allow_open_files() -> int:
    """Ask for OPEN_FILES_WANTED, where there are fewer; gives how many there are then."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if most == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        allowed = wanted
    if allowed != resource.RLIM_INFINITY and allowed < OPEN_FILES_WANTED:
        log.warning(
            "few files may be open: many connections at once will fail",
            allowed=allowed,
            wanted=OPEN_FILES_WANTED,
        )
    return allowed
