"""The rules R, Q and N of membership-rules.md as functions over sets of operations.

A *view* is a closed set of root branch commits: an operation's past, or all that is here. A *right* is a
pair of a credential (the id of an operation) and one permission. Each question is answered as the page words
it; answers are remembered for each view, since the page asks the same ones again and again.
"""

from .views import remembered

NONE, READ, WRITE, MANAGE, ADMIN, OWNER, COUNCIL = range(7)
FOUNDINGS = ("init2", "init3")
DEVICE_GRANTS = ("device-grant1", "recovery-grant1")
GRANTS = ("grant2", *DEVICE_GRANTS)
NAMES = {READ: "read", WRITE: "write", MANAGE: "manage", ADMIN: "admin", OWNER: "owner"}


# Words.


def is_removal(commit):
    """Whether this is a removal, of whomever."""
    return commit.body.tag == "remove1"


def is_move(commit):
    """Return True if this passes a place on."""
    return commit.body.tag == "move1"


def is_leave(commit):
    """Return True if this is a removal of oneself: a move is one too."""
    return is_move(commit) or (is_removal(commit) and commit.author == commit.body.user)


def leaves(commit):
    """The permission that a removal leaves."""
    return NONE if is_move(commit) else commit.body.keeps or NONE


def removals_of(view, user):
    """The removals of a user, moves among them."""
    removals = [op for op in view.all("remove1") if op.body.user == user]
    return removals + [op for op in view.all("move1") if op.author == user]


def acting(graph, commit):
    """The author that M, Q and R mean: of a recovery grant the member in whose place friends make it."""
    if commit.body.tag == "recovery-grant1" and commit.body.friends in graph.commits:
        return graph.commits[commit.body.friends].author
    return commit.author


def is_withdrawal(graph, commit):
    """Whether this takes back an offer of its own author."""
    if commit.body.tag != "answer1" or commit.body.accepts or commit.body.offer not in graph.past[commit.id]:
        return False
    offer = graph.commits[commit.body.offer]
    return offer.body.tag == "offer1" and offer.author == commit.author


def concurrent(graph, one, other):
    """Whether neither is in the other's past."""
    return one != other and one not in graph.past[other] and other not in graph.past[one]


def invited(graph, join):
    """The permission that the invitation of a join gives."""
    return graph.commits[join.body.invitation].body.permission


NEEDS = {
    "branch-add2": MANAGE,
    "branch-edit1": MANAGE,
    "tag1": MANAGE,
    "invite1": ADMIN,
    "revoke1": ADMIN,
    "adopt1": ADMIN,
    "offer1": READ,
    "quorum1": OWNER,
    "approve1": READ,
    "recovery-friends1": READ,
}


def needs(graph, commit):
    """What an operation needs: the permission that M names for it; 0 where it needs nothing."""
    tag = commit.body.tag
    if is_move(commit):
        return READ
    if tag in (*FOUNDINGS, "join1") or is_leave(commit) or is_withdrawal(graph, commit):
        return NONE
    if tag == "answer1":
        return ADMIN
    if tag == "remove1":
        return READ if is_of_device(graph, commit.id) else ADMIN
    if tag in DEVICE_GRANTS:
        return commit.body.permission
    if tag == "grant2":
        return max(ADMIN, commit.body.permission)
    if tag == "epoch-init3":
        from .epochs import due  # E rests on R, and what an init needs rests on E of a smaller set

        return WRITE if due(graph.before(commit.id)) else ADMIN
    return NEEDS.get(tag, WRITE)


def foundings(view):
    """The repo's init, if it is in a set."""
    return [op for tag in FOUNDINGS for op in view.all(tag)]


def grants(view):
    """The grants of a set, device grants among them."""
    return [op for tag in GRANTS for op in view.all(tag)]


@remembered
def credentials(view, user):
    """The credentials that give this user permissions, each with the highest that it gives."""
    found = [(op.id, OWNER) for op in foundings(view) if user in op.body.owners]
    found += [(op.id, op.body.permission) for op in grants(view) if op.body.user == user]
    found += [(op.id, invited(view.graph, op)) for op in view.all("join1") if op.author == user]
    found += [(op.id, most_of(view.graph, op.id)) for op in view.all("move1") if op.body.user == user]
    return found


def passed_on(graph, credential):
    """The credentials from one back to that with which its chain of moves begins, which is last."""
    chain = [credential]
    while is_move(graph.commits[chain[-1]]):
        chain.append(graph.commits[chain[-1]].body.credential)
    return chain


def most_of(graph, credential):
    """The highest permission that a credential gives: a move gives what the one does that it passes on."""
    op = graph.commits[passed_on(graph, credential)[-1]]
    if op.body.tag in FOUNDINGS:
        return OWNER
    return invited(graph, op) if op.body.tag == "join1" else op.body.permission


def origin(graph, right):
    """The credential of which a right is, before all moves."""
    return passed_on(graph, right[0])[-1]


def senior(graph, one, other):
    """R1: whether the right `one` is senior to the right `other`."""
    if one[1] != other[1]:
        return one[1] > other[1]
    return origin(graph, one) in graph.past[origin(graph, other)]


@remembered
def forerunners(view, user):
    """The user, and the authors of the moves by which places came to it, counting or not."""
    authors = {user}
    size = 0
    while size < len(authors):
        size = len(authors)
        authors |= {op.author for op in view.all("move1") if op.body.user in authors}
    return frozenset(authors)


def given_to_devices(view, user, before=None):
    """A user's own device grants: those of its forerunners too, which are looked for in `before`, if that is told."""
    authors = forerunners(before or view, user)
    devices = [op for tag in DEVICE_GRANTS for op in view.all(tag)]
    return {op.id for op in devices if acting(view.graph, op) in authors}


def is_to_take(graph, removal):
    """The rights that a removal of another is to take: leaves of its member are looked past where nothing else is."""
    commit, before = graph.commits[removal], graph.before(removal)
    for past_leaves in (False, True):
        held = rights_of(before, commit.body.user, past_leaves)
        above = [right for right in held if right[1] > leaves(commit)]
        if above:
            return above
    return []


def is_of_device(graph, removal):
    """Return True if a removal is a device removal: all that it is to take is by its author's own device grants."""
    key = ("of device", removal)
    if key not in graph.answers:
        commit, before = graph.commits[removal], graph.before(removal)
        given = given_to_devices(before, commit.author)
        above = is_to_take(graph, removal)
        graph.answers[key] = (
            bool(above)
            and not is_leave(commit)
            and not by_council(graph, removal)
            and all(one in given for one, _ in above)
        )
    return graph.answers[key]


# Q: quorums.


@remembered
def in_force(view):
    """Q1: the quorums that count and that no counting quorum follows."""
    counting = [op for op in view.all("quorum1") if counts(view, op.id)]
    past = view.graph.past
    return [op for op in counting if not any(op.id in past[other.id] for other in counting)]


def covering(view):
    """The quorums in force that cover removals."""
    return [op for op in in_force(view) if op.body.removals]


def used_up(view, proposal):
    """Q3: whether another's removal of the member has this proposal in its past, counting or not."""
    user = proposal.body.user
    return any(
        op.body.user == user
        and op.author != user
        and proposal.id in view.graph.past[op.id]
        and not is_of_device(view.graph, op.id)
        for op in view.all("remove1")
    )


def enough(quorums, approvals):
    """Q2: whether by each quorum enough of its signers are authors of these approvals."""
    authors = {op.author for op in approvals}
    return all(len(authors & set(quorum.body.signers)) >= quorum.body.threshold for quorum in quorums)


def first_approvals(view, proposal, above):
    """Of each author the first approval of a proposal in canonical order that counts."""
    chosen = {}
    for op in view.all("approve1"):
        if op.body.proposal == proposal.id and op.author not in chosen and counts(view, op.id, above):
            chosen[op.author] = op
    return list(chosen.values())


def rests_on(graph, removal, right):
    """The approvals on which a removal rests as held by this right; None where there are too few.

    The removal's own past decides, so that its id fixes them.
    """
    key = ("rests on", removal, right)
    if key not in graph.answers:
        graph.answers[key] = _rests_on(graph, removal, right)
    return graph.answers[key]


def _rests_on(graph, removal, right):
    before = graph.before(removal)
    quorums = covering(before)
    for proposal in proposals_of(before, graph.commits[removal].body):
        approvals = first_approvals(before, proposal, right)
        if enough(quorums, approvals):
            return approvals
    return None


def proposals_of(view, removal):
    """The proposals of just this removal that are not used up, in canonical order."""
    asked = (removal.user, removal.keeps)
    return [
        op
        for op in view.all("propose-removal1")
        if (op.body.user, op.body.keeps) == asked and not used_up(view, op)
    ]


@remembered
def council(view):
    """Q4: for how many founders the council signs, and who may after a set for which; None without a council."""
    graph = view.graph
    for op in view.all("init3"):
        signers = {user: {user} for user in op.body.owners if holds(view, user, (op.id, OWNER))}
        for move in view.all("move1"):
            chain = passed_on(graph, move.id)
            if chain[-1] == op.id and holds(view, move.body.user, (move.id, OWNER)):
                signers.setdefault(move.body.user, set()).add(graph.commits[chain[-2]].author)
        return op.body.council, signers
    return None


def signed_for(view, signers, proposal):
    """Q4: the founders of the council for whom somebody approved of a proposal."""
    authors = {op.author for op in view.all("approve1") if op.body.proposal == proposal.id}
    return {founder for author in authors for founder in signers.get(author, ())}


def by_council(graph, removal):
    """Q4: whether a removal of another is the council's, by its own past."""
    key = ("by council", removal)
    if key not in graph.answers:
        before = graph.before(removal)
        number, signers = council(before) or (1, {})
        graph.answers[key] = any(
            len(signed_for(before, signers, proposal)) >= number
            for proposal in proposals_of(before, graph.commits[removal].body)
        )
    return graph.answers[key]


def approved(view, removal, right):
    """R6: whether enough of a removal's approvals count, by what acts by rights senior to `right`."""
    quorums = covering(view.graph.before(removal))
    if not quorums:
        return True
    approvals = rests_on(view.graph, removal, right)
    return approvals is not None and enough(quorums, [op for op in approvals if counts(view, op.id, right)])


# R: what counts, and who holds what.


def sufficing(view, op):
    """The rights that suffice for an operation."""
    graph = view.graph
    commit = graph.commits[op]
    if is_removal(commit) and not is_leave(commit) and by_council(graph, op):
        return [(graph.init, COUNCIL)]
    need = needs(graph, commit)
    past = graph.past[op]
    rights = [
        (credential, permission)
        for credential, top in credentials(view, acting(graph, commit))
        if credential in past and (not is_move(commit) or credential == commit.body.credential)
        for permission in range(max(need, READ), top + 1)
    ]
    if is_removal(commit) and not is_leave(commit) and not is_of_device(graph, op):
        rights += [(quorum.id, OWNER) for quorum in covering(graph.before(op))]
    return rights


@remembered
def held_by(view, op, right):
    """R2, R6: whether an operation is held by a right that suffices for it."""
    graph = view.graph
    commit = graph.commits[op]
    if right[1] == COUNCIL:
        return True
    if graph.commits[right[0]].body.tag == "quorum1":
        if not counts(view, right[0]):  # no removal takes a quorum's right
            return False
    elif not holds(view, commit.author, right, op):
        return False
    if not is_removal(commit) or is_leave(commit) or is_of_device(graph, op):
        return True
    return approved(view, op, right)


def counts(view, op, above=None):
    """R2: whether an operation counts; with `above`, by what acts by rights senior to that right."""
    return _counts(view, op, above)


@remembered
def _counts(view, op, above):
    graph = view.graph
    commit = graph.commits[op]
    if commit.body.tag == "join1":
        if not counts(view, commit.body.invitation, above):
            return False
        return not any(
            other.body.invitation == commit.body.invitation
            and concurrent(graph, other.id, op)
            and acts(view, other.id, above)
            for other in view.all("revoke1")
        )
    if needs(graph, commit) == NONE:
        return True
    if is_removal(commit):
        return any(held_by(view, op, right) for right in sufficing(view, op))
    return any(holds(view, acting(graph, commit), right, op, above) for right in sufficing(view, op))


def acts(view, op, above):
    """Whether a removal or revocation counts, and does so by a right senior to `above`."""
    graph = view.graph
    return any(
        (above is None or senior(graph, right, above)) and held_by(view, op, right)
        for right in sufficing(view, op)
    )


def holds(view, user, right, op=None, above=None, past_leaves=False):
    """R3: whether a member holds a right for an operation; without one, after all of the set.

    With `past_leaves`, whether the member would if no leave of the member took anything.
    """
    return _holds(view, user, right, op, above, past_leaves)


@remembered
def _holds(view, user, right, op, above, past_leaves):
    graph = view.graph
    credential = right[0]
    if op is not None and credential not in graph.past[op]:
        return False
    if not stands(view, right, above):
        return False
    return not any(
        takes(view, removal, right, op, above)
        for removal in removals_of(view, user)
        if not (past_leaves and is_leave(removal))
    )


def stands(view, right, above):
    """R3: whether a right's credential counts, and who passed the right on by a move held it for that."""
    move = view.graph.commits[right[0]]
    if not is_move(move):
        return counts(view, right[0], above)
    # That the same right was held implies that the move counts, and asks no lower right.
    return holds(view, move.author, (move.body.credential, right[1]), move.id, above)


def takes(view, removal, right, op, above):
    """R4, R5: whether a removal takes a right of the removed member from an operation."""
    graph = view.graph
    if right[1] <= leaves(removal) or removal.id in graph.past[right[0]]:
        return False
    if is_leave(removal):
        return op is None or removal.id in graph.past[op]
    if op is not None and (op in graph.past[removal.id] or names(view, removal.id, op)):
        return False
    if is_of_device(graph, removal.id) and right[0] not in given_to_devices(
        view, removal.author, graph.before(removal.id)
    ):
        return False
    return any(
        senior(graph, by, right)
        and (above is None or senior(graph, by, above))
        and held_by(view, removal.id, by)
        for by in sufficing(view, removal.id)
    )


def rights_of(view, user, past_leaves=False):
    """All rights that a user holds after a set, or with `past_leaves` would without its own leaves."""
    return [
        (credential, level)
        for credential, top in credentials(view, user)
        for level in range(READ, top + 1)
        if holds(view, user, (credential, level), past_leaves=past_leaves)
    ]


def permission(view, user):
    """The permission that a user has after all operations of the set; 0 for who is no member."""
    return _permission(view, user)


@remembered
def _permission(view, user):
    best = NONE
    for credential, top in credentials(view, user):
        for level in range(top, best, -1):
            if holds(view, user, (credential, level)):
                best = level
                break
    return best


@remembered
def members(view):
    """All members after the set, with their permissions."""
    users = {op.body.user for op in grants(view)} | {op.author for op in view.all("join1")}
    for op in foundings(view):
        users.update(op.body.owners)
    found = {user: permission(view, user) for user in users}
    return {user: level for user, level in found.items() if level}


# N: what is void.


@remembered
def names(view, removal, commit):
    """N2: whether an end in the removal's `feeds` names a content commit."""
    graph = view.graph
    one = graph.commits[commit]
    if graph.is_root(one):
        return False
    body = graph.commits[removal].body
    if one.author != body.user:
        return False
    return any(commit in named_by_end(graph, body.user, *end) for end in body.feeds)


def named_by_end(graph, user, branch, sequence, last):
    """The accepted commits that one end names. A ledger sets `accepted_content` to what is accepted."""
    of_feed = {
        commit.id: commit
        for commit in graph.accepted_content
        if commit.author == user and commit.of_branch == branch
    }
    if last in of_feed and of_feed[last].sequence == sequence:
        named = set()
        at = of_feed[last]
        while at is not None:
            named.add(at.id)
            before = of_feed.get(at.feed_previous)
            at = before if before is not None and before.sequence == at.sequence - 1 else None
        return named
    below = [commit for commit in of_feed.values() if commit.sequence <= sequence]
    if len({commit.sequence for commit in below}) < len(below):
        return set()
    return {commit.id for commit in below}


def is_void(view, commit):
    """N1 to N4: whether an accepted content commit is void."""
    graph = view.graph
    one = graph.commits[commit]
    tag = None if one.said else one.body.tag
    if tag == "checkpoint1" and not checkpoint_stands(view, one):
        return True
    if any(
        commit in op.body.commits and op.body.branch == one.of_branch and counts(view, op.id)
        for op in view.all("adopt1")
    ):
        return False
    need = MANAGE if tag == "compaction1" else WRITE
    return not any(
        holds(view, one.author, (credential, level), commit)
        for credential, top in credentials(view, one.author)
        for level in range(need, top + 1)
    )


def checkpoint_stands(view, commit):
    """N4: whether enough approvals in a checkpoint's past count."""
    before = view.graph.before(commit.id)
    proposal = view.graph.commits[commit.body.proposal]
    approvals = [
        op for op in before.all("approve1") if op.body.proposal == proposal.id and counts(view, op.id)
    ]
    return enough(in_force(before), approvals)
