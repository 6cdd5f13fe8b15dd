"""A story: users who write commits into one repo, from which histories are made."""

import base64

from . import bodies, crypto, statements
from .codec import Refused, encode
from .crypto import ZEROS
from .epochs import prekey
from .formats import Block, Commit, lipmaa, make_bare, make_block, make_commit, make_publication
from .judge import judge
from .rules import WRITE, members, permission
from .verdicts import Ledger
from .views import Graph

LEVELS = {"read": 1, "write": 2, "manage": 3, "admin": 4, "owner": 5}
EARLY = {"bad_commit", "bad_mark", "bad_body", "bad_signature"}
START = 1_800_000_000_000
FOREVER = START * 2


class User:
    """A user of a story."""

    def __init__(self, name, seed):
        self.name = name
        self.seed = seed
        self.id = crypto.public(seed)


class Epoch:
    """The secrets of an epoch, and what its init states."""

    def __init__(self, repo, key, writers):
        self.id = None
        self.key = key
        self.writers = writers
        self.convergence = crypto.convergence(key)
        self.read_key = crypto.read_key(key)
        self.topic_seed = crypto.own_topic_seed(key, repo)
        self.mark = crypto.mark_of(key, repo)
        self.writers_mark = crypto.writers_mark_of(writers, repo)
        self.writers_seed = crypto.writers_topic_seed(writers, repo, self.mark)
        self.writers_topic = crypto.public(self.writers_seed)


class Story:
    """The commits of one repo as they are made, and the publications of them.

    Everything follows from the name. A ledger that holds all keys says which commits are accepted.
    """

    trusting = False  # whether the ledger takes commits as they were made, without reading them again
    shares = False  # whether its repo, epochs and invitations have the keys of other stories of its cast

    def __init__(self, name, rules=(), founders=("ann",), found=True, seed=None, council=None):
        self.name = name
        self.rules = list(rules)
        self.material = (seed or name).encode()
        # Stories share users: to check a new key costs a judge more than all else that it does with it.
        self.cast = crypto.digest(self.material)[0] % 8
        self.count = 0
        self.numbers = {}
        self.repo_seed = self.next_secret("repo")
        self.repo = crypto.public(self.repo_seed)
        self.users = {}
        self.epochs = {}
        self.blocks = {}  # commit: its key and the blocks of its publication
        self.publications = []
        self.expected = {}
        self.feeds = {}
        self.clock = START
        self.now = None
        self.graph = None
        self.ledger = None
        self.founders = [self.user(founder) for founder in founders]
        if found:
            self.found(council=council)

    def secret(self, size=32):
        """The next secret of the story."""
        self.count += 1
        return crypto.derive("secrets of a story", self.material + self.count.to_bytes(8, "little"), size)

    def next_secret(self, kind):
        """The next secret of a kind: of this story, or where it shares them, of its cast."""
        if not self.shares:
            return self.secret()
        number = self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return crypto.derive("secret of stories", f"{self.cast}/{kind}/{number}".encode())

    def user(self, name):
        """A user by name."""
        if isinstance(name, User):
            return name
        if name not in self.users:
            self.users[name] = User(name, crypto.derive("user of a story", f"{self.cast}/{name}".encode()))
        return self.users[name]

    def id(self, name):
        """The id of a user by name."""
        return name if isinstance(name, bytes) else self.user(name).id

    # Founding and epochs.

    def new_epoch(self, key=None, writers=None):
        """Make the secrets of an epoch."""
        return Epoch(self.repo, key or self.next_secret("epoch"), writers or self.next_secret("writers"))

    def states(self, epoch, topic=None, mark=None, writers_mark=None, sealed=None):
        """What an init states of its epoch."""
        mark = mark or epoch.mark
        sealed = sealed or crypto.seal(
            epoch.key, b"topic", self.repo, mark, self.secret(24), topic or epoch.writers_topic
        )
        return [mark, writers_mark or epoch.writers_mark, sealed]

    def found(
        self,
        author=None,
        owners=None,
        certificate=None,
        title="a repo",
        expect="accepted",
        states=None,
        body=None,
        council=None,
        **twist,
    ):
        """Write the repo's init, with a council of so many or without."""
        owners = owners or [founder.id for founder in self.founders]
        epoch = self.now = self.new_epoch()
        stated = [] if council is None else [council]
        certificate = certificate or crypto.sign(
            self.repo_seed, crypto.repo_digest(self.repo, title, owners, *stated)
        )
        tag = "init3" if stated else "init2"
        body = body or [tag, title, owners, certificate, states or self.states(epoch), *stated]
        self.graph = Graph(self.repo, None)
        self.ledger = Ledger(self.graph, lambda one: self.epochs[one].key if one in self.epochs else None)
        return self.commit(
            author or self.founders[0],
            body,
            acks=[],
            epoch=epoch,
            by_writer=twist.pop("by_writer", False),
            founding=epoch,
            expect=expect,
            **twist,
        )

    def start(
        self,
        author,
        *,
        acks=None,
        gives=None,
        key=None,
        writers=None,
        boxes=None,
        writers_boxes=None,
        states=None,
        sealed_keys=None,
        stay=False,
        epoch=None,
        twist_states=None,
        object_secret=None,
        **twist,
    ):
        """Write an init of an epoch; go on in that epoch unless told to stay."""
        started = self.new_epoch(key, writers)
        acks = self.heads() if acks is None else acks
        view = self.view(acks)
        after = members(view)
        users = sorted(after)
        if boxes is None:
            boxes = b"".join(
                crypto.key_box(started.key, self.repo, user, prekey(view, user)) for user in users
            )
        if writers_boxes is None:
            writers_boxes = b"".join(
                crypto.writers_box(started.writers, self.repo, user, prekey(view, user))
                for user in users
                if after[user] >= WRITE
            )
        if gives is None:
            gives = sorted(one for one in view.ops if one in self.epochs)
        states = states or self.states(started, **(twist_states or {}))
        pairs = [[one, self.epochs[one].key] if isinstance(one, bytes) else list(one) for one in gives]
        sealed = sealed_keys or crypto.seal(
            started.key, b"keys", self.repo, states[0], self.secret(24), encode([pairs])
        )
        named = self.epochs[epoch or self.now.id]
        parts = [
            make_block(object_secret or named.convergence, plain) for plain in (boxes, writers_boxes, sealed)
        ]
        body = ["epoch-init3", states, *([one, part] for _, one, part in parts)]
        one = self.commit(
            author,
            body,
            acks=acks,
            epoch=named,
            started=started,
            parts=[data for data, _, _ in parts],
            **twist,
        )
        if not stay:
            self.now = started
        return one

    def hand(self, author, users, *, epoch=None, writers=(), handed=None, marks=None, entries=None, **twist):
        """Hand an epoch to members; `epoch` is that in which this is published."""
        handed = handed or self.now
        view = self.view(self.heads() if twist.get("acks") is None else twist["acks"])
        if entries is None:
            entries = [
                [user, crypto.key_box(handed.key, self.repo, user, prekey(view, user)), None]
                for user in sorted(map(self.id, users))
            ]
            for entry in entries:
                if entry[0] in [self.id(one) for one in writers]:
                    entry[2] = crypto.writers_box(handed.writers, self.repo, entry[0], prekey(view, entry[0]))
        marks = marks or [handed.mark, handed.writers_mark]
        return self.commit(author, ["epoch-hand1", handed.id, *marks, entries], epoch=epoch, **twist)

    def open(self, author, epochs, **twist):
        """Open epochs in another one."""
        return self.commit(
            author,
            ["epoch-open1", [[one.id, one.key] for one in sorted(epochs, key=lambda e: e.id)]],
            **twist,
        )

    # Views.

    def accepted(self, branch=None):
        """The accepted commits of a branch."""
        branch = branch or self.repo
        return [
            one
            for one in self.ledger.commits.values()
            if self.ledger.state[one.id] == "accepted" and one.of_branch == branch
        ]

    def heads(self, branch=None):
        """The heads of a branch among all accepted commits."""
        commits = self.accepted(branch)
        acked = {ack for one in commits for ack in one.acks}
        return sorted(one.id for one in commits if one.id not in acked)

    def view(self, acks):
        """The view of these operations and all before."""
        return self.graph.view(self.graph.closure([one for one in acks if one in self.graph.past]))

    # Commits.

    def commit(
        self,
        author,
        body=None,
        *,
        branch=None,
        acks=None,
        place=None,
        epoch=None,
        by_writer=None,
        expect="accepted",
        first=False,
        founding=None,
        started=None,
        parts=(),
        publish=True,
        **twist,
    ):
        """Write a commit, publish it, and note what is to become of it."""
        author = self.user(author)
        root = branch is None and not first
        if acks is None:
            acks = [] if first else self.heads(branch)
        epoch = epoch or self.now
        epoch = self.epochs[epoch] if isinstance(epoch, bytes) else epoch
        if place is None and not root:
            place = self.heads()
        if by_writer is None:
            seen = acks if root else place
            by_writer = permission(self.view(seen), author.id) >= WRITE
        self.clock += 1000
        named = ZEROS if founding else epoch.id
        branch_id = self.repo if root else ZEROS if first else branch
        body_data = twist.get("body_data", None if body is None else encode(body))
        body_block, body_id, body_key = make_block(epoch.convergence, body_data)
        tangles = [] if root else [["group", self.graph.init, list(place)]]
        chain = self.feeds.setdefault((author.id, branch_id), {})
        sequence = twist.get("sequence", len(chain) + 1)
        far = lipmaa(sequence) if sequence else 0
        get = twist.get
        links = [
            get("deps", []),
            get("ndeps", []),
            get("files", []),
            get("nfiles", []),
            get("lipmaa", chain.get(far, ZEROS) if sequence > 1 and far != sequence - 1 else None),
        ]
        content = [
            author.id,
            get("branch_id", branch_id),
            get("named", named),
            by_writer,
            get("whole", True),
            sequence,
            get("feed_previous", chain.get(sequence - 1, ZEROS) if sequence > 1 else None),
            get("tangles", tangles),
            get("timestamp", self.clock),
            get("metadata", b""),
            get("reference", [body_id, body_key]),
            get("file_keys", [b""] * len(links[2])),
        ]
        ranks = [self.ledger.commits[ack].rank for ack in acks if ack in self.ledger.commits]
        rank = get("rank", max(ranks) + 1 if ranks else 0)
        mark = get("mark", bytes(8) if first else crypto.branch_mark(epoch.key, branch_id))
        plain = get("plain")
        if plain is None:
            plain = make_commit(get("sign_with", author.seed), list(acks), rank, mark, links, content)
        data, one, key = make_block(
            get("secret", epoch.convergence), plain, acks, rank, mark, get("children", ())
        )
        if founding:
            self.graph.init = one
            founding.id = one
            self.epochs[one] = founding
        if started:
            started.id = one
            self.epochs[one] = started
        if sequence == len(chain) + 1:
            chain[sequence] = one
        self.blocks[one] = (key, [data, body_block, *parts])
        made = None
        if self.trusting and expect is None and "plain" not in twist:
            made = Commit.made(one, acks, rank, mark, links, content, plain[-64:])
            made.body = bodies.Body(body[0], body[1:] if body[0] in bodies.SHAPES | bodies.FREE else ())
        self.take(one, data, plain, body_data, parts, expect, made)
        if first:
            self.feeds[(author.id, one)] = chain
            del self.feeds[(author.id, ZEROS)]
        if publish:
            self.publish(one, epoch, by_writer)
            if started:
                self.publish(one, started, False)
        return one

    def take(self, one, data, plain, body_data, parts, expect, made=None):
        """Give a commit to the ledger: as it was made, or as it is read again."""
        if expect not in ("dropped", "left out"):
            self.expected[one] = expect
        if expect in EARLY:
            self.ledger.state[one] = "rejected"
            self.ledger.bad[one] = expect
            return
        try:
            commit = made or Commit(Block(data), plain)
            if made is None:
                commit.body = bodies.read(body_data) if not commit.said else bodies.Body(commit.said)
        except Refused:
            if expect in ("accepted", None) or expect in self.ledger.bad:
                raise
            return
        if commit.branch == self.repo and commit.said:
            commit.said = None
            commit.body = bodies.read(body_data)
        if parts:
            conv = self.epochs[commit.epoch].convergence if commit.epoch in self.epochs else None
            opened = []
            for part, (_, part_key) in zip(
                parts, (commit.body.boxes, commit.body.writers_boxes, commit.body.keys), strict=False
            ):
                opened.append(Block(part).open(part_key, conv))
            commit.boxes, commit.writers_boxes, commit.keys = opened
        if expect != "dropped":
            self.ledger.offer(commit)
            self.ledger.settle()

    def publish(self, one, epoch, by_writer=False, **twist):
        """Publish a commit on a topic of an epoch."""
        key, blocks = self.blocks[one]
        seed = twist.get("seed") or (epoch.writers_seed if by_writer else epoch.topic_seed)
        read_key = twist.get("read_key", epoch.read_key)
        blocks = twist.get("blocks", blocks)
        if twist.get("bare"):
            data = make_bare(
                seed, read_key, one, key, blocks[0], twist.get("body_id", crypto.digest(blocks[1]))
            )
        else:
            data = make_publication(seed, read_key, one, key, blocks, twist.get("topic"))
        self.publications.append(data)
        return data

    # Short forms of what is written often.

    def grant(self, author, user, level, **twist):
        """Grant a permission."""
        return self.commit(author, ["grant2", self.id(user), LEVELS.get(level, level)], **twist)

    def device(self, author, user, level, **twist):
        """Grant a permission to a device of the author."""
        return self.commit(author, ["device-grant1", self.id(user), LEVELS.get(level, level)], **twist)

    def move(self, author, user, credential=None, **twist):
        """Pass the author's place to a device, by default what the founding gave."""
        return self.commit(author, ["move1", self.id(user), credential or self.graph.init], **twist)

    def friends(self, author, threshold, friends, **twist):
        """Name recovery friends."""
        return self.commit(author, ["recovery-friends1", sorted(map(self.id, friends)), threshold], **twist)

    def signed(self, naming, user, level, friends, repo=None):
        """The signatures of friends under a recovery grant."""
        digest = crypto.recovery_digest(repo or self.repo, naming, self.id(user), LEVELS.get(level, level))
        return sorted([self.id(one), crypto.sign(self.user(one).seed, digest)] for one in friends)

    def recover(self, author, naming, user, level, friends, signatures=None, **twist):
        """Publish a device grant that friends make in the place of a member."""
        if signatures is None:
            signatures = self.signed(naming, user, level, friends)
        body = ["recovery-grant1", naming, self.id(user), LEVELS.get(level, level), signatures]
        return self.commit(author, body, **twist)

    def remove(self, author, user, keeps=None, feeds=(), **twist):
        """Remove a member."""
        return self.commit(
            author,
            ["remove1", self.id(user), LEVELS.get(keeps, keeps), [list(end) for end in feeds]],
            **twist,
        )

    def invite(self, author, level="write", uses=10, expires=FOREVER, **twist):
        """Invite; the seed of the invitation follows from its commit."""
        seed = self.next_secret("invitation")
        one = self.commit(
            author, ["invite1", crypto.public(seed), LEVELS.get(level, level), uses, expires], **twist
        )
        self.seeds = getattr(self, "seeds", {})
        self.seeds[one] = seed
        return one

    def join(self, author, invitation, proof=None, by_writer=False, **twist):
        """Join by an invitation."""
        digest = crypto.invitation_digest(self.repo, self.id(author))
        proof = proof or crypto.sign(self.seeds[invitation], digest)
        return self.commit(author, ["join1", invitation, proof], by_writer=by_writer, **twist)

    def revoke(self, author, invitation, **twist):
        """Revoke an invitation."""
        return self.commit(author, ["revoke1", invitation], **twist)

    def prekey(self, author, key=None, **twist):
        """State a prekey, by default a fresh one."""
        return self.commit(author, ["prekey1", key or crypto.point(self.secret())], **twist)

    def note(self, author, text="a note", **twist):
        """Write a post, in the root branch unless a branch is told."""
        return self.commit(author, ["post1", text], **twist)

    def branch(self, author="ann", name="a branch", add=True, adder=None, body=None, **twist):
        """Write the first commit of a branch, and add the branch."""
        one = self.commit(
            author, body or ["branch-root1"], first=True, expect=twist.pop("expect", "accepted"), **twist
        )
        if add:
            self.add(adder or author, one, name)
        return one

    def add(self, author, branch, name="a branch", **twist):
        """Add a branch."""
        root = twist.pop("root", [branch, self.blocks[branch][0] if branch in self.blocks else ZEROS])
        return self.commit(author, ["branch-add2", branch, name, root], **twist)

    def quorum(self, author, threshold, signers, removals=True, **twist):
        """Name a quorum."""
        return self.commit(author, ["quorum1", sorted(map(self.id, signers)), threshold, removals], **twist)

    def propose(self, author, user, keeps=None, **twist):
        """Propose a removal."""
        return self.commit(author, ["propose-removal1", self.id(user), LEVELS.get(keeps, keeps)], **twist)

    def approve(self, author, proposal, **twist):
        """Approve of a proposal."""
        return self.commit(author, ["approve1", proposal], **twist)

    def checkpoint(self, author, digest=None, acks=None, **twist):
        """Sign the statement of what is acked, or another digest."""
        acks = self.heads() if acks is None else acks
        digest = digest or statements.digest(self.view(acks))
        return self.commit(author, ["members-checkpoint1", digest], acks=acks, **twist)

    # The history.

    def history(self, node="ann", keys=None, publications=None):
        """The history of this story as the README has it, without what is to be concluded."""
        init = self.graph.init
        keys = [self.epochs[init]] if keys is None else keys
        pairs = [[key.id, key.key] if isinstance(key, Epoch) else list(key) for key in keys]
        return {
            "name": self.name,
            "rules": self.rules,
            "repo": self.repo.hex(),
            "init": init.hex(),
            "init_key": self.blocks[init][0].hex(),
            "user_seed": self.user(node).seed.hex(),
            "keys": [[one.hex(), key.hex()] for one, key in pairs],
            "publications": [
                base64.b64encode(data).decode()
                for data in (self.publications if publications is None else publications)
            ],
        }

    def finish(self, node="ann", keys=None, publications=None, dropped=0, sees=None, check=None):
        """Judge the history, compare with what was meant, and return it complete.

        `sees` says what this node in particular makes of commits; `check` looks at all that it concludes.
        """
        history = self.history(node, keys, publications)
        results = history["expect"] = judge(history)
        meant = {one: what for one, what in {**self.expected, **(sees or {})}.items() if what is not None}
        for one, what in meant.items():
            found = results["commits"].get(one.hex())
            check_one(self.name, what, found)
        if dropped is not None and results["dropped"] != dropped:
            raise AssertionError(f"{self.name}: {results['dropped']} publications dropped, not {dropped}")
        if check is not None:
            check(results)
        return history


def check_one(name, what, found):
    """Compare what was meant of a commit with what was concluded."""
    if what == "unseen":
        right = found is None
    elif what in ("accepted", "void", "pending", "rejected"):
        right = found is not None and found["is"] == what
    else:
        wanted = set(what.split("|"))
        right = found is not None and found["is"] == "rejected" and bool(wanted & set(found["codes"]))
    if not right:
        raise AssertionError(f"{name}: meant {what}, concluded {found}")
