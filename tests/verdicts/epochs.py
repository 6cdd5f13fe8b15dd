"""The words of the rules E of membership-rules.md as functions over sets of operations.

An epoch is known by the id of its init.
"""

from .crypto import ZEROS
from .rules import (
    GRANTS,
    WRITE,
    concurrent,
    counts,
    foundings,
    invited,
    is_leave,
    is_move,
    leaves,
    members,
    permission,
)
from .views import remembered

MOST_BOXES = 8192
LATEST = 64


def epochs(view):
    """The inits of a set, the repo's included."""
    return [*foundings(view), *view.all("epoch-init3")]


@remembered
def published(view, epoch):
    """The operations that name an epoch as theirs."""
    return [commit for commit in map(view.graph.commits.get, view.ops) if commit.epoch == epoch]


@remembered
def opens(view, epoch):
    """All epochs that an epoch opens."""
    found = {epoch}
    waiting = [epoch]
    while waiting:
        one = waiting.pop()
        init = view.graph.commits[one]
        given = set(init.given or ())
        for op in view.all("epoch-open1"):
            if op.epoch == one:
                given.update(entry[0] for entry in op.body.epochs)
        for other in (given & view.ops) - found:
            found.add(other)
            waiting.append(other)
    return frozenset(found)


def boxed(view, epoch):
    """Who has a box in an epoch's init, in order, and who of these a writers' box."""
    graph = view.graph
    if epoch == graph.init:
        return [], []
    key = ("boxed", epoch)
    if key not in graph.answers:
        after = members(graph.before(epoch))
        users = sorted(after)[:MOST_BOXES]
        writers = [user for user in sorted(after) if after[user] >= WRITE][:MOST_BOXES]
        graph.answers[key] = users, writers
    return graph.answers[key]


def hand_overs(view, epoch):
    """The hand-overs of an epoch."""
    return [op for op in view.all("epoch-hand1") if op.body.epoch == epoch]


def writing_joins(view, epoch):
    """Who joined in an epoch by an invitation to write."""
    return {op.author for op in view.all("join1") if op.epoch == epoch and invited(view.graph, op) >= WRITE}


@remembered
def may_hold(view, epoch):
    """Who may hold an epoch."""
    users = set()
    for one in epochs(view):
        if epoch not in opens(view, one.id):
            continue
        users.add(one.author)
        users.update(boxed(view, one.id)[0])
        for op in hand_overs(view, one.id):
            users.update(entry[0] for entry in op.body.boxes)
        for op in published(view, one.id):
            users.add(op.author)
            if op.body.tag in GRANTS or is_move(op):
                users.add(op.body.user)
    return frozenset(users)


@remembered
def may_hold_writers(view, epoch):
    """Who may hold an epoch's writers' secret."""
    users = {view.graph.commits[epoch].author, *boxed(view, epoch)[1]} | writing_joins(view, epoch)
    for op in hand_overs(view, epoch):
        users.update(entry[0] for entry in op.body.boxes if entry[2] is not None)
    return frozenset(users)


def prekey_statement(stated, past):
    """Find the statement that all the others precede, or None."""
    for one in stated:
        if all(other.id in past[one.id] for other in stated if other.id != one.id):
            return one
    return None


def prekey(view, user):
    """The prekey of a member: the one that all its others precede. None: the form of its own key."""
    one = prekey_statement([op for op in view.all("prekey1") if op.author == user], view.graph.past)
    return None if one is None else one.body.key


def is_gone(view, op, user):
    """Whether a box of a user in an op is for a prekey that another of the user's follows, which an init's past has."""
    past = view.graph.past
    stated = [one for one in view.all("prekey1") if one.author == user]
    used = prekey_statement([one for one in stated if one.id in past[op.id]], past)
    return used is not None and any(
        used.id in past[later.id] and any(later.id in past[init.id] for init in epochs(view))
        for later in stated
    )


@remembered
def surely(view):
    """Who surely holds which epoch: pairs of epoch and user."""
    held = set()
    for one in epochs(view):
        held.add((one.id, one.author))
        held.update((one.id, op.author) for op in published(view, one.id))
        handed = {
            (entry[0], op.epoch)
            for op in hand_overs(view, one.id)
            for entry in op.body.boxes
            if not is_gone(view, op, entry[0])
        }
        before = sorted((op.rank, op.id) for op in epochs(view) if op.id in view.graph.past[one.id])[-LATEST:]
        users = {user for user, _ in handed}
        held.update(
            (one.id, user) for user in users if before and all((user, epoch) in handed for _, epoch in before)
        )
    size = -1
    while size != len(held):
        size = len(held)
        for one in epochs(view):
            for user in boxed(view, one.id)[0]:
                if (one.epoch, user) in held and not is_gone(view, one, user):
                    held.add((one.id, user))
            for op in hand_overs(view, one.id):
                for user in (entry[0] for entry in op.body.boxes):
                    if (op.epoch, user) in held and not is_gone(view, op, user):
                        held.add((one.id, user))
        for epoch, user in list(held):
            held.update((other, user) for other in opens(view, epoch))
    return frozenset(held)


def surely_holds(view, epoch, user):
    """Whether a user surely holds an epoch."""
    return (epoch, user) in surely(view)


@remembered
def counting_epochs(view):
    """The epochs that count."""
    return [one.id for one in epochs(view) if counts(view, one.id)]


@remembered
def tips(view):
    """The epochs that count and that no epoch that counts follows."""
    counting = counting_epochs(view)
    return [one for one in counting if not any(one in view.graph.past[other] for other in counting)]


def has_removals(view, epoch):
    """The first condition of clean: its past has every counting removal by another that ends writing."""
    return all(
        op.id in view.graph.past[epoch]
        for op in view.all("remove1")
        if not is_leave(op) and leaves(op) < WRITE and counts(view, op.id)
    )


def has_revocations(view, epoch):
    """The second: its past has every counting revocation that is beside a join by its invitation."""
    graph = view.graph
    joins = view.all("join1")
    return all(
        op.id in graph.past[epoch]
        for op in view.all("revoke1")
        if any(
            join.body.invitation == op.body.invitation and concurrent(graph, op.id, join.id) for join in joins
        )
        and counts(view, op.id)
    )


def held_by_members(view, epoch):
    """The third: all who may hold it are members."""
    return may_hold(view, epoch) <= members(view).keys()


def written_by_writers(view, epoch):
    """The fourth: all who may hold its writers' secret may write."""
    return all(permission(view, user) >= WRITE for user in may_hold_writers(view, epoch))


def knows_prekeys(view, epoch):
    """The fifth: its past has every member's prekey that is in the past of another init."""
    past = view.graph.past
    return all(
        op.id in past[epoch]
        for op in view.all("prekey1")
        if permission(view, op.author) and any(op.id in past[one.id] for one in epochs(view))
    )


@remembered
def clean(view):
    """The clean tips."""
    return [
        one
        for one in tips(view)
        if has_removals(view, one)
        and has_revocations(view, one)
        and held_by_members(view, one)
        and written_by_writers(view, one)
        and knows_prekeys(view, one)
    ]


def due(view):
    """Whether an epoch is due: no tip is clean."""
    return not clean(view)


@remembered
def written_in(view):
    """E8: the epoch that members write in, or None while one is due."""
    return min(clean(view), key=lambda one: (len(boxed(view, one)[0]), one), default=None)


def latest_held(view, user):
    """E10: the latest epoch (by rank, then id, of the init) that a user surely holds, or None."""
    commits = view.graph.commits
    held = [commits[epoch] for epoch, holder in surely(view) if holder == user and epoch != ZEROS]
    return max(held, key=lambda init: (init.rank, init.id)).id if held else None
