"""Named histories that tell apart two readings of one sentence, where no other history does."""

from .cases import case

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
