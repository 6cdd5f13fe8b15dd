"""Named histories that tell apart two readings of one sentence, where no other history does."""

from .cases import add, case
from .codec import encode
from .family_bodies import ID
from .family_rights import said

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


@case("two checkpoints of the same heads, and posts beside both and after one", "section 6")
def _(s):
    s.grant("ann", "ben", "write")
    asked(s, lambda s: s.posts[:1])
    one = s.commit("ann", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:1])
    s.commit("ben", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:1])
    s.note("ann", branch=s.b, acks=[one])


@case("two checkpoints of the same heads, and one of other heads beside them", "section 6")
def _(s):
    s.grant("ann", "ben", "write")
    asked(s, lambda s: s.posts[1:])
    other = s.commit("ann", ["propose-checkpoint1", s.b, s.posts[:1]])
    s.approve("ann", other)
    s.commit("ann", ["checkpoint1", s.p], branch=s.b, acks=s.posts[1:])
    s.commit("ben", ["checkpoint1", s.p], branch=s.b, acks=s.posts[1:])
    s.commit("ann", ["checkpoint1", other], branch=s.b, acks=s.posts[:1])


@case("a checkpoint of who is excluded beside it moves nothing", "N1", "section 6")
def _(s):
    base = s.grant("ann", "ben", "write")
    asked(s, lambda s: s.posts[1:])
    void = s.commit("ben", ["checkpoint1", s.p], branch=s.b, acks=s.posts[1:])
    s.remove("ann", "ben", acks=[base])
    s.expected[void] = "void"


@case("a checkpoint whose signer is excluded beside it, and that is adopted", "N3", "N4")
def _(s):
    base = s.grant("ann", "ben", "write")
    asked(s, lambda s: s.posts[:1], ["ben"])
    void = s.commit("ann", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:1])
    s.remove("ann", "ben", acks=[base])
    s.commit("ann", ["adopt1", s.b, [void]])
    s.expected[void] = "void"


@case("a checkpoint under a quorum that a stricter one follows later", "N4")
def _(s):
    s.grant("ann", "ben", "write")
    asked(s, lambda s: s.posts[:1])
    s.commit("ann", ["checkpoint1", s.p], branch=s.b, acks=s.posts[:1])
    s.quorum("ann", 2, ["ann", "ben"], removals=False)


# Removals under a quorum.


def people(s, **levels):
    """Members by name; the head after them is kept."""
    for user, level in levels.items():
        s.base = s.grant("ann", user, level)


def approved(s, proposal, *signers):
    """Approvals of a proposal, one after another."""
    for signer in signers:
        s.approve(signer, proposal)


@case("a reader removes with the approvals of a quorum", "M7")
def _(s):
    people(s, ben="write", cat="write", eve="read")
    s.quorum("ann", 1, ["ben"])
    approved(s, s.propose("ann", "cat"), "ben")
    s.remove("eve", "cat", by_writer=False, expect="not_permitted")
    s.remove("ben", "cat")


@case("an approval by a signer of a quorum that another followed", "M14")
def _(s):
    people(s, ben="write", cat="write", dan="write")
    s.quorum("ann", 1, ["ben"])
    s.quorum("ann", 1, ["cat"])
    s.approve("ben", s.propose("ann", "dan"), expect="not_permitted")


@case("a proposal to exclude after a demotion that has it in its past", "Q3")
def _(s):
    people(s, ben="write", cat="write")
    s.quorum("ann", 1, ["ben"])
    out, down = s.propose("ann", "cat"), s.propose("ann", "cat", "read")
    approved(s, out, "ben")
    approved(s, down, "ben")
    s.remove("ann", "cat", "read")
    s.remove("ann", "cat", expect="needs_quorum")


@case("a proposal to exclude after a leave that has it in its past", "Q3")
def _(s):
    people(s, ben="write", cat="manage")
    s.quorum("ann", 1, ["ben"])
    approved(s, s.propose("ann", "cat"), "ben")
    s.remove("cat", "cat", "write")
    s.remove("ann", "cat")


@case("a proposal that a removal has used up which does not count", "Q3")
def _(s):
    people(s, ben="admin", cat="write", dan="admin")
    s.quorum("ann", 2, ["ann", "ben", "dan"])
    p = s.propose("ann", "cat")
    approved(s, p, "ann", "ben")
    s.remove("dan", "cat")
    s.remove("ann", "ben", acks=[s.base])
    s.approve("dan", p)
    s.remove("ann", "cat", expect="needs_quorum")


def two_proposals(s, excluded, author):
    """Two proposals with an approval each, and the signer of one of them is excluded beside the removal."""
    people(s, cat="write", dan="write", eve="write")
    s.quorum("ann", 1, ["cat", "eve"])
    one, other = s.propose("ann", "dan"), s.propose("ann", "dan")
    approved(s, one, "cat")
    approved(s, other, "eve")
    s.remove(author, "dan")
    s.start("ann", acks=[s.remove("ann", excluded, acks=[s.base])])


for which, *users in (("first", "cat", "eve"), ("second", "eve", "cat")):
    title = f"a removal by two proposals, and the signer of the {which} falls"
    add(title, ["R6"], two_proposals, excluded=users[0], author=users[1])


# Rights.


@case("a removal that one right holds for each credential", "M7")
def _(s):
    start = s.heads()
    one = s.grant("ann", "cat", "admin", acks=[s.grant("ann", "ben", "admin", acks=start)])
    beside = s.note("ann", acks=start)
    two = s.grant("ann", "cat", "admin", acks=[s.grant("ann", "ben", "admin", acks=[beside])])
    s.remove("ben", "cat", acks=sorted([one, two]))


@case("a grant to oneself of what one holds", "M6")
def _(s):
    people(s, ben="admin")
    s.grant("ben", "ben", "admin", expect="already_holds")


@case("a revocation after a join", "R2")
def _(s):
    link = s.invite("ann")
    s.join("ben", link)
    s.revoke("ann", link)
    s.note("ben")


# Epochs.


@case("a revocation that does not count beside a join, and an epoch that does not know it", "E8")
def _(s):
    people(s, ben="admin")
    link = s.invite("ann")
    joined = s.join("eve", link)
    s.revoke("ben", link, acks=[link])
    out = s.remove("ann", "ben", acks=[link])
    s.start("ann", acks=sorted([joined, out]))


@case("who was granted something beside an epoch writes in it and leaves", "E8")
def _(s):
    start = s.heads()
    one = s.start("ann", stay=True)
    granted = s.grant("ann", "ben", "read", acks=start)
    s.remove("ben", "ben", acks=sorted([one, granted]), epoch=one, by_writer=False)


@case("who was granted something in an epoch may hold what it opens", "E8")
def _(s):
    people(s, ben="admin")
    start = s.heads()
    one = s.start("ann", acks=start, stay=True)
    two = s.start("ben", acks=start, stay=True)
    s.open("ann", [s.epochs[one]], acks=sorted([one, two]), epoch=two)
    s.grant("ann", "cat", "read", epoch=two)
    s.remove("cat", "cat", epoch=two, by_writer=False)


@case("a prekey that does not count and that one epoch knows, of who is a member again", "E8")
def _(s):
    people(s, ben="admin", cat="write")
    start = s.heads()
    key = s.prekey("cat", acks=start)
    again = s.grant("ann", "cat", "write", acks=[s.remove("ann", "cat", acks=start)])
    s.start("ann", acks=[again], stay=True)
    s.start("ben", acks=sorted([key, again]), stay=True)


@case("prekeys that an init knows which does not count", "M16")
def _(s):
    people(s, ben="admin", cat="write")
    start = s.heads()
    for _ in range(4):
        s.prekey("cat")
    one = s.start("ben", stay=True)
    down = s.remove("ann", "ben", "write", acks=start)
    s.prekey("cat", acks=sorted([one, down]), epoch=one)


@case("content in an epoch that does not open its past", "V12")
def _(s):
    b = s.branch("ann")
    one = s.start("ann", stay=True)
    s.note("ann", branch=b, place=[one], expect="closed_epoch")


# Shapes of content.


@case("an init2 outside the root branch", "M1")
def _(s):
    b = s.branch("ann")
    s.commit("ann", ["init2", "a repo", [s.id("ann")], bytes(64), s.states(s.now)], branch=b)


@case("a said kind in the root branch, and a body that is malformed", "V9")
def _(s):
    s.commit("ann", ["post1", 5], metadata=said("post1"), expect="bad_body")


@case("a said kind on a branch's first commit, and a body that is malformed", "V9")
def _(s):
    s.note("ann", branch=s.branch("ann", body=["post1", 5], metadata=said("post1")))


@case("a place behind that of an ack", "section 6")
def _(s):
    b = s.branch("ann")
    before = s.heads()
    s.note("ann")
    s.note("ann", branch=b)
    s.note("ann", branch=b, place=before, expect="bad_group_place")


BODIES = {
    "a set-squeeze1 with a commit of no items": (["set-squeeze1", "", None, [[ID, []]]], "bad_body"),
    "a dict-squeeze1 with a commit of no entries": (["dict-squeeze1", "", None, [[ID, []]]], "bad_body"),
    "a set-squeeze1 of no commits": (["set-squeeze1", "", None, []], "accepted"),
    "a dict-squeeze1 of no commits": (["dict-squeeze1", "", None, []], "accepted"),
    "a set1 that replaces no places of a commit": (["set1", [], [], [[ID, []]]], "accepted"),
    "a set1 that replaces places twice, out of order": (["set1", [], [], [[ID, [2, 1, 1]]]], "accepted"),
    "a carried merge1 that is malformed": (["carried1", ID, ID, ID, 0, encode(["merge1", 5])], "accepted"),
    "a carried text-snapshot1 that is malformed": (
        ["carried1", ID, ID, ID, 0, encode(["text-snapshot1", 5])],
        "accepted",
    ),
}


def written(s, body, expect):
    """A body in a branch."""
    s.commit("ann", body, branch=s.branch("ann"), expect=expect)


for title, (body, expect) in BODIES.items():
    add(title, ["section 5"], written, body=body, expect=expect)
