"""QR codes of links, for a page to draw and for a terminal."""

import io
from itertools import groupby
from typing import TYPE_CHECKING

from node.runtime.errors import ServiceError
from ravel.types.node import QrCode

if TYPE_CHECKING:
    import segno

_BORDER = 4
"""Modules of white around it, as ISO/IEC 18004 asks for."""


def draw_qr(text: str) -> QrCode:
    """Draw an SVG path of a square of `size` modules, border included. Raises ServiceError `too_large`."""
    rows = [list(row) for row in _make(text).matrix_iter(border=_BORDER)]
    path: list[str] = []
    for y, row in enumerate(rows):
        x = 0
        for is_dark, run in groupby(row):
            length = len(list(run))
            if is_dark:
                path.append(f"M{x} {y}h{length}v1h-{length}z")
            x += length
    return {"size": len(rows), "path": "".join(path)}


def print_qr(text: str) -> str:
    """Draw a text code of half blocks, two modules a character. Raises ServiceError `too_large`."""
    out = io.StringIO()
    _make(text).terminal(out, border=_BORDER, compact=True)
    return out.getvalue()


def _make(text: str) -> "segno.QRCode":
    # Imported here: it takes 1.3 MB, with a reader of XML and a client of URLs, and few daemons draw a code.
    import segno

    try:
        return segno.make(text, micro=False, error="l", boost_error=False)
    except segno.DataOverflowError:
        raise ServiceError(
            "too_large", f"a QR code does not hold {len(text)} characters", "send the link as text"
        ) from None
