"""The repo whose branches names mean first on this node's command line: a file in the folder."""

import re
from pathlib import Path
from typing import Final

from node.runtime.errors import ServiceError
from ravel.home import access_advice

_FILE_NAME: Final = "default-repo"
_ID: Final = re.compile(r"[a-z2-7]{52}")


def load_default_repo(home: Path) -> str:
    """Return the id of the default repo as text; empty if none is chosen, or if the file does not hold one.

    Raises ServiceError `bad_config` if this user may not read the file.
    """
    path = home / _FILE_NAME
    try:
        text = path.read_text(encoding="ascii").strip()
    except PermissionError:
        raise ServiceError("bad_config", f"{path} cannot be read", access_advice(path)) from None
    except (OSError, UnicodeDecodeError):
        return ""
    return text if _ID.fullmatch(text) else ""


def store_default_repo(home: Path, repo: str) -> None:
    """Choose a repo by its id; none where it is empty. Raises ServiceError `storage_failed`."""
    from node.home.private_files import (
        replace_file,
    )  # commands that only ask a daemon start sooner without it

    try:
        if repo:
            replace_file(home / _FILE_NAME, f"{repo}\n".encode())
        else:
            (home / _FILE_NAME).unlink(missing_ok=True)
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{home / _FILE_NAME} cannot be written: {error}", access_advice(home)
        ) from None
