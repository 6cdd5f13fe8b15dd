"""Named histories of the rules M1 to M4, M8 and M12, one by one."""

from . import crypto
from .cases import add, case
from .family_rights import SMALL
from .story import FOREVER, START

# M1


def founding(s, expect, **how):
    """An init that is as it should be but for one thing, and what follows it."""
    s.found(expect=expect, **how)
    s.note(
        "ann",
        acks=[s.graph.init],
        by_writer=False,
        expect="rejected_cause" if expect != "accepted" else "accepted",
    )


def bad_owner(s, key):
    """An init one of whose owners is no public key."""
    s.found(owners=sorted([s.id("ann"), key]), expect="bad_certificate")


add("an init", ["M1"], founding, found=False, expect="accepted")
add(
    "an init with a signature of nobody",
    ["M1"],
    founding,
    found=False,
    expect="bad_certificate",
    certificate=bytes(64),
)
for number, key in enumerate(SMALL):
    add(f"an init with an owner that is no key ({number})", ["M1"], bad_owner, found=False, key=key)


@case("an init by no owner", "M1", found=False)
def _(s):
    s.found(author="ben", expect="not_permitted")
    s.note("ann", acks=[s.graph.init], by_writer=False, expect="rejected_cause")


@case("an init certified for another name", "M1", found=False)
def _(s):
    wrong = crypto.sign(s.repo_seed, crypto.repo_digest(s.repo, "another repo", [s.id("ann")]))
    s.found(certificate=wrong, expect="bad_certificate")


@case("an init certified for other owners", "M1", found=False)
def _(s):
    wrong = crypto.sign(s.repo_seed, crypto.repo_digest(s.repo, "a repo", [s.id("ben")]))
    s.found(certificate=wrong, expect="bad_certificate")


@case("an init certified by another key", "M1", found=False)
def _(s):
    wrong = crypto.sign(s.secret(), crypto.repo_digest(s.repo, "a repo", [s.id("ann")]))
    s.found(certificate=wrong, expect="bad_certificate")


@case("an init that names an owner twice", "M1", found=False)
def _(s):
    s.found(owners=[s.id("ann"), s.id("ben"), s.id("ann")])
    s.note("ben")


@case("an init with 64 owners", "M1", found=False)
def _(s):
    s.found(owners=[s.id("ann")] + [s.id(f"user {n}") for n in range(63)])
    s.note("user 7")


@case("an init with 65 owners", "M1", found=False)
def _(s):
    s.found(owners=[s.id("ann")] + [s.id(f"user {n}") for n in range(64)], expect="bad_body")


@case("an init without owners", "M1", found=False)
def _(s):
    s.found(body=["init2", "a repo", [], bytes(64), s.states(s.new_epoch())], expect="bad_body")


@case("a second init that acks something", "M1")
def _(s):
    certificate = crypto.sign(s.repo_seed, crypto.repo_digest(s.repo, "again", [s.id("ann")]))
    s.commit(
        "ann",
        ["init2", "again", [s.id("ann")], certificate, s.states(s.new_epoch())],
        expect="not_permitted",
    )
    s.note("ann")


@case("a second root of the root branch", "V2", "M1")
def _(s):
    certificate = crypto.sign(s.repo_seed, crypto.repo_digest(s.repo, "again", [s.id("ann")]))
    s.commit(
        "ann",
        ["init2", "again", [s.id("ann")], certificate, s.states(s.new_epoch())],
        acks=[],
        expect="second_root",
    )
    s.note("ann", acks=[], expect="second_root")
    s.note("ann")


# M2


@case("a branch that was added before", "M2")
def _(s):
    b = s.branch("ann")
    s.add("ann", b, expect="branch_exists")
    s.add("ann", s.repo, expect="branch_exists|bad_branch")


@case("a branch added twice beside each other", "M2")
def _(s):
    b = s.branch("ann", add=False)
    heads = s.heads()
    s.add("ann", b, "one name", acks=heads)
    s.add("ann", b, "another name", acks=heads)
    s.note("ann", branch=b)
    s.add("ann", b, expect="branch_exists")


@case("a branch that was added by an operation that does not count", "M2", "R4")
def _(s):
    g = s.grant("ann", "ben", "admin")
    b = s.branch("ann", add=False)
    s.add("ben", b, acks=[g])
    s.remove("ann", "ben", acks=[g])
    s.add("ann", b, expect="branch_exists")
    s.note("ann", branch=b)


@case("a branch whose first commit is another", "M2")
def _(s):
    b = s.branch("ann", add=False)
    c = s.branch("ann", add=False)
    s.add("ann", b, root=[c, s.blocks[c][0]], expect="bad_branch")
    s.add("ann", b, root=[b, bytes(32)])
    s.add("ann", c)


@case("links to branches", "M2")
def _(s):
    b = s.branch("ann")
    c = s.branch("ann", add=False)
    s.commit("ann", ["branch-link1", b])
    s.commit("ann", ["branch-link1", c], expect="bad_branch")
    s.commit("ann", ["branch-link1", s.repo], expect="bad_branch")
    s.add("ann", c)


@case("a link to a branch that was added beside it", "M2")
def _(s):
    heads = s.heads()
    b = s.branch("ann")
    s.commit("ann", ["branch-link1", b], acks=heads, expect="bad_branch")


# M3, M4, M8


for level in range(1, 6):

    def inviting(s, level):
        """An invitation that grants a permission."""
        s.invite("ann", level, expect="accepted" if level < 3 else "not_permitted")

    add(f"an invitation that grants {level}", ["M3"], inviting, level=level)


@case("a join", "M4")
def _(s):
    i = s.invite("ann", "write")
    r = s.invite("ann", "read")
    s.join("ben", i)
    s.join("cat", r)
    s.note("ben")
    s.note("cat", expect="not_permitted")


@case("a join with a proof for another", "M4")
def _(s):
    i = s.invite("ann")
    proof = crypto.sign(s.seeds[i], crypto.invitation_digest(s.repo, s.id("cat")))
    s.join("ben", i, proof, expect="bad_proof")
    s.join("cat", i, proof)


@case("a join with a proof of another invitation", "M4")
def _(s):
    i, j = s.invite("ann"), s.invite("ann")
    s.join(
        "ben", i, crypto.sign(s.seeds[j], crypto.invitation_digest(s.repo, s.id("ben"))), expect="bad_proof"
    )
    s.join("ben", j)


for number, key in enumerate(SMALL[:4]):

    def odd_invitation(s, key):
        """An invitation whose key is none: it is accepted, and nobody joins by it."""
        i = s.commit("ann", ["invite1", key, 2, 3, FOREVER])
        s.join("ben", i, bytes(64), expect="bad_proof")
        s.join("cat", i, key + bytes(32), expect="bad_proof")

    add(f"an invitation whose key is none ({number})", ["M4"], odd_invitation, key=key)


@case("joins at the expiry and before it", "M4")
def _(s):
    i = s.invite("ann", expires=START + 100_000)
    s.join("ben", i, timestamp=START + 100_000, expect="invitation_expired")
    s.join("cat", i, timestamp=START + 99_999)
    s.join("dan", i, timestamp=START + 200_000, expect="invitation_expired")
    s.join("eve", i, timestamp=0)


@case("a join by a revoked invitation", "M4", "M8")
def _(s):
    i = s.invite("ann")
    s.revoke("ann", i)
    s.join("ben", i, expect="invitation_revoked")


@case("a join by an invitation whose revocation does not count", "M4", "R2")
def _(s):
    g = s.grant("ann", "ben", "admin")
    i = s.invite("ann")
    r = s.revoke("ben", i)
    x = s.remove("ann", "ben", acks=[i])
    s.join("cat", i, acks=[r, x])
    s.join("dan", i, acks=[r], expect="invitation_revoked")
    assert g


@case("a join by an invitation that does not count", "M4", "R2")
def _(s):
    g = s.grant("ann", "ben", "admin")
    i = s.invite("ben")
    x = s.remove("ann", "ben", acks=[g])
    s.join("cat", i, acks=[i, x], expect="unknown_invitation")
    s.join("dan", i, acks=[i])
    s.note("ann")


@case("a join by what is no invitation, or not in its past", "M4")
def _(s):
    n = s.note("ann")
    i = s.invite("ann")
    s.seeds[n] = s.seeds[i]
    s.join("ben", n, expect="unknown_invitation")
    s.join("ben", i, acks=[n], expect="unknown_invitation")
    s.seeds[bytes(32)] = s.seeds[i]
    s.join("ben", bytes(32), expect="unknown_invitation")
    s.join("ben", i)


@case("more users than an invitation has uses", "M4")
def _(s):
    i = s.invite("ann", uses=2)
    s.join("ben", i)
    s.join("cat", i)
    s.join("dan", i, expect="invitation_used")
    s.join("ben", i)
    s.join("eve", i, acks=[i])
    s.join("ben", i)


@case("a use that does not count is none", "M4", "R2")
def _(s):
    s.grant("ann", "ben", "admin")
    i = s.invite("ann", uses=1)
    j = s.join("cat", i)
    r = s.revoke("ben", i, acks=[i])
    x = s.remove("ann", "ben", acks=[i])
    s.join("dan", i, acks=[j, r, x], expect="invitation_used|invitation_revoked")
    s.join("eve", i, acks=[x])


@case("coming back by an old link", "M4")
def _(s):
    i = s.invite("ann")
    s.join("ben", i)
    s.remove("ann", "ben")
    s.join("ben", i, expect="invitation_used|invitation_revoked|not_permitted")
    j = s.invite("ann")
    s.join("ben", j)
    s.note("ben")


@case("coming back by an old link after a leave", "M4")
def _(s):
    i = s.invite("ann")
    s.join("ben", i)
    s.remove("ben", "ben")
    s.join("ben", i, expect="invitation_used|invitation_revoked|not_permitted")
    s.join("ben", s.invite("ann"))


@case("coming back by an old link after a demotion", "M4")
def _(s):
    i = s.invite("ann")
    s.join("ben", i)
    s.remove("ann", "ben", "read")
    s.join("ben", i, expect="invitation_used|invitation_revoked|not_permitted")


@case("coming back by an old link after a removal that does not count", "M4", "R2")
def _(s):
    g = s.grant("ann", "cat", "admin")
    i = s.invite("ann")
    j = s.join("ben", i)
    x = s.remove("cat", "ben")
    y = s.remove("ann", "cat", acks=[j])
    s.join("ben", i, acks=[x, y])
    assert g


@case("a member joins again beside a removal", "M4", "R4")
def _(s):
    i = s.invite("ann")
    j = s.join("ben", i)
    s.remove("ann", "ben", acks=[j])
    s.join("ben", i, acks=[j])
    s.note("ben", expect="unknown_author")


@case("a reader joins by an invitation to write", "M4")
def _(s):
    s.grant("ann", "ben", "read")
    s.join("ben", s.invite("ann"))
    s.note("ben")
    s.join("ben", s.invite("ann", "read"))


@case("an invitation falls with who wrote it, and its joins", "R2")
def _(s):
    g = s.grant("ann", "ben", "admin")
    i = s.invite("ben")
    s.join("cat", i)
    s.remove("ann", "ben", acks=[g])
    s.note("cat", expect="unknown_author")


@case("a revocation that comes to count after a join that follows it", "R2")
def _(s):
    s.grant("ann", "ben", "admin")
    s.grant("ann", "cat", "admin")
    i = s.invite("ann")
    r = s.revoke("cat", i)
    x = s.remove("ben", "cat", acks=[i])
    j = s.join("dan", i, acks=[r, x])
    s.remove("ann", "ben", acks=[i])
    # The revocation counts again; it is in the join's past, so nothing that is concurrent ends the join.
    s.note("dan", acks=[j])
    s.note("dan")


# M12


@case("offers and answers", "M12")
def _(s):
    s.grant("ann", "ben", "read")
    s.grant("ann", "cat", "read")
    b = s.branch("ann")
    o = s.commit("ben", ["offer1", b, True, "mine", b""])
    s.commit("ben", ["answer1", o, True], expect="not_permitted")
    s.commit("cat", ["answer1", o, False], expect="not_permitted")
    s.commit("dan", ["answer1", o, False], expect="unknown_author")
    s.commit("ben", ["answer1", b, False], expect="unknown_offer")
    s.commit("ann", ["answer1", bytes(32), True], expect="unknown_offer")
    s.commit("ben", ["offer1", s.repo, True, "root", b""], expect="bad_branch")
    s.commit("ben", ["offer1", bytes(32), True, "none", b""], expect="bad_branch")
    s.remove("ann", "ben")
    s.commit("ben", ["answer1", o, False])
    s.commit("ben", ["answer1", o, True], expect="unknown_author")


@case("an answer beside the offer", "M12")
def _(s):
    b = s.branch("ann")
    heads = s.heads()
    o = s.commit("ann", ["offer1", b, True, "", b""])
    s.commit("ann", ["answer1", o, True], acks=heads, expect="unknown_offer")
    s.commit("ann", ["answer1", o, True])
