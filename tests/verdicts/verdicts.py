"""The rules V of protocol.md section 6: which opened commits are accepted, rejected or pending."""

from . import crypto, membership, statements
from .epochs import clean, counting_epochs, due, tips, written_in
from .rules import NAMES, is_void, members
from .views import View


class Ledger:
    """The commits that a node has opened, and what it says of each.

    `key_of` gives the key of an epoch that the node holds, or None. Ledgers may share a graph: what it
    remembers are functions of commits and their pasts.
    """

    def __init__(self, graph, key_of):
        self.graph = graph
        self.key_of = key_of
        self.commits = {}
        self.state = {}
        self.bad = {}  # codes of commits that were rejected before the rules
        self.added_branches = set()

    def offer(self, commit, code=None):
        """Take in a commit that was opened; with a code, one that is rejected already. Settle what waits."""
        self.commits[commit.id] = commit
        if code:
            self.bad[commit.id] = code
            self.state[commit.id] = "rejected"
        else:
            self.state[commit.id] = "pending"

    def settle(self):
        """Judge what waits until nothing changes; return whether anything did."""
        any_change = False
        changed = True
        while changed:
            changed = False
            for one in [one for one, state in self.state.items() if state == "pending"]:
                commit = self.commits[one]
                if self.must_wait(commit):
                    continue
                state, _ = self.assess(commit)
                if state != "pending":
                    self.state[one] = state
                    changed = any_change = True
                    if (
                        state == "accepted"
                        and commit.body.tag == "branch-add2"
                        and self.graph.is_root(commit)
                    ):
                        self.added_branches.add(commit.body.branch)
        return any_change

    def must_wait(self, commit):
        """Whether there is nothing to judge: causes are missing, none is rejected, the header is right."""
        waits = False
        for cause in self.causes(commit):
            state = self.state.get(cause)
            if state == "rejected":
                return False
            if state != "accepted":
                waits = True
        if waits and commit.header is None:
            commit.header = header_faults(self.graph, commit)
        return waits and not commit.header

    def causes(self, commit):
        """The acks of a commit, and outside the root branch what its place names."""
        if commit.place is None or self.graph.is_root(commit):
            return commit.acks
        return commit.acks + commit.place[1]

    def codes(self, one):
        """All codes by which a rejected commit may be reported."""
        if one in self.bad:
            return {self.bad[one]}
        return self.assess(self.commits[one])[1]

    def assess(self, commit):
        """What becomes of a commit by what is known now: a state and codes."""
        graph = self.graph
        root = graph.is_root(commit)
        if commit.header is None:
            commit.header = header_faults(graph, commit)
        codes = set(commit.header)
        causes = self.causes(commit)
        if any(self.state.get(cause) == "rejected" for cause in causes):
            codes.add("rejected_cause")
        if any(self.state.get(cause) != "accepted" for cause in causes):
            return ("rejected", codes) if codes else ("pending", codes)
        if "bad_group_place" in codes:
            return "rejected", codes
        known = graph.answers
        if ("order", commit.id) not in known:
            known["order", commit.id] = self.order_codes(commit, root)
        more, can_go_on = known["order", commit.id]
        codes |= more
        if not can_go_on:
            return "rejected", codes
        waits = self.waits(commit, root)
        if not waits:
            codes |= self.rights(commit)
        if codes:
            return "rejected", codes
        return ("pending" if waits else "accepted"), codes

    def order_codes(self, commit, root):
        """V6, V10, V2 and V11, once all causes are accepted; and whether a past can be told from them."""
        graph = self.graph
        codes = self.order_faults(commit, root)
        if "ack_of_other_branch" in codes or "bad_group_place" in codes:
            return codes, False
        graph.add(commit)
        if not root and commit.acks and not membership.added(graph, graph.before(commit.id), commit.branch):
            codes.add("unknown_branch")
        if commit.id != graph.init and not self.is_epoch(commit.epoch, graph.past[commit.id]):
            codes.add("unknown_epoch")
        return codes, True

    def is_epoch(self, epoch, past):
        """Whether an epoch was started in a past."""
        return epoch in past and membership.is_init(self.commits[epoch])

    def order_faults(self, commit, root):
        """V6 and V10, and what V6 says of places."""
        graph = self.graph
        codes = set()
        acks = [self.commits[ack] for ack in commit.acks]
        if any(ack.of_branch != commit.of_branch for ack in acks):
            codes.add("ack_of_other_branch")
        if any(one.id in other.acks for one in acks for other in acks):
            codes.add("implied_ack")
        if commit.rank != 1 + max((ack.rank for ack in acks), default=-1):
            codes.add("bad_rank")
        if not root:
            previous = commit.place[1]
            if not all(graph.is_root(self.commits[one]) for one in previous):
                return codes | {"bad_group_place"}
            seen = graph.closure(previous)
            if not all(one in seen for ack in acks if ack.place for one in ack.place[1]):
                codes.add("bad_group_place")
        return codes

    def waits(self, commit, root):
        """V2 of first commits, and E3."""
        if not root and not commit.acks and commit.id not in self.added_branches:
            return True
        # A second founding starts nothing: it waits for no key, and M1 rejects it.
        if root and (commit.body.tag == "epoch-init3" or commit.id == self.graph.init):
            key = self.key_of(commit.id)
            states = getattr(commit.body, "states", None)
            return key is None or (states and crypto.mark_of(key, self.graph.repo) != states[0])
        return False

    def rights(self, commit):
        """V7, V8 and V12, which rest on the commit and its past alone."""
        known = self.graph.answers
        key = ("rights", commit.id)
        if key not in known:
            before = self.graph.before(commit.id)
            keys = {one: self.key_of(one) for one in before.ops if membership.is_init(self.commits[one])}
            if self.graph.is_root(commit) and membership.is_init(commit):
                keys[commit.id] = self.key_of(commit.id)
                # The keys that an init gives are known to who judges it.
                commit.given = commit.given or given_keys(self.graph, commit, keys[commit.id])
            codes = set(membership.faults(self.graph, commit, keys))
            if membership.is_closed(self.graph, commit):
                codes.add("closed_epoch")
            known[key] = codes
        return set(known[key])

    # What follows from all accepted commits.

    def accepted(self, root):
        """The accepted commits of the root branch, or all others."""
        return [
            commit
            for one, commit in self.commits.items()
            if self.state[one] == "accepted" and self.graph.is_root(commit) == root
        ]

    def results(self):
        """Say everything of section `expect` that follows from the commits."""
        content = self.accepted(False)
        self.graph.accepted_content = content
        view = View(self.graph, frozenset(commit.id for commit in self.accepted(True)))
        void = {commit.id for commit in content if is_void(view, commit.id)}
        commits = {}
        for one, state in self.state.items():
            entry = {"is": "void" if one in void else state}
            if state == "rejected":
                entry["codes"] = sorted(self.codes(one))
            commits[one.hex()] = entry
        accepted = counting_epochs(view)
        held = [commit.id for commit in self.accepted(True) if membership.is_init(commit)]
        checkpoints = statements.checkpoints(view)
        return {
            **({"checkpoints": checkpoints} if checkpoints else {}),
            "commits": dict(sorted(commits.items())),
            "members": {user.hex(): NAMES[level] for user, level in sorted(members(view).items())},
            "epochs": {
                "counting": listed(accepted),
                "tips": listed(tips(view)),
                "clean": listed(clean(view)),
                "held": listed(held),
                "written_in": None if due(view) else written_in(view).hex(),
            },
            "branches": self.branches(void),
        }

    def branches(self, void):
        """The timelines of all branches of which a commit is accepted."""
        found = {}
        for commit in self.accepted(True) + self.accepted(False):
            found.setdefault(commit.of_branch, []).append(commit)
        entries = {}
        for branch, commits in sorted(found.items()):
            ordered = timeline(self.graph, [commit for commit in commits if commit.id not in void])
            digest = crypto.digest(b"".join(ordered))
            entries[branch.hex()] = {"timeline": [one.hex() for one in ordered], "digest": digest.hex()}
        return entries


def listed(ids):
    """Ids as text, in order."""
    return sorted(one.hex() for one in ids)


def header_faults(graph, commit):
    """V2, V3 and V8: what the commit alone shows."""
    codes = set()
    root = graph.is_root(commit)
    first = commit.id == graph.init if root else commit.says_first
    if first == bool(commit.acks):
        codes.add("second_root")
    if not commit.said:
        body = commit.body
        named = body if body.tag == "files1" else body.carried if body.tag == "carried1" else None
        if (
            named is not None
            and named.tag == "files1"
            and (len(named.added) != len(commit.files) or not (commit.files or commit.nfiles))
        ):
            codes.add("bad_files")
    if root:
        if commit.place is not None:
            codes.add("bad_group_place")
    elif commit.place is None or commit.place[0] != graph.init or not commit.place[1]:
        codes.add("bad_group_place")
    return codes


def given_keys(graph, commit, key):
    """The keys that an init seals under the key of its epoch, by epoch."""
    if commit.body.tag != "epoch-init3":
        return {}
    return dict(crypto.sealed_keys(key, graph.repo, commit.body.states[0], commit.keys) or ())


def timeline(graph, commits):
    """Commits that are not void in canonical order: by checkpoints passed, rank and id."""
    checkpoints = {}
    for commit in commits:
        if not graph.is_root(commit) and not commit.said and commit.body.tag == "checkpoint1":
            checkpoints[frozenset(commit.acks)] = commit

    # Checkpoints of the same heads have one past, so each of them stands for all.
    def passed(commit):
        return sum(
            1
            for heads, one in checkpoints.items()
            if commit.id not in graph.branch_past[one.id]
            and not (is_checkpoint(commit) and frozenset(commit.acks) == heads)
        )

    def is_checkpoint(commit):
        return not commit.said and commit.body.tag == "checkpoint1"

    return [
        commit.id
        for commit in sorted(commits, key=lambda one: (passed(one) if checkpoints else 0, one.rank, one.id))
    ]
