"""Named histories that tell apart two readings of one sentence, where no other history does."""

from .cases import add, case
from .codec import encode

# Commits of other versions.


def tagged(s, plain, expect):
    """A commit's plaintext, which is unread or refused; the next commit does not ack it."""
    top = s.heads()
    s.note("ann", plain=plain, expect="left out")
    s.expected[list(s.blocks)[-1]] = expect
    s.note("ann", acks=top)


for tag in ("commit1", "commit0", "commit02", "commit9999"):
    add(f"a commit of the version {tag}", ["section 6"], tagged, plain=encode([tag, 1]), expect="pending")
for tag in (
    "commit",
    "commit99999",
    "commit" + "9" * 26,
    "commitx",
    "Commit3",
    "block2",
    "commit\N{ARABIC-INDIC DIGIT THREE}",
):
    add(f"a commit of the version {tag}", ["section 6"], tagged, plain=encode([tag, 1]), expect="bad_commit")
NEWER = {
    "alone": (b"\x91\xa7commit3", "pending"),
    "whose array is cut": (b"\x9f\xa7commit3", "pending"),
    "with rubbish behind": (b"\x91\xa7commit3\xc1\xff", "pending"),
    "of 70,000 bytes": (encode(["commit3", bytes(70_000)]), "pending"),
    "behind a long header": (b"\xdc\x00\x01\xa7commit3", "bad_commit"),
    "whose tag has a long header": (b"\x91\xd9\x07commit3", "bad_commit"),
    "whose array is empty": (b"\x90\xa7commit3", "bad_commit"),
    "whose tag is cut": (b"\x91\xa7commit", "bad_commit"),
}
for title, (plain, expect) in NEWER.items():
    add(f"a commit of a newer version {title}", ["section 6"], tagged, plain=plain, expect=expect)

# Checkpoints.


def asked(s, commits, signers=("ann",), **how):
    """A branch with posts beside each other, a quorum, and an approved proposal of a checkpoint."""
    s.b = s.branch("ann")
    s.posts = sorted(s.note("ann", f"{n}", branch=s.b, acks=[s.b]) for n in range(2))
    s.q = s.quorum("ann", 1, signers, removals=False, **how)
    s.p = s.commit("ann", ["propose-checkpoint1", s.b, commits(s)])
    s.approve(signers[0], s.p)


@case("a proposal of a checkpoint that names a commit twice, out of order", "M13")
def _(s):
    asked(s, lambda s: [s.posts[1], *s.posts])
    s.commit("ann", ["checkpoint1", s.p], branch=s.b, acks=s.posts[1:], expect="bad_checkpoint")
    s.commit("ann", ["checkpoint1", s.p], branch=s.b, acks=s.posts)
