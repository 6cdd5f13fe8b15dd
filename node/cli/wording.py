"""Names and words of commands for people, posts, connections, sizes and transfers."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from node.cli.answers import Outcome
from node.cli.printing import ID_WIDTH, id_text_shown, is_terminal, moment
from node.runtime.errors import ServiceError
from node.runtime.language import in_language
from node.runtime.wording import counted, duration_text, size_text

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel import Client
    from ravel.types.peers import PeerBan, PeerView, RelayAllowance, TopicView
    from ravel.types.values import SyncProgress

_IMPORTED: Final = " (imported)"
_AUTHOR_WIDTH: Final = 24
_TEXT_WIDTH_MIN: Final = 24
"""Characters of a post's text that are shown before the names of its files."""
_MARK: Final = re.compile(r" \[[a-z2-7]+\]$")
_SIZE_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_TIME_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def person(name: str, user: str, width: int = 24) -> str:
    """Return a name, cut to a width, or the beginning of the id. The mark that tells look-alikes apart stays."""
    if not name:
        return user[:ID_WIDTH]
    found = _MARK.search(name)
    mark = found[0] if found else ""
    plain = name.removesuffix(mark)
    room = width - len(mark)
    return (plain if len(plain) <= room else plain[: max(room - 1, 1)] + "…") + mark


def author_of(item: Mapping[str, Any]) -> str:
    """Return the author to show: of imported or merged commits the one there, else the person whose device wrote it.

    An author that an importer names is marked, so that it cannot pass for a member's name.
    """
    imported = item.get("imported_author")
    if imported:
        return person(f"{imported}", "", _AUTHOR_WIDTH - len(_IMPORTED)) + _IMPORTED
    origin = item.get("origin")
    if origin:
        return person(origin["author_name"], origin["author"], _AUTHOR_WIDTH)
    return person(item["author_name"], item.get("person", item["author"]), _AUTHOR_WIDTH)


def author(item: Mapping[str, Any]) -> str:
    """Return the name of the user whose key an item names as its author."""
    return person(item["author_name"], item["author"])


def time_of(field: str) -> Any:  # noqa: ANN401  # a column's function
    """Return a function that gives a field's Unix seconds as a date, or "never"."""
    return lambda item: "never" if item[field] is None else moment(item[field])


def first_line(text: str | None, width: int) -> str:
    """Return the first line of a text, cut to a width, with `…` where something is left out."""
    line, _, more = (text or "").strip().partition("\n")
    line = f"{line.rstrip()} …" if more else line
    return line if len(line) <= width else line[: width - 1] + "…"


def check_text(text: str) -> None:
    """Refuse a post without a text, such as a variable of the shell that is empty. Raises ServiceError `bad_request`."""
    if not text.strip():
        raise ServiceError("bad_request", "the text is empty", "say what to write, in quotes")


def post_text(item: Mapping[str, Any], width: int) -> str:
    """Return the line that a timeline shows of a commit: its last edit, its reply, who deleted or hid it; or nothing."""
    for name, verb in (("edits", "edits"), ("deletes", "deletes")):
        if name in item:
            text = first_line(named_text(item), width) if name == "edits" else ""
            return first_line(f"({verb} {item[name][:ID_WIDTH]}){': ' if text else ''}{text}", width)
    reply = item.get("reply_to")
    before = f"re {answered(reply)}: " if reply else ""
    if item.get("deleted"):
        return f"{before}(deleted by its author)"
    if "hidden_by" in item:
        return f"{before}(hidden by {person(item['hidden_by_name'], item['hidden_by'])})"
    files = ", ".join(file_shown(file) for one in item.get("attachments", ()) for file in one["files"])
    behind = (" (edited)" if "edited_at" in item else "") + (f" [{files}]" if files else "")
    text = first_line(named_text(item), max(width - len(before) - len(behind), _TEXT_WIDTH_MIN))
    return first_line(f"{before}{text}{behind}", width) if text or files else ""


def file_shown(file: Mapping[str, Any]) -> str:
    """Return a file's name, with its size where that is known."""
    return file["name"] if file["size"] is None else f"{file['name']} ({size_text(file['size'])})"


def without_attached(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return commits without those that only add files of a post among them."""
    attached = {one["commit"] for item in items for one in item.get("attachments", ())}
    return [item for item in items if item["commit"] not in attached]


def named_text(item: Mapping[str, Any]) -> str:
    """Return a text in which people are called by their names."""
    text: str = item["text"] or ""
    for one in item.get("mentions", ()):
        text = text.replace(f"@{one['user']}", f"@{person(one['name'], one['user'])}")
    return text


def lack_said(item: Mapping[str, Any]) -> str:
    """Say why a commit's content cannot be shown; empty where it can."""
    lack = next((one for one in ("not_kept", "erased", "unreadable", "damaged") if item.get(one)), "")
    said = "not kept here" if lack == "not_kept" else lack
    return in_language(said) if is_terminal() else said


def answered(reply: Mapping[str, Any]) -> str:
    """Return the author, id and state of the post that a reply answers."""
    who = person(reply["author_name"], reply["author"], ID_WIDTH) if "author" in reply else ""
    state = "" if reply["state"] in ("shown", "erased", "not_kept") else f", {reply['state']}"
    return f"{who}{' ' if who else ''}[{reply['commit'][:ID_WIDTH]}{state}]"


def show_named(api: "Client", answer: "PeerBan | RelayAllowance") -> Outcome:
    """Show an answer about a peer under the user's name for it, or under a prefix of its id that commands accept."""
    called = peer_names(api).get(answer["peer"]) or id_text_shown(answer["peer"])
    return Outcome(answer, shown={**answer, "called": called})


def peer_names(api: "Client") -> dict[str, str]:
    """Map peer ids to the names that this user gave them."""
    return {one["user"]: one["name"] for one in api.list_petnames()["peers"]}


def with_branch_names(
    api: "Client", repo: str, items: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return items of a repo that name a `branch`, each with the branch's name; empty for one that is not here."""
    names = {one["branch"]: one["name"] for one in api.list_branches(repo)["branches"]} if items else {}
    return [{**one, "branch_name": names.get(one["branch"], "")} for one in items]


def topic_name(topic: "TopicView") -> str:
    """Return a topic's name for tables: the repo's name, and which part of it travels there."""
    return topic["name"] if topic["kind"] == "epoch" else f"{topic['name']} ({topic['kind']})"


def path_line(peer: "PeerView") -> str:
    """Return the path of a connection: the peer's address, or the relay between."""
    if peer["through"] is None:
        if peer["path"] == "punched":
            return f"{peer['address']} through both routers"
        is_shown = not peer["websocket"] or "://" in peer["address"]
        return peer["address"] if is_shown else f"{peer['address']} by WebSocket"
    return f"through relay {peer['through_name'] or peer['through']}"


def progress_line(progress: "SyncProgress") -> str:
    """Describe a transfer between nodes: "receiving, 25030 of 30001 commits, 5600 a second, 1 s left"."""
    total, rate, seconds = progress["total"], progress["rate"], progress["seconds_left"]
    parts = [
        progress["direction"],
        f"{progress['done']} of {'an unknown number of commits' if total is None else counted(total, 'commit')}",
        "" if rate is None else "standing still" if not rate else f"{rate:.0f} a second",
        "" if seconds is None else f"{duration_text(seconds)} left",
    ]
    return ", ".join(filter(None, parts))


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 500MiB or 5GiB. Raises ServiceError."""
    found = re.fullmatch(r"([0-9]{1,7})([KMGT]iB)", text)
    if found is None or int(found[1]) == 0:
        raise ServiceError("bad_request", f"{text!r} is not a size", "say 500MiB or 5GiB")
    return int(found[1]) * _SIZE_UNITS[found[2]]


def parse_duration(text: str) -> int:
    """Return the seconds of a time such as 30m, 12h or 7d. Raises ServiceError."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if found is None or int(found[1]) == 0:
        raise ServiceError("bad_request", f"{text!r} is not a time", "say 30m, 12h or 7d")
    return int(found[1]) * _TIME_UNITS[found[2]]


def spoken_duration(text: str) -> str:
    """Return a time such as 7d or 12h in words: "7 days", "12 hours". Raises ServiceError."""
    parse_duration(text)
    return counted(int(text[:-1]), {"s": "second", "m": "minute", "h": "hour", "d": "day"}[text[-1]])
