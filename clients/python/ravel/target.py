"""Choice of the daemon that a client calls, and of the token."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ravel.errors import RavelError
from ravel.home import find_home, not_running, read_run_file, read_token
from ravel.operations import REPO_HEADER

_SCHEMES: Final = ("http", "https")


@dataclass(frozen=True, slots=True)
class Target:
    """A daemon. `home` is its folder, None where only its address is known. `run` tells one start of it from another."""

    url: str
    token: str
    repo: str = ""
    home: Path | None = None
    run: str = ""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of every request."""
        return {"Authorization": f"Bearer {self.token}", **({REPO_HEADER: self.repo} if self.repo else {})}

    def lost(self) -> RavelError:
        """Return the error where it does not answer."""
        if self.home is not None:
            return not_running(self.home)
        return RavelError("not_running", f"no daemon answers at {self.url}", "start it with: ravel up")

    def found_again(self) -> "Target":
        """Find the daemon again: after a restart it may have another port. Raises RavelError `not_running`."""
        if self.home is None:
            return self
        found = read_run_file(self.home)
        return replace(self, url=f"http://{found.api}", run=found.run)


def find_target(
    home: str | Path | None = None, url: str | None = None, token: str | None = None, repo: str = ""
) -> Target:
    """Return the daemon of a folder, or the one at an address; an address needs a token.

    Raises RavelError: `not_running`, `not_initialised`, `bad_config`, and `bad_request` for arguments that name none.
    """
    if url is not None:
        if home is not None:
            raise RavelError("bad_request", "a client is for a folder or for an address, not for both")
        if not token:
            raise RavelError(
                "bad_request", f"a token is needed for {url}", "make one with: ravel token create"
            )
        return Target(_checked(url), _checked_token(token), repo)
    folder = find_home(home)
    found = read_run_file(folder)
    used = read_token(folder) if token is None else _checked_token(token)
    return Target(f"http://{found.api}", used, repo, folder, found.run)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or parts.query or parts.fragment or parts.username is not None:
        raise RavelError(
            "bad_request", f"{url!r} is not the address of a daemon", "such as http://127.0.0.1:7475"
        )
    return url.rstrip("/")


def _checked_token(token: str) -> str:
    """Return the token, which is sent in a header: a line break in it would begin another."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise RavelError(
            "bad_request", "the token has characters that no token has", "give it as it was printed"
        )
    return token
