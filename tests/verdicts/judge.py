"""What one node concludes from a history: which publications it can open, which keys it comes to hold."""

import base64

from . import bodies, crypto
from .codec import Refused
from .crypto import ZEROS
from .formats import Commit, Publication, hide, topic_of
from .rules import FOUNDINGS
from .verdicts import Ledger
from .views import Graph

OWN, WRITERS = "own", "writers"
GIVERS = (*FOUNDINGS, "epoch-init3", "epoch-open1", "epoch-hand1")


class Opener:
    """Opens the publications of a history, each once for each key."""

    def __init__(self, history):
        self.repo = bytes.fromhex(history["repo"])
        self.init = bytes.fromhex(history["init"])
        self.seed = bytes.fromhex(history["user_seed"])
        self.prekeys = [bytes.fromhex(one) for one in history.get("prekeys", ())]
        self.link = [tuple(map(bytes.fromhex, pair)) for pair in history["keys"]]
        self.data = [base64.b64decode(text) for text in history["publications"]]
        self.user = crypto.public(self.seed)
        self.graph = Graph(self.repo, self.init)
        self.commits = {}
        self.openings = {}
        self.publications = []
        self.topics = []
        for data in self.data:
            try:
                publication = Publication(data)
            except Refused:
                publication = None
            self.publications.append(publication)
            self.topics.append(publication.topic if publication else topic_of(data))

    def open(self, index, epoch, key, kind):
        """Open a publication as one of an epoch: `dropped`, `opened`, `unread` or a code, and the commit."""
        asked = (index, epoch, key, kind)
        if asked not in self.openings:
            publication = self.publications[index]
            try:
                if publication is None or not crypto.verify(
                    publication.topic, publication.digest, publication.signature
                ):
                    raise Refused("bad_topic_signature")
                self.openings[asked] = self._open(publication, epoch, key, kind)
            except Refused:
                self.openings[asked] = "dropped", None
        return self.openings[asked]

    def _open(self, publication, epoch, key, kind):
        head = publication.blocks[0]
        block_key = hide(crypto.read_key(key), publication.topic, head.id, publication.hidden)
        named_key = key
        if head.id == epoch and epoch != self.init:
            # E6: the keys that the init seals come first, since one of them is needed to check the init.
            named_key = self._through_keys(publication, head.open(block_key), key)
        secret = crypto.convergence(named_key)
        plain = head.open(block_key, secret)
        try:
            commit = self.commits.get(head.id) or Commit(head, plain)
        except Refused as refused:
            if str(refused) == "unknown_version":
                return "unread", head
            return "bad_commit", head
        self.commits[head.id] = commit
        if commit.branch == self.repo:
            commit.said = None
        if epoch not in (commit.id, commit.epoch) or (commit.epoch == ZEROS) != (commit.id == self.init):
            raise Refused("other_epoch")
        if commit.id == self.init:
            mark = crypto.branch_mark(key, self.repo)
        elif commit.says_first:
            mark = bytes(8)
        else:
            mark = crypto.branch_mark(named_key, commit.branch)
        if commit.mark != mark:
            return "bad_mark", commit
        code = self._read_body(publication, commit, secret)
        if code:
            return code, commit
        if not crypto.verify(commit.author, commit.digest, commit.signature):
            return "bad_signature", commit
        # V1: an init that came by the epoch that it starts belongs on that epoch's own topic.
        if (commit.by_writer if epoch != commit.id else False) != (kind == WRITERS):
            raise Refused("other_epoch")
        return "opened", commit

    def _through_keys(self, publication, plain, key):
        """E6: the key of the epoch that an init names, from the keys that it seals."""
        commit = Commit(publication.blocks[0], plain)
        blocks = {block.id: block for block in publication.blocks}
        if commit.reference[0] not in blocks:
            raise Refused("missing_body")
        body = bodies.read(blocks[commit.reference[0]].object(commit.reference[1]))
        if body.tag != "epoch-init3" or commit.branch != self.repo:
            raise Refused("wrong_key")
        if body.keys[0] not in blocks:
            raise Refused("missing_body")
        sealed = blocks[body.keys[0]].object(body.keys[1])
        for epoch, named_key in crypto.sealed_keys(key, self.repo, body.states[0], sealed) or ():
            if epoch == commit.epoch:
                return named_key
        raise Refused("wrong_key")

    def _read_body(self, publication, commit, secret):
        """Read the body and what an init names. Return a code; refuse what is to be dropped."""
        behind = publication.blocks[1:]
        blocks = {block.id: block for block in behind}
        if commit.said:
            there = [publication.body_id] if publication.bare else [block.id for block in behind]
            if there != [commit.reference[0]]:
                raise Refused("surplus_blocks" if len(there) > 1 else "missing_body")
            commit.body = bodies.Body(commit.said)
            return None
        if publication.bare:
            raise Refused("bare")
        if commit.reference[0] not in blocks:
            raise Refused("missing_body")
        body = None
        try:
            body = bodies.read(blocks[commit.reference[0]].object(commit.reference[1], secret))
        except Refused:
            if len(behind) > 1:
                # What an init names cannot be told where the body cannot be read.
                return "bad_body"
        parts = []
        if body and body.tag == "epoch-init3" and commit.branch == self.repo:
            parts = [body.boxes, body.writers_boxes, body.keys]
        wanted = [commit.reference[0]] + [part[0] for part in parts]
        if not set(wanted) <= blocks.keys():
            raise Refused("missing_body")
        if len(behind) != len(set(wanted)):
            raise Refused("surplus_blocks")
        if body is None:
            return "bad_body"
        commit.body = body
        if parts:
            try:
                commit.boxes, commit.writers_boxes, commit.keys = (
                    blocks[part].object(part_key, secret) for part, part_key in parts
                )
            except Refused:
                return "bad_body"
        return None


class Node:
    """What a node comes to by all publications of a history, in whatever order they come.

    Keys are collected from all that opens, before it is judged, so neither they nor the verdicts depend on an order.
    """

    def __init__(self, opener):
        self.opener = opener
        self.repo = opener.repo
        self.keys = {}  # epoch: all keys that are said to be its own
        self.marks = {}  # epoch: the mark that its init states
        for epoch, key in opener.link:
            self.keys.setdefault(epoch, set()).add(key)
        self.ledger = Ledger(opener.graph, self.key_of)
        self.unread = set()
        self.settle()

    def right_keys(self, epoch):
        """The keys of an epoch that give its mark; all of them while its init is not here."""
        keys = sorted(self.keys.get(epoch, ()))
        if epoch in self.marks:
            return [key for key in keys if crypto.mark_of(key, self.repo) == self.marks[epoch]]
        return keys

    def key_of(self, epoch):
        """The key by which an init is judged, if it is held."""
        return next(iter(self.right_keys(epoch)), None)

    def followed(self):
        """All topics that the node follows, each with the epochs, keys and kinds that it may be of."""
        topics = {}
        for epoch in self.keys:
            for key in self.right_keys(epoch):
                topics.setdefault(crypto.own_topic(key, self.repo), []).append((epoch, key, OWN))
                if epoch in self.marks and self.ledger.state.get(epoch) == "accepted":
                    mark, _, sealed = self.ledger.commits[epoch].body.states
                    topic = crypto.unseal(key, b"topic", self.repo, mark, sealed)
                    topics.setdefault(topic, []).append((epoch, key, WRITERS))
        return topics

    def settle(self):
        """Open, judge and take keys until nothing changes."""
        before = None
        while before != (before := self.followed()):
            found, self.unread = self.open_all(before)
            if not self.ledger.commits.keys() <= found.keys():
                # A key has turned out wrong, and what it alone opens is not judged.
                self.ledger = Ledger(self.opener.graph, self.key_of)
            for one, (commit, code) in found.items():
                if one not in self.ledger.commits:
                    self.ledger.offer(commit, code)
                if code is None and commit.branch == self.repo and commit.body.tag in GIVERS:
                    self.take_keys(commit)
            self.ledger.settle()

    def open_all(self, topics):
        """Open what can be opened: commits with the code by which each is rejected at once, and unread ones."""
        found, unread = {}, set()
        for index, topic in enumerate(self.opener.topics):
            for epoch, key, kind in topics.get(topic, ()):
                outcome, commit = self.opener.open(index, epoch, key, kind)
                if outcome == "unread":
                    unread.add(commit.id)
                elif outcome != "dropped":
                    found.setdefault(commit.id, (commit, None if outcome == "opened" else outcome))
        return found, unread

    def take_keys(self, commit):
        """Take the keys that a commit gives, whatever becomes of it; E7."""
        body, held = commit.body, {}
        if body.tag == "epoch-open1":
            held = body.epochs
        elif body.tag == "epoch-hand1":
            boxes = [box for user, box, _ in body.boxes if user == self.opener.user]
            held = [(body.epoch, key) for key in self.unboxed(body.mark, boxes)]
        elif body.tag in FOUNDINGS:
            self.marks[commit.id] = body.states[0]
        else:
            mark = self.marks[commit.id] = body.states[0]
            boxes = [commit.boxes[at : at + 32] for at in range(0, len(commit.boxes) - 31, 32)]
            keys = self.right_keys(commit.id) or self.unboxed(mark, boxes)
            held = [(commit.id, key) for key in keys]
            for key in keys:
                held += crypto.sealed_keys(key, self.repo, mark, commit.keys) or ()
        for epoch, key in held:
            self.keys.setdefault(epoch, set()).add(key)

    def unboxed(self, mark, boxes):
        """The keys that this user takes out of boxes and that give a mark."""
        private = [None, *self.opener.prekeys]
        keys = [crypto.open_box(self.opener.seed, mark, box, one) for box in boxes for one in private]
        return [key for key in keys if key and crypto.mark_of(key, self.repo) == mark]

    def dropped(self):
        """How many publications are dropped."""
        topics, opener = self.followed(), self.opener
        return sum(
            topic in topics and all(opener.open(index, *asked)[0] == "dropped" for asked in topics[topic])
            for index, topic in enumerate(opener.topics)
        )

    def results(self):
        """What the node concludes, as `expect` has it."""
        results = self.ledger.results()
        commits = {**results.pop("commits"), **{one.hex(): {"is": "pending"} for one in self.unread}}
        return {"commits": dict(sorted(commits.items())), "dropped": self.dropped(), **results}


def judge(history):
    """What the node of a history concludes."""
    return Node(Opener(history)).results()
