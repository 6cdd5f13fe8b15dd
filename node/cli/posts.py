"""How posts are printed: as their last edit, with what they answer, and who deleted or hid them."""

from collections.abc import Mapping
from typing import Any

from node.cli.people import ID_WIDTH, person
from node.cli.shared import first_line
from node.runtime.errors import ServiceError


def check_text(text: str) -> None:
    """Refuse a post without a text, such as a variable of the shell that is empty. Raises ServiceError `bad_request`."""
    if not text.strip():
        raise ServiceError("bad_request", "the text is empty", "say what to write, in quotes")


def post_text(item: Mapping[str, Any], width: int) -> str:
    """What a timeline shows of a commit in one line; empty where that is only its kind."""
    for name, verb in (("edits", "edits"), ("deletes", "deletes")):
        if name in item:
            text = first_line(named_text(item), width) if name == "edits" else ""
            return first_line(f"({verb} {item[name][:ID_WIDTH]}){': ' if text else ''}{text}", width)
    reply = item.get("reply_to")
    before = f"re {_answered(reply)}: " if reply else ""
    if item.get("deleted"):
        return f"{before}(deleted by its author)"
    if "hidden_by" in item:
        return f"{before}(hidden by {person(item['hidden_by_name'], item['hidden_by'])})"
    behind = " (edited)" if "edited_at" in item else ""
    text = first_line(named_text(item), max(width - len(before) - len(behind), 1))
    return f"{before}{text}{behind}" if text else ""


def named_text(item: Mapping[str, Any]) -> str:
    """A text in which people are called by their names."""
    text: str = item["text"] or ""
    for one in item.get("mentions", ()):
        text = text.replace(f"@{one['user']}", f"@{person(one['name'], one['user'])}")
    return text


def _answered(reply: Mapping[str, Any]) -> str:
    who = person(reply["author_name"], reply["author"], ID_WIDTH) if "author" in reply else ""
    state = "" if reply["state"] in ("shown", "erased") else f", {reply['state']}"
    return f"{who}{' ' if who else ''}[{reply['commit'][:ID_WIDTH]}{state}]"
