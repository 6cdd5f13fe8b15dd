"""QR codes say what they were made of, read by another's reader."""

import re

import numpy
import pytest
import zxingcpp

from node.api.qr import draw_qr, print_qr
from node.runtime.errors import ServiceError
from protocol.limits.formats import LINK_SIZE_MAX

_LINK = "ravel:invite:" + "abcdefgh23" * 60
_PIXELS = 3


def _read(dark: "numpy.ndarray[tuple[int, int], numpy.dtype[numpy.uint8]]") -> str:
    white = numpy.kron((1 - dark) * 255, numpy.ones((_PIXELS, _PIXELS))).astype(numpy.uint8)
    (found,) = zxingcpp.read_barcodes(white)
    return str(found.text)


def test_a_drawn_code_says_its_link() -> None:
    drawn = draw_qr(_LINK)
    dark = numpy.zeros((drawn["size"], drawn["size"]), numpy.uint8)
    pieces = re.findall(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z", drawn["path"])
    assert "".join(f"M{x} {y}h{length}v1h-{back}z" for x, y, length, back in pieces) == drawn["path"]
    for x, y, length, back in (map(int, piece) for piece in pieces):
        assert length == back
        dark[y, x : x + length] = 1
    assert not dark[:4].any()
    assert not dark[:, -4:].any()
    assert _read(dark) == _LINK


def test_a_printed_code_says_its_link() -> None:
    """Of two modules a character, light ones are drawn: terminals are dark, mostly."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", print_qr(_LINK))
    halves = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    rows = [[halves[char] for char in line] for line in text.splitlines()]
    assert {len(row) for row in rows} == {len(rows[0])}
    light = numpy.array([[half[part] for half in row] for row in rows for part in (0, 1)], numpy.uint8)
    assert _LINK in (_read(1 - light), _read(light))


@pytest.mark.slow
def test_what_fits_no_code_is_refused() -> None:
    with pytest.raises(ServiceError) as caught:
        draw_qr("a" * LINK_SIZE_MAX)
    assert caught.value.code == "too_large"
    draw_qr("a" * 2953)
    with pytest.raises(ServiceError):
        print_qr("a" * 2954)
