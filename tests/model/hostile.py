"""Changed nodes: everything malformed that their keys allow them to sign. Their commits are judged like all others."""

from collections.abc import Callable

from tests.model.authors import Node, heads, latest
from tests.model.commits import (
    ALL,
    NOBODY,
    OWNER,
    ROOT,
    SEEN,
    WRITE,
    Body,
    Branch,
    Commit,
    Grant,
    Hand,
    Init,
    Invite,
    Join,
    Open,
    Remove,
    Text,
    inits,
    key_of,
    number_of,
    writers_topic,
)
from tests.model.epochs import boxes_after, preferred
from tests.model.switches import SETTINGS
from tests.model.verdicts import adds_of
from tests.model.views import PUBLICATIONS, Given, Topic, published
from tests.model.views import number_of as publication_of

OLD = frozenset({1})  # the past of before everything


class Changed(Node):
    """A node that keeps no rule but those of cryptography: it signs with its own key, on topics whose seeds it has."""

    def forge(
        self,
        kind: str,
        epoch: int,
        body: Body,
        acks: frozenset[int],
        places: frozenset[int] = frozenset(),
        branch: int = ROOT,
        off: int = 0,
        is_marked: bool = True,
        by_writer: bool | None = None,
    ) -> int:
        """Publish a commit with these acks and places; `off` is added to the rank."""
        acks, places = _some(acks), _some(places)
        rank = 1 + max((ALL[a].rank for a in acks), default=-1) + off
        signs = self.signs_in(epoch) if by_writer is None else by_writer
        one = number_of(Commit(kind, self.user, epoch, signs, branch, acks, places, rank, body, is_marked))
        for number in published(one):
            if self.has_seed(PUBLICATIONS[number].topic):
                self.held |= {number}
        if by_writer and not self.has_seed(Topic("W", writers_topic(epoch))):
            self.held |= {publication_of(one, Topic("T", key_of(epoch)))}
        return one

    def has_seed(self, topic: Topic) -> bool:
        """Return True if the node can sign on a topic."""
        return topic.secret in (self.view.keys if topic.kind == "T" else self.view.secrets)

    def epochs(self) -> list[int]:
        """Return epochs whose inits came and whose keys are here, the last first."""
        now = self.view
        here = now.accepted | now.waiting | now.rejected
        return latest({e for e in inits(here) if key_of(e) in now.keys})

    def at(self) -> int:
        """Return the epoch that an honest node would write in, or the last that is here."""
        at = preferred(self.view.roots)
        return self.epochs()[0] if at is None or at not in self.epochs() else at

    def root_heads(self) -> frozenset[int]:
        """Return all root heads that were accepted."""
        return heads(self.view.roots)

    def branch(self) -> int | None:
        """Return the last branch."""
        return self.branches()[-1] if self.branches() else None

    def say(self, epoch: int, roots: frozenset[int], **flaws: bool | int) -> int:
        """Write a post on the last branch, or a note in the root branch where there is none."""
        first = self.branch()
        if first is None:
            return self.forge("note", epoch, Text(), roots, **flaws)  # type: ignore[arg-type]  # each flaw names a field of its own type
        acks = heads(frozenset(one for one in self.view.accepted if ALL[one].branch == first))
        return self.forge("post", epoch, Text(), acks, roots, first, **flaws)  # type: ignore[arg-type]  # each flaw names a field of its own type

    def seal(self, acks: frozenset[int] | None = None, **flaws: object) -> int:
        """Start an epoch with flaws, and write in it, with its init in the past and without."""
        acks = _some(self.root_heads() if acks is None else acks)
        seen = acks.union(*(SEEN[a] for a in acks))
        boxes, writers = boxes_after(seen)
        body = Init(boxes, writers, frozenset(inits(seen)))
        at = next((e for e in self.epochs() if e in seen), 0)
        one = self.forge("init", at, body._replace(**flaws), acks)  # type: ignore[arg-type]  # each flaw names a field of its own type
        if key_of(one) == one:
            self.given |= {Given("key", one)}
            self.held |= {publication_of(one, Topic("T", one))}
        if writers_topic(one) == one:
            self.given |= {Given("writers", one)}
        self.say(one, acks | {one})
        self.forge("note", one, Text(1), acks, by_writer=False)
        return one


def _some(commits: frozenset[int]) -> frozenset[int]:
    return frozenset(latest(commits)[: SETTINGS.heads_max])


# --- actions: each takes the node and what the step says besides ---

ACTIONS: dict[str, Callable[..., None]] = {}


def _action(function: Callable[..., None]) -> Callable[..., None]:
    """Register an action by its name."""
    ACTIONS[function.__name__[1:].replace("_", "-")] = function
    return function


@_action
def _init_wrong_box(node: Changed, *users: str) -> None:
    node.seal(wrong=frozenset(users))


@_action
def _init_wrong_writers_box(node: Changed, *users: str) -> None:
    node.seal(wrong_writers=frozenset(users))


@_action
def _init_closed(node: Changed) -> None:
    """Give the key of the epoch that the init is published in alone."""
    at = next((e for e in node.epochs() if e in node.view.roots), 0)
    node.seal(opens=frozenset({at}))


@_action
def _init_wrong_keys(node: Changed) -> None:
    node.seal(opens=frozenset(), wrong_keys=frozenset(inits(node.view.roots)))


@_action
def _init_key_again(node: Changed) -> None:
    node.seal(key=key_of(node.epochs()[0]))


@_action
def _init_key_old(node: Changed) -> None:
    node.seal(key=0)


@_action
def _init_key_of_nobody(node: Changed) -> None:
    node.seal(key=NOBODY)


@_action
def _init_topic_again(node: Changed) -> None:
    node.seal(topic=writers_topic(node.epochs()[-1]))


@_action
def _init_topic_of_nobody(node: Changed) -> None:
    node.seal(topic=NOBODY)


@_action
def _init_without_own(node: Changed) -> None:
    """Leave out the key of the epoch that the init is published in; the others open it."""
    at = next((e for e in node.epochs() if e in node.view.roots), 0)
    node.seal(opens=frozenset(inits(node.view.roots)) - {at})


@_action
def _hand_writers(node: Changed, user: str) -> None:
    node.forge("hand", node.epochs()[-1], Hand(node.at(), (user,), (user,)), node.root_heads())


@_action
def _init_without(node: Changed, *users: str) -> None:
    boxes, writers = boxes_after(node.view.roots)
    node.seal(
        boxes=tuple(u for u in boxes if u not in users), writers=tuple(u for u in writers if u not in users)
    )


@_action
def _init_with(node: Changed, *users: str) -> None:
    boxes, _ = boxes_after(node.view.roots)
    node.seal(boxes=tuple(sorted({*boxes, *users})))


@_action
def _init(node: Changed) -> None:
    node.seal()


@_action
def _init_writers(node: Changed, *users: str) -> None:
    _, writers = boxes_after(node.view.roots)
    node.seal(writers=tuple(sorted({*writers, *users})))


@_action
def _init_old(node: Changed) -> None:
    node.seal(OLD)


@_action
def _write(node: Changed) -> None:
    for epoch in node.epochs():
        node.say(epoch, node.root_heads())


@_action
def _write_without_init(node: Changed) -> None:
    node.say(node.epochs()[0], OLD)


@_action
def _rank(node: Changed) -> None:
    node.say(node.at(), node.root_heads(), off=5)


@_action
def _mark(node: Changed) -> None:
    node.say(node.at(), node.root_heads(), is_marked=False)


@_action
def _old_places(node: Changed) -> None:
    node.say(0, OLD)


@_action
def _old_branch_acks(node: Changed) -> None:
    """Ack what is new with places of before the add."""
    first = node.branch()
    for add in adds_of(first, node.view.roots) if first is not None else []:
        acks = heads(frozenset(one for one in node.view.accepted if ALL[one].branch == first))
        node.forge("post", ALL[add].epoch, Text(2), acks, frozenset({add}), first or 0)


@_action
def _other_branch(node: Changed) -> None:
    """Ack a commit of the last branch in a branch of one's own."""
    branches = node.branches()
    if len(branches) > 1:
        acks = heads(frozenset(o for o in node.view.accepted if ALL[o].branch == branches[-1]))
        node.forge("post", node.at(), Text(3), acks, node.root_heads(), branches[0])


@_action
def _implied(node: Changed) -> None:
    found = node.root_heads()
    node.forge("note", node.at(), Text(4), found.union(*(ALL[one].acks for one in found)))


@_action
def _words(node: Changed) -> None:
    """Name, as a feed link, a commit of the author's own in an epoch that the commit's does not open."""
    own = [one for one in latest(node.view.accepted) if ALL[one].author == node.user and one > 1]
    if own:
        node.forge("note", 0, Text(5, frozenset(own[:1])), OLD)


@_action
def _says_writer(node: Changed) -> None:
    """Leave, by a commit that says `by_writer` on T."""
    found = node.write_without_opening("remove", Remove(node.user, 0))
    if found is not None and not ALL[found].by_writer:
        commit = ALL[found]
        node.held -= published(found)
        node.forge(commit.kind, commit.epoch, commit.body, commit.acks, by_writer=True)


@_action
def _republish(node: Changed) -> None:
    """Put all that is here on every other topic that the node can sign on."""
    topics = [topic for topic in sorted(node.view.topics) if node.has_seed(topic)]
    for one in node.view.accepted:
        for topic in topics:
            node.held |= {publication_of(one, topic)}


@_action
def _hand_wrong(node: Changed, user: str) -> None:
    at = node.at()
    node.forge("hand", node.epochs()[-1], Hand(at, (user,), (), frozenset({user})), node.root_heads())


@_action
def _hand_stranger(node: Changed, user: str) -> None:
    node.forge("hand", node.epochs()[-1], Hand(node.at(), (user,)), node.root_heads())


@_action
def _hand_unknown(node: Changed, user: str) -> None:
    """Hand over an epoch whose init is left out of the past, and go on from there."""
    one = node.forge("hand", 0, Hand(node.epochs()[0], (user,)), OLD)
    node.forge("note", 0, Text(8), frozenset({one}))


@_action
def _open_wrong(node: Changed) -> None:
    closed = frozenset(inits(node.view.roots)) - {node.at()}
    node.forge("open", node.at(), Open(closed, closed), node.root_heads())


@_action
def _open_unknown(node: Changed) -> None:
    """Open, in the founding epoch, epochs whose inits are left out of the past."""
    node.forge("open", 0, Open(frozenset(node.epochs())), OLD)


@_action
def _leave_old(node: Changed, count: int = 1) -> None:
    for number in range(int(count)):
        node.forge("remove", 0, Remove(node.user, 0, frozenset({-1 - number})), OLD)


@_action
def _join_again(node: Changed) -> None:
    """Join by any invitation that is known, whatever was revoked since."""
    for one in sorted(node.view.roots):
        if ALL[one].kind == "invite":
            node.forge("join", ALL[one].epoch, Join(one), frozenset({one}))


@_action
def _join_back(node: Changed) -> None:
    """Join again, by an old invitation, with all that is known in the past."""
    for one in sorted(node.view.roots):
        if ALL[one].kind == "invite":
            node.forge("join", ALL[one].epoch, Join(one), node.root_heads())


@_action
def _grant_owner(node: Changed, user: str) -> None:
    node.forge("grant", node.at(), Grant(user, OWNER), node.root_heads())


@_action
def _invite_owner(node: Changed) -> None:
    node.forge("invite", node.at(), Invite(OWNER), node.root_heads())


@_action
def _approve_alone(node: Changed, user: str) -> None:
    """Remove a member without enough approvals."""
    node.forge("remove", node.at(), Remove(user, 0), node.root_heads())


@_action
def _second_root(node: Changed) -> None:
    """Write first commits that nothing pins, and a post on a branch whose add is not in the past."""
    first = node.forge("first", node.at(), Branch(9), frozenset(), node.root_heads(), -2)
    node.forge("post", node.at(), Text(6), frozenset({first}), node.root_heads(), first)


@_action
def _echo_only(node: Changed) -> None:
    """Start an epoch whose init is published on its own topic alone."""
    one = node.seal()
    node.held -= published(one)
    node.held |= {publication_of(one, Topic("T", key_of(one)))}


@_action
def _pin_hidden(node: Changed) -> None:
    """Pin a branch in a fork's epoch, and write on it in the founding one with places before the add."""
    first = node.forge("first", 0, Branch(8), frozenset(), OLD, -2)
    node.forge("add", node.at(), Branch(first), node.root_heads())
    node.forge("post", 0, Text(7), frozenset({first}), OLD, first)


@_action
def _demote_all(node: Changed) -> None:
    for user in ("F", "G", "A", "B", "U", "V", "W"):
        if user != node.user:
            node.forge("remove", node.at(), Remove(user, WRITE if user in "AB" else 0), node.root_heads())


def act(node: Changed, action: tuple[str, ...]) -> None:
    """Do one action of a changed node, if it holds any epoch."""
    if node.epochs():
        ACTIONS[action[0]](node, *action[1:])
