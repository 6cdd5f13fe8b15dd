"""Commits with their pasts, and closed sets of operations, which remember what was asked of them."""


class Graph:
    """Commits by id with their pasts. What is here is not yet accepted: views say which set is meant."""

    def __init__(self, repo, init):
        self.repo = repo
        self.init = init
        self.commits = {}
        self.past = {}  # root branch commits in the past: of a content commit those that its place follows
        self.branch_past = {}  # of content commits: those of its branch in its past
        self.views = {}
        self.answers = {}

    def is_root(self, commit):
        """Return True if a commit is of the root branch."""
        return commit.branch == self.repo

    def closure(self, ids):
        """These root branch commits with all in their past."""
        past = set(ids)
        for one in ids:
            past |= self.past[one]
        return frozenset(past)

    def add(self, commit):
        """Take in a commit whose causes are all here."""
        if commit.id in self.past:
            return
        if self.is_root(commit):
            past = self.closure(commit.acks)
        else:
            past = self.closure(commit.place[1])
            around = set(commit.acks)
            for ack in commit.acks:
                around |= self.branch_past[ack]
            self.branch_past[commit.id] = frozenset(around)
        self.commits[commit.id] = commit
        self.past[commit.id] = past

    def view(self, ops):
        """The view of a closed set."""
        found = self.views.get(ops)
        if found is None:
            found = self.views[ops] = View(self, ops)
        return found

    def before(self, op):
        """The view of an operation's past."""
        return self.view(self.past[op])


class View:
    """A closed set of operations, sorted by what they are."""

    def __init__(self, graph, ops):
        self.graph = graph
        self.ops = ops
        self.memo = {}
        self.by_tag = by_tag = {}
        commits = graph.commits
        for op in ops:
            by_tag.setdefault(commits[op].body.tag, []).append(commits[op])
        for found in by_tag.values():
            found.sort(key=lambda commit: (commit.rank, commit.id))

    def all(self, tag):
        """The operations of a kind, in canonical order."""
        return self.by_tag.get(tag, ())


def remembered(question):
    """Make a function of a view and plain values remember its answers in the view."""
    name = question.__name__

    def ask(view, *values):
        key = (name, *values)
        memo = view.memo
        if key not in memo:
            memo[key] = question(view, *values)
        return memo[key]

    ask.__doc__ = question.__doc__
    ask.__name__ = name
    return ask
