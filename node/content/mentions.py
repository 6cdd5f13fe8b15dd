"""Replaces the names of people in a text by their ids, so that each reader sees the name that he knows.

Only what a user has asked for is changed: an app's text stays as it is.
"""

import re
from typing import Final

from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.formats.text import ID_TEXT, id_text
from protocol.limits.users import MENTIONS_MAX
from storage.repos.repos import Repo

_NAMED: Final = re.compile(r"(?<![\w@./+-])@(?:\[([^\[\]\n]+)\]|(\w[^\s\[\]@]*))")
"""`@[Ann from work]` or `@Ann`, and no address of mail."""
_BEHIND: Final = ".,;:!?)}'\"…"
"""What follows a name in a sentence, and is no part of it unless a name has it."""


def resolve_mentions(replica: Replica, repo: Repo, text: str) -> str:
    """Replace each `@NAME` of a member by `@` and the id; a word in no brackets that is no member's stays.

    Raises ServiceError: `not_found` for a name in brackets that is none's, `ambiguous`, and `too_large` for more than
    MENTIONS_MAX different words, since each is compared with the names of all members.
    """
    words = dict.fromkeys(match[1] or match[2] for match in _NAMED.finditer(text))
    if not words:
        return text
    if len(words) > MENTIONS_MAX:
        raise ServiceError(
            "too_large",
            f"the text has {len(words)} different words after an @, and at most {MENTIONS_MAX} are looked up",
            "write it as it is: --plain",
        )
    members = list(replica.members(repo))

    def find(match: re.Match[str]) -> str:
        bracketed, word = match[1], match[2]
        if bracketed is not None:
            user = replica.people.find(repo.repo_id, bracketed.strip(), members)
            if user is None:
                raise ServiceError(
                    "not_found",
                    f"no member is called {bracketed.strip()!r}",
                    "`ravel member list REPO` shows names",
                )
            return f"@{id_text(user)}"
        plain = word.rstrip(_BEHIND)
        for name in dict.fromkeys((word, plain)):
            if ID_TEXT.fullmatch(name):
                break
            user = replica.people.find(repo.repo_id, name, members) if name else None
            if user is not None:
                return f"@{id_text(user)}{word[len(name) :]}"
        return match[0]

    return _NAMED.sub(find, text)
