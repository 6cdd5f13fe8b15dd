"""A single commit as a terminal shows it: who wrote what, and whether it counts, in words. A pipe gets all fields."""

from typing import TYPE_CHECKING, Final

from node.cli.printing import ID_WIDTH, is_terminal, is_verbose, moment, print_fields, say_wrapped
from node.cli.wording import (
    answered,
    author_of,
    file_shown,
    first_line,
    lack_said,
    named_text,
    person,
    post_text,
)
from node.runtime.language import in_language
from ravel.characters import display_safe

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.commits import CommitItem, CommitView, VerdictView

_TEXT_WIDTH: Final = 72
_DECIDED_SHOWN_MAX: Final = 4
"""Commits that a verdict names: a member may hold many grants."""
_VERDICTS: Final = {
    "accepted": "It counts",
    "void": "It does not count",
    "pending": "It waits",
    "unread": "It cannot be read yet",
    "rejected": "It was refused",
}
"""Verdict -> the beginning of the sentence that has its reason."""
_KINDS: Final = {
    "branch-root": "the branch began",
    "checkpoint": "a checkpoint",
    "dict": "a table changed",
    "imported": "imported",
    "json": "a JSON document changed",
    "merge": "merged",
    "set": "a list changed",
    "snapshot": "compacted",
    "text": "a text changed",
}
"""Kind of a commit without a text -> what people read of it."""


class CommitPrinter:
    """Printer of a commit with what it says."""

    has_more = True

    def __call__(self, item: "CommitView") -> None:
        """Print it."""
        if not is_terminal() or is_verbose():
            print_fields(item.items())
            return
        if "kind" in item:
            _print_content(item)
        say_wrapped(_verdict(item))


class VerdictPrinter:
    """Printer of a verdict, and of what it rests on."""

    has_more = True

    def __call__(self, item: "VerdictView") -> None:
        """Print it."""
        if not is_terminal() or is_verbose():
            print_fields(item.items())
            return
        say_wrapped(_verdict(item))
        if item["by"]:
            named = ", ".join(one[:ID_WIDTH] for one in item["by"][:_DECIDED_SHOWN_MAX])
            named += ", …" if len(item["by"]) > _DECIDED_SHOWN_MAX else ""
            say_wrapped(f"Missing: {named}." if item["verdict"] == "pending" else f"Decided by: {named}.")
        if item["rule"]:
            say_wrapped(f"Rule: {item['rule']}.")
        who = person(item["author_name"], item["author"]) if "author" in item else ""
        print(display_safe(" · ".join(filter(None, (who, item["branch_name"], item["commit"][:ID_WIDTH])))))


def _verdict(item: "VerdictView") -> str:
    return f"{_VERDICTS.get(item['verdict'], item['verdict'])}: {item['reason']}."


def _print_content(item: "CommitView") -> None:
    """Print who wrote a commit, where and when, and all lines of what it says."""
    about = (author_of(item), item["branch_name"], moment(item["time"]), item["commit"][:ID_WIDTH])
    print(display_safe(" · ".join(about)))
    is_plain = bool(item["text"]) and not {"edits", "deletes"} & item.keys()
    if is_plain and "reply_to" in item:
        print(display_safe(f"  re {answered(item['reply_to'])}:"))
    said = named_text(item) if is_plain else post_text(item, _TEXT_WIDTH) or kind_line(item)
    for line in said.rstrip("\n").split("\n"):
        print(f"  {display_safe(line)}".rstrip())
    for one in item.get("attachments", ()) if is_plain else ():
        for file in one["files"]:
            print(display_safe(f"  {file_shown(file)}"))
    if "edited_at" in item:
        say_wrapped(f"Edited {moment(item['edited_at'])}.")


def kind_line(item: "CommitItem | CommitView") -> str:
    """Return the line of a commit that is no post: its kind, and why its content is not here, or what it names."""
    if lack := lack_said(item):
        return f"({item['kind']}, {lack})"
    named = ", ".join(item.get("files", ()))
    for said in (item.get("continues"), item.get("merged")):
        named = named or (f"{said['branch'][:12]} at {said['commits'][0][:12]}" if said else "")
    kind = _KINDS.get(item["kind"], item["kind"]) if is_terminal() else item["kind"]
    if is_terminal() and kind == "files" and not named:
        kind = "a file was removed"
    return first_line(f"({in_language(kind)}{': ' if named else ''}{named})", _TEXT_WIDTH)
