"""The rules M of membership-rules.md: what a commit may do, by its own past. Each returns codes."""

from . import crypto
from .epochs import boxed, due, epochs, opens, prekey
from .rules import (
    ADMIN,
    DEVICE_GRANTS,
    FOUNDINGS,
    MANAGE,
    OWNER,
    READ,
    WRITE,
    acting,
    by_council,
    council,
    counts,
    covering,
    enough,
    first_approvals,
    given_to_devices,
    held_by,
    holds,
    in_force,
    is_leave,
    is_of_device,
    is_to_take,
    leaves,
    members,
    passed_on,
    permission,
    removals_of,
    rights_of,
    senior,
    sufficing,
)


def faults(graph, commit, keys):
    """All codes by which V7 rejects a commit. `keys` has the keys of epochs that the judge holds."""
    if graph.is_root(commit):
        rule = ROOT.get(commit.body.tag, write)
    elif commit.said:
        rule = write
    else:
        rule = CONTENT.get(commit.body.tag, write)
    return rule(graph, graph.before(commit.id), commit, keys)


def needing(level):
    """Make the rule of what needs a permission and nothing else."""

    def rule(graph, before, commit, keys):
        held = permission(before, commit.author)
        if held >= level:
            return set()
        return {"not_permitted"} if held else {"unknown_author"}

    return rule


read, write, manage, admin, owner = map(needing, (READ, WRITE, MANAGE, ADMIN, OWNER))


def added(graph, before, branch):
    """Whether a branch was added, counting or not. The root branch counts as added."""
    return branch == graph.repo or any(op.body.branch == branch for op in before.all("branch-add2"))


def init(graph, before, commit, keys):
    """M1, and E2 as far as it is about the repo's init."""
    codes = set()
    body = commit.body
    if commit.acks or commit.author not in body.owners:
        codes.add("not_permitted")
    stated = [body.council] if body.tag == "init3" else []
    digest = crypto.repo_digest(graph.repo, body.name, body.owners, *stated)
    certified = crypto.verify(graph.repo, digest, body.certificate)
    number = len(set(body.owners))
    if any(2 * council <= number or council > number for council in stated):
        codes.add("bad_quorum")
    if not certified or not all(map(crypto.is_public_key, body.owners)):
        codes.add("bad_certificate")
    key = keys[commit.id]
    topic = key and crypto.unseal(key, b"topic", graph.repo, body.states[0], body.states[2])
    if topic is None or len(topic) != 32:
        codes.add("bad_epoch")
    return codes


def branch_add(graph, before, commit, keys):
    """M2 of adding a branch."""
    codes = manage(graph, before, commit, keys)
    if added(graph, before, commit.body.branch):
        codes.add("branch_exists")
    if commit.body.branch != commit.body.root[0]:
        codes.add("bad_branch")
    return codes


def known_branch(level):
    """M2 of links, M12 of offers: the branch was added before, and is not the root branch."""

    def rule(graph, before, commit, keys):
        codes = needing(level)(graph, before, commit, keys)
        branch = commit.body.branch
        if branch == graph.repo or not added(graph, before, branch):
            codes.add("bad_branch")
        return codes

    return rule


def invite(graph, before, commit, keys):
    """M3."""
    codes = admin(graph, before, commit, keys)
    if commit.body.permission > WRITE:
        codes.add("not_permitted")
    return codes


def join(graph, before, commit, keys):
    """M4."""
    invitation = graph.commits.get(commit.body.invitation)
    if invitation is None or invitation.id not in before.ops or invitation.body.tag != "invite1":
        return {"unknown_invitation"}
    codes = set()
    if not counts(before, invitation.id):
        codes.add("unknown_invitation")
    if any(op.body.invitation == invitation.id and counts(before, op.id) for op in before.all("revoke1")):
        codes.add("invitation_revoked")
    digest = crypto.invitation_digest(graph.repo, commit.author)
    if not crypto.verify(invitation.body.key, digest, commit.body.proof):
        codes.add("bad_proof")
    if commit.timestamp >= invitation.body.expires:
        codes.add("invitation_expired")
    users = {
        op.author
        for op in before.all("join1")
        if op.body.invitation == invitation.id and counts(before, op.id)
    }
    if commit.author not in users and len(users) >= invitation.body.uses:
        codes.add("invitation_used")
    if any(
        op.id not in graph.past[invitation.id] and (is_leave(op) or counts(before, op.id))
        for op in removals_of(before, commit.author)
    ):
        codes.add("not_permitted")
    return codes


def revoke(graph, before, commit, keys):
    """M8 of revocations. That there is such an invitation, the codes say that section 6 lists for M8."""
    codes = admin(graph, before, commit, keys)
    invitation = commit.body.invitation
    if invitation not in before.ops or graph.commits[invitation].body.tag != "invite1":
        codes.add("unknown_invitation")
    return codes


def grant(graph, before, commit, keys):
    """M6."""
    body = commit.body
    codes = needing(max(ADMIN, body.permission))(graph, before, commit, keys)
    return codes | adding_nothing(body, direct_rights(before, body.user))


def direct_rights(view, user):
    """The rights that a user holds by credentials that are no device grants."""
    commits = view.graph.commits
    return [one for one in rights_of(view, user) if commits[one[0]].body.tag not in DEVICE_GRANTS]


def adding_nothing(body, held):
    """M6 and M17: whether there is a user, who holds less by some rights."""
    codes = set()
    if not crypto.is_public_key(body.user):
        codes.add("bad_user")
    if any(level >= body.permission for _, level in held):
        codes.add("already_holds")
    return codes


def device_grant(graph, before, commit, keys):
    """M17. Of a recovery grant the author is the member in whose place friends make it."""
    user, level = commit.body.user, commit.body.permission
    author = acting(graph, commit)
    codes = set()
    held = permission(before, author)
    if held < level:
        codes.add("not_permitted" if held else "unknown_author")
    codes |= adding_nothing(commit.body, rights_of(before, user))
    if not any(right[1] >= level for right in direct_rights(before, author)):
        codes.add("not_permitted")
    given = given_to_devices(before, author)
    others = {graph.commits[one].body.user for one in given} - {user, author}
    holding = [one for one in others if any(by in given for by, _ in rights_of(before, one))]
    published = [op for op in before.all("device-grant1") if op.author == author]
    if len(holding) > 14 or (commit.body.tag == "device-grant1" and len(published) > 63):
        codes.add("too_many_devices")
    return codes


def move(graph, before, commit, keys):
    """M18."""
    codes = read(graph, before, commit, keys)
    passed, user = commit.body.credential, commit.body.user
    held = rights_of(before, commit.author)
    given = given_to_devices(before, commit.author)
    device = rights_of(before, user)
    may_pass = (
        any(credential == passed for credential, _ in held)
        and graph.commits[passed].body.tag not in DEVICE_GRANTS
        and len(passed_on(graph, passed)) <= 16  # moves and what they began with
    )
    is_device = user != commit.author and device and all(by in given for by, _ in device)
    return codes if may_pass and is_device else codes | {"bad_move"}


def friends(graph, before, commit, keys):
    """M19."""
    codes = read(graph, before, commit, keys)
    named, threshold = commit.body.friends, commit.body.threshold
    right = (
        len(named) <= 15
        and named == sorted(set(named))
        and all(map(crypto.is_public_key, named))
        and commit.author not in named
        and (2 * threshold > len(named) and threshold <= len(named) if named else threshold == 0)
    )
    return codes if right else codes | {"bad_recovery"}


def recovery(graph, before, commit, keys):
    """M20."""
    codes = read(graph, before, commit, keys)
    body = commit.body
    naming = graph.commits.get(body.friends) if body.friends in before.ops else None
    if naming is None or naming.body.tag != "recovery-friends1":
        return codes | {"bad_recovery"}
    codes |= device_grant(graph, before, commit, keys)
    signers = [friend for friend, _ in body.signatures]
    digest = crypto.recovery_digest(graph.repo, naming.id, body.user, body.permission)
    later = any(
        op.author == naming.author and naming.id in graph.past[op.id]
        for op in before.all("recovery-friends1")
    )
    used = any(
        (op.body.friends, op.body.user) == (naming.id, body.user) for op in before.all("recovery-grant1")
    )
    right = (
        len(signers) >= max(naming.body.threshold, 1)
        and signers == sorted(set(signers))
        and set(signers) <= set(naming.body.friends)
        and all(crypto.verify(friend, digest, signature) for friend, signature in body.signatures)
    )
    return codes if right and not later and not used else codes | {"bad_recovery"}


def remove(graph, before, commit, keys):
    """M7, and M13 of removals."""
    body = commit.body
    codes = set()
    branches = [branch for branch, _, _ in body.feeds]
    if len(set(branches)) != len(branches):
        codes.add("bad_feed_ends")
    if is_leave(commit):
        if permission(before, commit.author) <= leaves(commit):
            codes.add("nothing_to_remove")
        if not permission(before, commit.author):
            codes.add("unknown_author")
        return codes
    above = is_to_take(graph, commit.id)
    if not above:
        codes.add("nothing_to_remove")
    least = READ if is_of_device(graph, commit.id) else WRITE
    codes |= needing(least)(graph, before, commit, keys)
    if by_council(graph, commit.id):
        return codes
    rights = [
        right
        for right in sufficing(before, commit.id)
        if right[0] in {op.id for op in covering(before)} or holds(before, commit.author, right, commit.id)
    ]
    held = [right for right in rights if held_by(before, commit.id, right)]
    if rights and not held:
        codes.add("needs_quorum")
    elif not rights and "unknown_author" not in codes:
        codes.add("not_permitted")
    if (
        not all(any(senior(graph, by, right) for by in held or rights) for right in above)
        and "unknown_author" not in codes
    ):
        codes.add("not_permitted")
    if "not_permitted" in codes and council(before):
        codes.add("needs_quorum")
    return codes


def starting(graph, before, commit, keys):
    """M9, E2."""
    codes = needing(WRITE if due(before) else ADMIN)(graph, before, commit, keys)
    if not right_init(graph, before, commit, keys[commit.id]):
        codes.add("bad_epoch")
    return codes


def right_init(graph, before, commit, key):
    """E2: whether an init is what it has to be. `key` is that of the epoch that it starts."""
    users, writers = boxed(before, commit.id)
    if commit.boxes != b"".join(
        crypto.key_box(key, graph.repo, user, prekey(before, user)) for user in users
    ):
        return False
    if len(commit.writers_boxes) != 32 * len(writers):
        return False
    mark, _, sealed_topic = commit.body.states
    topic = crypto.unseal(key, b"topic", graph.repo, mark, sealed_topic)
    pairs = crypto.sealed_keys(key, graph.repo, mark, commit.keys)
    if topic is None or len(topic) != 32 or pairs is None:
        return False
    earlier = {op.id: op for op in epochs(before)}
    for epoch, secret in pairs:
        if epoch not in earlier or crypto.mark_of(secret, graph.repo) != earlier[epoch].body.states[0]:
            return False
    if commit.epoch not in {epoch for epoch, _ in pairs}:
        return False
    return all(op.body.states[0] != mark for op in earlier.values())


def handing(graph, before, commit, keys):
    """M10."""
    codes = write(graph, before, commit, keys)
    body = commit.body
    if body.epoch not in before.ops or not is_init(graph.commits[body.epoch]):
        return codes | {"bad_epoch"}
    states = graph.commits[body.epoch].body.states
    after = members(before)
    users = [entry[0] for entry in body.boxes]
    right = [body.mark, body.writers_mark] == states[:2] and users == sorted(set(users))
    for user, box, writers_box in body.boxes:
        if (
            user not in after
            or box != crypto.key_box(keys[body.epoch], graph.repo, user, prekey(before, user))
            or (writers_box is not None and after[user] < WRITE)
        ):
            right = False
    return codes if right else codes | {"bad_epoch"}


def is_init(commit):
    """Whether an operation starts an epoch."""
    return commit.body.tag in (*FOUNDINGS, "epoch-init3")


def opening(graph, before, commit, keys):
    """M11."""
    codes = write(graph, before, commit, keys)
    named = [epoch for epoch, _ in commit.body.epochs]
    if named != sorted(set(named)):
        codes.add("bad_epoch")
    for epoch, key in commit.body.epochs:
        if (
            epoch not in before.ops
            or not is_init(graph.commits[epoch])
            or crypto.mark_of(key, graph.repo) != graph.commits[epoch].body.states[0]
        ):
            codes.add("bad_epoch")
    return codes


def answer(graph, before, commit, keys):
    """M12 of answers."""
    offer = graph.commits.get(commit.body.offer)
    if offer is None or offer.id not in before.ops or offer.body.tag != "offer1":
        return admin(graph, before, commit, keys) | {"unknown_offer"}
    if offer.author == commit.author and not commit.body.accepts:
        return set()
    return admin(graph, before, commit, keys)


def quorum(graph, before, commit, keys):
    """M13 of naming a quorum."""
    codes = owner(graph, before, commit, keys)
    signers = commit.body.signers
    after = members(before)
    if (
        signers != sorted(set(signers))
        or commit.body.threshold > len(signers)
        or not all(map(after.get, signers))
    ):
        codes.add("bad_quorum")
    return codes


def approve(graph, before, commit, keys):
    """M14 of approvals."""
    codes = read(graph, before, commit, keys)
    proposal = commit.body.proposal
    tag = graph.commits[proposal].body.tag if proposal in before.ops else None
    if tag not in ("propose-removal1", "propose-checkpoint1"):
        codes.add("unknown_proposal")
    signing = [op.body.signers for op in in_force(before)]
    if tag == "propose-removal1" and council(before):
        signing.append(council(before)[1].keys())
    if not any(commit.author in signers for signers in signing):
        codes.add("not_permitted")
    return codes


def checkpoint(graph, before, commit, keys):
    """M13 of checkpoints."""
    codes = write(graph, before, commit, keys)
    proposal = graph.commits.get(commit.body.proposal)
    quorums = in_force(before)
    if proposal is None or proposal.id not in before.ops or proposal.body.tag != "propose-checkpoint1":
        return codes | {"unknown_proposal"}
    if not quorums:
        codes.add("unknown_proposal")
    if set(proposal.body.commits) != set(commit.acks) or proposal.body.branch != commit.of_branch:
        codes.add("bad_checkpoint")
    if not enough(quorums, first_approvals(before, proposal, None)):
        codes.add("needs_quorum")
    return codes


def stating(graph, before, commit, keys):
    """M16."""
    codes = read(graph, before, commit, keys)
    mine = [op for op in before.all("prekey1") if op.author == commit.author]
    unused = [op for op in mine if not any(op.id in graph.past[one.id] for one in epochs(before))]
    if not crypto.is_prekey(commit.body.key) or len(unused) > 3:
        codes.add("bad_prekey")
    return codes


ROOT = {
    "init2": init,
    "init3": init,
    "branch-add2": branch_add,
    "branch-edit1": manage,
    "tag1": manage,
    "branch-link1": known_branch(WRITE),
    "invite1": invite,
    "join1": join,
    "grant2": grant,
    "device-grant1": device_grant,
    "move1": move,
    "recovery-friends1": friends,
    "recovery-grant1": recovery,
    "remove1": remove,
    "revoke1": revoke,
    "adopt1": admin,
    "epoch-init3": starting,
    "epoch-open1": opening,
    "epoch-hand1": handing,
    "prekey1": stating,
    "offer1": known_branch(READ),
    "answer1": answer,
    "quorum1": quorum,
    "approve1": approve,
}
CONTENT = {"compaction1": manage, "checkpoint1": checkpoint}


def is_closed(graph, commit):
    """V12: whether the commit's epoch leaves an epoch of its past closed, by this past and the commit."""
    before = graph.before(commit.id)
    asked = commit.epoch
    view = before
    if graph.is_root(commit):
        view = graph.view(graph.past[commit.id] | {commit.id})
        if commit.body.tag == "epoch-init3" or commit.id == graph.init:
            asked = commit.id
        elif commit.body.tag == "epoch-hand1":
            asked = commit.body.epoch
    if asked not in view.ops:
        return True
    started = {op.id for op in epochs(before)}
    return not started <= opens(view, asked)
