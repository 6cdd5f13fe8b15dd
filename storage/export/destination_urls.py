"""Parses an export destination: a local path, or a URL with an fsspec driver. Pure, and quick to import."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)


def check_destination(text: str) -> None:
    """See that a text can name a destination: a path, or a URL without credentials. Raises ValueError, without the text."""
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
    """The folder that a path or a `file://` URL names; None for another URL."""
    url = _URL.fullmatch(text)
    if url is None:
        return Path(text)
    return Path(unquote(url[2])) if url[1] == "file" else None
