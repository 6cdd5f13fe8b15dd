"""Matplotlib in the style of the page: its colours (dark, light, print), and pictures as elements or files.

Nothing a user wrote goes into a picture: names stand in the page around it.
"""

import io
import re
from typing import Any, Final

from matplotlib.figure import Figure

# Matplotlib knows no CSS variables: it draws in colours that nothing else uses, which are then replaced.
QUIET: Final = "#010101"
_LINES: Final = "#020202"
MAIN: Final = "#030303"
MAIN_SOFT: Final = "#040404"
OTHER: Final = "#050505"
OTHER_SOFT: Final = "#060606"
_VARIABLES: Final = {
    QUIET: "var(--soft-ink)",
    _LINES: "var(--lines)",
    MAIN: "var(--main)",
    MAIN_SOFT: "var(--main-soft)",
    OTHER: "var(--other)",
    OTHER_SOFT: "var(--other-soft)",
}

STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: smaller, and it can be read aloud
    "font.size": 11,
    "text.color": QUIET,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": _LINES,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.xmargin": 0.01,
    "grid.color": _LINES,
    "grid.linewidth": 0.8,
    "xtick.color": _LINES,
    "xtick.labelcolor": QUIET,
    "ytick.left": False,
    "ytick.color": _LINES,
    "ytick.labelcolor": QUIET,
}


def svg_of(figure: Figure, label: str) -> str:
    """Return the picture as an element for a page: scaling with it, coloured by it, and the same bytes every time."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


_ON_PAPER: Final = {
    "var(--soft-ink)": "#514b43",
    "var(--lines)": "#e5e0d8",
    "var(--main)": "#1b6090",
    "var(--main-soft)": "#bcd8ed",
    "var(--other)": "#855000",
    "var(--other-soft)": "#f0dcb4",
}
"""The page's colours where it is light."""


def as_file(picture: str) -> str:
    """Return a picture of a page as a file of its own, on white."""
    for variable, colour in _ON_PAPER.items():
        picture = picture.replace(variable, colour)
    picture = picture.replace("font-family: inherit", "font-family: sans-serif")
    opening, rest = picture.split(">", 1)
    return f'{opening}>\n <rect width="100%" height="100%" fill="#fff"/>{rest}'
