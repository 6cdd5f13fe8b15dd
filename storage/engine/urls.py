"""Checks the URL of a PostgreSQL store and the destination of an export; hides passwords. Pure, and quick to import."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

URL_SIZE_MAX: Final = 2048
_SCHEMES: Final = ("postgresql", "postgres")
_HIDDEN: Final = "***"


def check_url(url: str) -> None:
    """Raise ValueError unless a URL names a PostgreSQL database; "" means a file in the folder.

    The error's text leaves the URL out: it may hold a password.
    """
    if not url:
        return
    if len(url) > URL_SIZE_MAX:
        raise ValueError(f"has more than {URL_SIZE_MAX} characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("is not a URL: look at its port and brackets") from None
    if parts.scheme not in _SCHEMES:
        raise ValueError("begins with postgresql://")
    if port == 0:
        raise ValueError("has a port from 1 to 65535")
    if not parts.path.strip("/"):
        raise ValueError("names a database: postgresql://USER@HOST/DATABASE")
    if "@" in parts.path:
        raise ValueError("has a password in which @, / and the like are written as %40, %2F")
    if parts.fragment or any(character <= " " or character == "\x7f" for character in url):
        raise ValueError("has no # or spaces; write them as %23 and %20")


def hide_secrets(url: str) -> str:
    """Return a URL without passwords, to be shown; empty if the text is no URL."""
    try:
        check_url(url)
    except ValueError:
        return _HIDDEN
    if not url:
        return ""
    parts = urlsplit(url)
    query = _shown_query(parts)
    return f"{parts.scheme}://{_shown_place(parts)}{parts.path}{'?' if query else ''}{query}"


def _shown_place(parts: SplitResult) -> str:
    login, at, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{user}{colon}{_HIDDEN if colon else ''}{at}{place}"


def _shown_query(parts: SplitResult) -> str:
    return "&".join(
        f"{quote(name)}={_HIDDEN if 'pass' in name.lower() else quote(value, safe='/')}"
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )


_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)


def check_destination(text: str) -> None:
    """Raise ValueError, without the text in it, unless a text is a path or a URL without credentials."""
    if "\0" in text or "::" in text:
        raise ValueError("is a folder or one URL, not several joined by ::")
    url = _URL.fullmatch(text)
    if url is None:
        return
    if url[1] == "file" and (urlsplit(text).netloc or not url[2].startswith("/")):
        raise ValueError("begins with file:/// where it is a folder of this machine")
    if url[1] in ("http", "https"):
        raise ValueError("can be read by http, and not written; give the store's own URL, such as s3://")
    if "@" in url[2].partition("/")[0] or "?" in url[2]:
        raise ValueError(
            "holds no user, password or parameters: they go into the environment, or into options"
        )
    if not url[2].strip("/"):
        raise ValueError("names a bucket or a folder")


def local_path(text: str) -> Path | None:
    """Return the folder that a path or a `file://` URL names; None for another URL."""
    url = _URL.fullmatch(text)
    if url is None:
        return Path(text)
    return Path(unquote(url[2])) if url[1] == "file" else None
