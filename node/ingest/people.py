"""Names of people in each repo: this user's petnames, else the names they state; and look-alikes among them.

Who states no name in a repo is shown by the one that they state in another: in a branch that was offered, and in a copy of a
repo, most authors are no members, and a key is the same person everywhere.

Petnames stay in the node's folder (`node.home.people_file`); what members state comes with the root branch. What is here
is replaced whole and never changed in place, so readers need no lock.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from unicodedata import normalize

from node.ingest.membership_facts import NO_FACTS, MembershipFacts, Moved, Persons, Stated, StatedName
from node.runtime.errors import ServiceError
from node.runtime.look_alikes import skeletons
from protocol.formats.text import id_text
from protocol.ids import AnyId, Id, RepoId, UserId

SHORT_ID_LENGTH: Final = 8
"""Characters of an id that stand beside a name at least, where two look alike."""
_LIKE_AN_ID: Final = re.compile(r"[a-z2-7]{12,}")
"""A name of this form could pass for the id by which a user without a name is shown."""
_CANDIDATES_SHOWN_MAX: Final = 8
knows_other_repos: Final = ContextVar("knows_other_repos", default=True)
"""False while a caller is served who may not read other repos: names from these would reveal them."""
_EVERYBODY_MAX: Final = 16_384
"""People whose names are looked for in all repos: as many skeletons are remembered (`node.runtime.look_alikes`)."""


@dataclass(frozen=True, slots=True)
class PersonName:
    """Name by which a user is shown: `text` is the name, and the beginning of the id where others look alike."""

    text: str
    name: str
    is_petname: bool
    is_like_another: bool


_NONE: Final[Mapping[UserId, PersonName]] = MappingProxyType({})


class People:
    """The names of all repos of a node."""

    def __init__(self) -> None:
        self._petnames: Mapping[AnyId, str] = {}
        self._peer_names: Mapping[AnyId, str] = {}
        self._facts: Mapping[RepoId, MembershipFacts] = {}
        self._shown: dict[RepoId, Mapping[UserId, PersonName]] = {}
        self._everybody: tuple[Mapping[UserId, PersonName], Persons] | None = None
        """Names of people across all repos, and the persons of devices; None until they are asked for."""
        self._forms: dict[RepoId, Mapping[tuple[int, str], UserId]] = {}
        """Forms of the names that are shown in a repo, each with one of those who have it."""

    @property
    def petnames(self) -> Mapping[AnyId, str]:
        """Return this user's names for others, by id."""
        return self._petnames

    @property
    def peer_names(self) -> Mapping[AnyId, str]:
        """Return this user's names for nodes, by id. A node is no user: no name of one stands for the other."""
        return self._peer_names

    def set_petnames(self, petnames: Mapping[AnyId, str], peer_names: Mapping[AnyId, str]) -> None:
        """Call users and nodes so from now on."""
        self._petnames, self._peer_names, self._shown = petnames, peer_names, {}
        self._everybody, self._forms = None, {}

    def set_facts(self, facts: Mapping[RepoId, MembershipFacts], changed: Collection[RepoId]) -> None:
        """Replace the facts of all repos; only some of them have changed."""
        before, self._facts = self._facts, facts
        names = ((facts.get(one, NO_FACTS), before.get(one, NO_FACTS)) for one in changed)
        if any(
            (now.stated, now.persons, now.moved) != (old.stated, old.persons, old.moved) for now, old in names
        ):
            self._everybody = None
        self._shown = {repo_id: shown for repo_id, shown in self._shown.items() if repo_id not in changed}
        self._forms = {repo_id: forms for repo_id, forms in self._forms.items() if repo_id not in changed}

    def stated(self, repo_id: RepoId) -> Stated:
        """Return what members of a repo state of themselves."""
        return self._facts.get(repo_id, NO_FACTS).stated

    def has_moved(self, repo_id: RepoId, user: UserId) -> bool:
        """Return True if a user's place in a repo passed to another key of the same person. Costs O(1)."""
        return user in self._facts.get(repo_id, NO_FACTS).moved

    def of(self, repo_id: RepoId) -> Mapping[UserId, PersonName]:
        """Return how the users of a repo who have a name are shown."""
        shown = self._shown.get(repo_id)
        if shown is None:
            # Another thread may replace the table meanwhile. The entry then goes with the old one, and is made again.
            table = self._shown
            facts = self._facts.get(repo_id, NO_FACTS)
            shown = _show(self._petnames, facts.stated, facts.persons, facts.moved)
            table[repo_id] = shown
        return shown

    def name(self, repo_id: RepoId, user: UserId) -> str:
        """Return how a user is shown in a repo; empty where only the id is known.

        A member who takes the name back has none, whatever stands elsewhere. A name from elsewhere has the beginning of the
        id where it looks like one of the repo, whatever that one's owner is called in other repos.
        """
        found = self.of(repo_id).get(user)
        if found is not None or user in self.stated(repo_id) or not knows_other_repos.get():
            return "" if found is None else found.text
        names, persons = self._find_everybody()
        found = names.get(user)
        if found is None:
            return ""
        if not found.is_like_another:
            forms, person = self._find_forms(repo_id), persons.get(user, user)
            alike = map(forms.get, enumerate(skeletons(found.name)))
            if any(one is not None and persons.get(one, one) != person for one in alike):
                return f"{found.name} [{id_text(user)[:SHORT_ID_LENGTH]}]"
        return found.text

    def _find_forms(self, repo_id: RepoId) -> Mapping[tuple[int, str], UserId]:
        table = self._forms
        found = table.get(repo_id)
        if found is None:
            shown = self.of(repo_id).items()
            found = {form: user for user, one in shown for form in enumerate(skeletons(one.name))}
            table[repo_id] = found
        return found

    def _find_everybody(self) -> tuple[Mapping[UserId, PersonName], Persons]:
        """Find how people are shown by the last name that each states anywhere. Costs O(members of all repos), kept."""
        found = self._everybody
        if found is None:
            stated: dict[UserId, StatedName] = {}
            persons: dict[UserId, UserId] = {}
            moved: dict[UserId, tuple[UserId, int]] = {}
            for facts in self._facts.values():
                persons |= facts.persons
                moved |= facts.moved
                for user, said in facts.stated.items():
                    known = stated.get(user)
                    if (known is None and len(stated) < _EVERYBODY_MAX) or (
                        known is not None and known.stated_at < said.stated_at
                    ):
                        stated[user] = said
            self._everybody = found = _show(self._petnames, stated, persons, moved), persons
        return found

    def petname(self, raw: Id) -> str:
        """Return this user's name for a user; empty if there is none."""
        return self._petnames.get(AnyId(raw), "")

    def person_petname(self, repo_id: RepoId, user: UserId) -> str:
        """Return this user's name for a user, else for a key from which the user's place came; empty if there is none."""
        facts = self._facts.get(repo_id, NO_FACTS)
        keys = [user, *(old for old in facts.moved if facts.persons.get(old) == user)]
        return next(filter(None, map(self.petname, keys)), "")

    def heir(self, repo_id: RepoId, user: UserId) -> UserId | None:
        """Return the first device to which a user's place in a repo passed; None if it passed none on."""
        facts = self._facts.get(repo_id, NO_FACTS)
        return facts.persons.get(user) if user in facts.moved else None

    def device_name(self, repo_id: RepoId, device: UserId) -> str:
        """Return a device's own name, which tells it from others of its person; else its short id."""
        said = self.stated(repo_id).get(device)
        return self.petname(device) or (said and said.name) or id_text(device)[:SHORT_ID_LENGTH]

    def peer_name(self, raw: Id) -> str:
        """Return this user's name for a node; empty if there is none."""
        return self._peer_names.get(AnyId(raw), "")

    def find(self, repo_id: RepoId, text: str, users: Iterable[UserId]) -> UserId | None:
        """Find the user of a repo who has this name or one that looks the same; return None if there is nobody.

        A petname goes before names that people state. A person with several devices is found by the first. Raises
        ServiceError `ambiguous`, which lists the candidates.
        """
        names, persons = self.of(repo_id), self._facts.get(repo_id, NO_FACTS).persons
        text = normalize("NFC", text)
        wanted = {text, re.sub(r" \[[a-z2-7]+\]$", "", text)}
        forms = [skeletons(one) for one in wanted]
        exact: set[UserId] = set()
        petnamed: set[UserId] = set()
        stated: set[UserId] = set()
        for user in users:
            person = persons.get(user, user)
            known = names.get(user)
            if known is None:
                continue
            if known.is_like_another and known.text == text:
                exact.add(person)
            if any(_is_like(skeletons(known.name), form) for form in forms):
                (petnamed if known.is_petname else stated).add(person)
        found = exact or petnamed or stated
        if len(found) > 1:
            ordered = sorted(found)
            listed = [
                f"{names[one].name} [{id_text(one)[: _distinct_length(ordered)]}]"
                for one in ordered
                if one in names
            ]
            more = (
                f", and {len(listed) - _CANDIDATES_SHOWN_MAX} more"
                if len(listed) > _CANDIDATES_SHOWN_MAX
                else ""
            )
            raise ServiceError(
                "ambiguous",
                f"more than one person fits {text!r}: {', '.join(listed[:_CANDIDATES_SHOWN_MAX])}{more}",
                "give the id, or the beginning of it",
            )
        return next(iter(found), None)


def _show(
    petnames: Mapping[AnyId, str], stated: Stated, persons: Persons, moved: Moved
) -> Mapping[UserId, PersonName]:
    """Map each user with a name to how it is shown. Devices of one person have the person's name.

    That is the name which a device stated, where the place passed to it, only if it states one later.
    """
    if not petnames and not stated:
        return _NONE
    called: dict[UserId, tuple[str, bool]] = {}
    for user, said in stated.items():
        if said.name is not None:
            called[user] = said.name, False
    for raw, name in petnames.items():
        called[UserId(raw)] = name, True
    for old, (heir, moved_at) in moved.items():
        own, before = called.get(heir), called.get(old)
        is_later = heir in stated and stated[heir].stated_at > moved_at
        if before is not None and (before[1] or not is_later) and not (own is not None and own[1]):
            called[heir] = before
    for device, person in persons.items():
        own, of_person = called.get(device), called.get(person)
        if of_person is not None and not (own is not None and own[1] and not of_person[1]):
            called[device] = of_person
        elif own is not None and of_person is None:
            called[person] = own
    alike = _find_alike(called, persons)
    return {
        user: PersonName(
            f"{name} [{id_text(user)[: alike[user]]}]" if user in alike else name,
            name,
            is_petname,
            user in alike,
        )
        for user, (name, is_petname) in called.items()
    }


def _find_alike(called: Mapping[UserId, tuple[str, bool]], persons: Persons) -> dict[UserId, int]:
    """Users whose names look like another person's, or like an id, and how much of their ids tells them apart."""
    groups: defaultdict[tuple[int, str], set[UserId]] = defaultdict(set)
    found: dict[UserId, int] = {}
    for user, (name, _) in called.items():
        for way, form in enumerate(skeletons(name)):
            groups[way, form].add(user)
        if _LIKE_AN_ID.fullmatch(name):
            found[user] = SHORT_ID_LENGTH
    for users in groups.values():
        if len({persons.get(user, user) for user in users}) > 1:
            length = _distinct_length(sorted(users))
            for user in users:
                found[user] = max(found.get(user, 0), length)
    return found


def _distinct_length(users: list[UserId]) -> int:
    """Count the characters that tell ids apart, SHORT_ID_LENGTH at least: others can make keys whose ids begin alike."""
    texts = [id_text(user) for user in users]
    length = SHORT_ID_LENGTH
    while len({text[:length] for text in texts}) < len(set(texts)):
        length += 1
    return length


def _is_like(first: tuple[str, str], second: tuple[str, str]) -> bool:
    return first[0] == second[0] or first[1] == second[1]
