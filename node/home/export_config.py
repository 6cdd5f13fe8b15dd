"""Configuration section [export]: keys, default text, parsing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from node.runtime.errors import ServiceError
from storage.engine.urls import check_destination

INTERVAL_MAX: Final = 525_600
"""Minutes: a year."""
KEEP_MAX: Final = 87_600
"""Hours: ten years."""
PARTS_MIN: Final = 2
PARTS_MAX: Final = 10_000
"""Parts of a table: Spark opens each, and an object store is asked for each."""

FORMATS: Final = ("parquet", "delta")
"""How tables are published: as folders of Parquet files alone, or also as tables of Delta Lake."""

EXPORT_KEYS: Final = (
    "destination",
    "options",
    "format",
    "interval",
    "keep",
    "parts",
    "bodies",
    "blocks",
    "pseudonyms",
)

EXPORT_TEXT: Final = """\
[export]
# Where exports go: a folder ("" is `exports`; a relative path begins in the node's folder), or the URL of a store that
# fsspec has a driver for, such as "s3://bucket/prefix" (extra s3: docs/communities/start.md). Each node needs its own.
destination = ""
# What the driver is told beside the URL; never shown, nor logged:
# options = { key = "...", secret = "...", client_kwargs = { endpoint_url = "https://..." } }
# What is not said here, the driver looks for in the environment (AWS_ACCESS_KEY_ID and the like).
options = {}
# "parquet", or "delta": then each table is also a table of Delta Lake, in `kept/TABLE`, over the same files.
format = "parquet"
# Minutes between exports by the daemon; 0: only when `ravel export` asks for one.
interval = 0
# Hours that parts stay which a newer export has replaced, for anyone who still reads them.
keep = 24
# A table of more parts than this gets some of them merged.
parts = 32
# Whether what commits say is exported too: then the export is as secret as the branches are.
bodies = false
# Whether blocks are exported too, so that `ravel audit` can compute the ids of commits again: ciphertext, and no key.
blocks = false
# Whether authors are replaced by hashes under a key of this node's (`pseudonym.key` in its folder).
pseudonyms = false
"""


@dataclass(frozen=True, slots=True)
class ExportConfig:
    """[export]: an empty destination stands for `exports` in the node's folder."""

    destination: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    interval: int = 0  # minutes
    keep: int = 24  # hours
    parts: int = 32
    bodies: bool = False
    blocks: bool = False
    pseudonyms: bool = False
    format: str = "parquet"  # one of FORMATS


def read_export(section: Mapping[str, object], bad: Callable[[str, str], ServiceError]) -> ExportConfig:
    """Build the section, whose keys are known. Raises what `bad` makes of a key and of what is wrong with it."""
    default = ExportConfig()
    destination = section.get("destination", default.destination)
    if not isinstance(destination, str):
        raise bad("destination", "[export] destination is a text")
    try:
        check_destination(destination)
    except ValueError as error:
        raise bad("destination", f"[export] destination {error}") from None
    options = section.get("options", default.options)
    if not isinstance(options, dict):
        raise bad("options", '[export] options is a table, such as { key = "..." }')  # without its value

    form = section.get("format", default.format)
    if form not in FORMATS:
        raise bad("format", f"[export] format is {' or '.join(FORMATS)}, not {form!r}")

    def whole(key: str, default: int, least: int, most: int) -> int:
        value = section.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise bad(key, f"[export] {key} is a number from {least} to {most}, not {value!r}")
        return value

    def flag(key: str) -> bool:
        value = section.get(key, False)
        if not isinstance(value, bool):
            raise bad(key, f"[export] {key} is true or false, not {value!r}")
        return value

    config = ExportConfig(
        destination,
        options,
        whole("interval", default.interval, 0, INTERVAL_MAX),
        whole("keep", default.keep, 0, KEEP_MAX),
        whole("parts", default.parts, PARTS_MIN, PARTS_MAX),
        flag("bodies"),
        flag("blocks"),
        flag("pseudonyms"),
        str(form),
    )
    if config.bodies and config.pseudonyms:
        raise bad("bodies", "[export] bodies name authors: there are none where pseudonyms = true")
    return config


def hide_options(options: object) -> object:
    """Return options to be shown: their names, without values."""
    return dict.fromkeys(options, "***") if isinstance(options, dict) else "***"
