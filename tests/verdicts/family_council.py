"""Named histories of repos whose init states a council: M1, M13, M14, Q4, and what follows by R."""

from . import crypto
from .cases import add, case

THREE = ("ann", "ben", "cat")


def council_case(name, *rules):
    """Register a case of three founders, which founds the repo itself."""
    return case(name, *rules, founders=THREE, found=False)


def council_of_three(s):
    """Three founders of whom two are the council, and others."""
    s.found(council=2)
    for user, level in (("dan", "admin"), ("eve", "write"), ("fay", "read")):
        s.grant("ann", user, level)
    s.base = s.heads()


def ask(s, user, *signers, keeps=None, by="eve", acks=None):
    """Propose a removal; each signer approves, one after the other. Returns what a removal acks, and the proposal."""
    proposal = s.propose(by, user, keeps, acks=acks)
    last = proposal
    for signer in signers:
        last = s.approve(signer, proposal, acks=[last])
    return [last], proposal


# M1: what an init may state


def stating(s, number, right):
    """A founding with a council that may be stated, or not."""
    s.found(council=number, expect="accepted" if right is True else right)


STATED = {
    "one of two founders": (("ann", "ben"), 1, "bad_body"),
    "two of two founders": (("ann", "ben"), 2, True),
    "three of two founders": (("ann", "ben"), 3, "bad_quorum"),
    "two of one founder": (("ann",), 2, "bad_quorum"),
    "two of four founders": (("ann", "ben", "cat", "dan"), 2, "bad_quorum"),
    "three of four founders": (("ann", "ben", "cat", "dan"), 3, True),
    "65 of three founders": (THREE, 65, "bad_body"),
}
for title, (founders, number, right) in STATED.items():
    add(f"a council of {title}", ["M1"], stating, founders, found=False, number=number, right=right)


@council_case("a council of two of three, one of whom is named twice", "M1")
def _(s):
    s.found(owners=[s.id(one) for one in ("ann", "ben", "ann", "cat")], council=2)


@council_case("an init whose certificate leaves the council out", "M1")
def _(s):
    owners = [s.id(one) for one in THREE]
    wrong = crypto.sign(s.repo_seed, crypto.repo_digest(s.repo, "a repo", owners))
    s.found(certificate=wrong, council=2, expect="bad_certificate")


# Q4


@council_case("a council excludes a founder", "Q4", "M7")
def _(s):
    council_of_three(s)
    _, p = ask(s, "ann", "ben")
    s.remove("ben", "ann", expect="needs_quorum")
    s.approve("cat", p)
    s.remove("fay", "ann", expect="not_permitted")
    s.remove("eve", "ann", "read", expect="needs_quorum")
    s.remove("eve", "ben", expect="needs_quorum")
    s.remove("eve", "ann")
    s.note("ann", expect="unknown_author")
    s.start("ben")
    s.grant("ben", "gus", "owner")
    s.note("gus")
    return {"node": "ben"}


@council_case("a council demotes a founder, who signs for it no more", "Q4")
def _(s):
    council_of_three(s)
    acks, _ = ask(s, "ann", "ben", "cat", keeps="write")
    s.remove("eve", "ann", "write", acks=acks)
    s.note("ann")
    s.approve("ann", s.propose("eve", "dan"), expect="not_permitted")


@case("founders without a council are excluded by nobody", "M7", founders=THREE)
def _(s):
    s.grant("ann", "eve", "write")
    s.approve("ben", s.propose("eve", "ann"), expect="not_permitted")
    s.remove("ben", "ann", expect="not_permitted")


@council_case("a signature under a proposal, twice", "Q4")
def _(s):
    council_of_three(s)
    _, p = ask(s, "ann", "ben", "ben")
    s.approve("ben", p, acks=[p])
    s.remove("ben", "ann", expect="needs_quorum")


@council_case("a signature under each of two proposals of one removal", "Q4")
def _(s):
    council_of_three(s)
    ask(s, "ann", "ben")
    s.approve("cat", s.propose("eve", "ann"))
    s.remove("ben", "ann", expect="needs_quorum")


@council_case("the council needs no right of who publishes its removal", "Q4")
def _(s):
    council_of_three(s)
    acks, _ = ask(s, "ann", "ben", "cat")
    x = s.remove("ann", "eve", acks=s.base)
    s.remove("eve", "ann", acks=acks)
    s.note("ann", acks=[x])


@council_case(
    "a founder beside a council's removal excludes a signer's appointee, and is excluded", "Q4", "R4"
)
def _(s):
    council_of_three(s)
    acks, _ = ask(s, "ann", "ben", "cat")
    s.remove("ann", "dan", acks=s.base)
    s.grant("ann", "gus", "owner", acks=s.base)
    s.grant("ann", "hal", "owner", acks=acks)
    s.remove("eve", "ann", acks=acks)
    s.note("dan")
    s.note("gus", expect="unknown_author")
    s.note("hal", expect="unknown_author")


@council_case("what an excluded founder did before stands", "Q4", "R4")
def _(s):
    council_of_three(s)
    s.grant("ann", "gus", "owner")
    acks, _ = ask(s, "ann", "ben", "cat")
    s.remove("eve", "ann", acks=acks)
    s.note("gus")
    s.note("dan")


@council_case("a founder alone removes no member of the council", "Q4", "M7")
def _(s):
    council_of_three(s)
    acks, _ = ask(s, "ann", "ben", "cat")
    s.remove("ann", "ben", acks=s.base, expect="needs_quorum")
    s.remove("eve", "ann", acks=acks)
    s.note("ben")


@council_case("two councils' removals beside each other", "Q4")
def _(s):
    council_of_three(s)
    one, _ = ask(s, "ann", "ben", "cat")
    other, _ = ask(s, "cat", "ann", "ben", acks=s.base)
    s.remove("eve", "ann", acks=one)
    s.remove("dan", "cat", acks=other)
    s.note("ann", expect="unknown_author")
    s.note("cat", expect="unknown_author")
    s.note("ben")


@council_case("a signer whom the council excludes beside what it signs", "Q4")
def _(s):
    council_of_three(s)
    one, _ = ask(s, "ann", "ben", "cat")
    other, _ = ask(s, "dan", "ann", "cat", acks=s.base)
    s.remove("eve", "ann", acks=one)
    s.remove("eve", "dan", acks=other)
    s.note("dan", expect="unknown_author")


@council_case("a council with an excluded member", "Q4", "M14")
def _(s):
    council_of_three(s)
    p = s.propose("eve", "dan")
    a = s.approve("ann", p)
    acks, _ = ask(s, "ann", "ben", "cat", acks=s.base)
    s.remove("eve", "ann", acks=acks)
    s.approve("ben", p)
    s.remove("eve", "dan", expect="needs_quorum|not_permitted")
    s.remove("eve", "dan", acks=sorted([a, s.approve("ben", p, acks=[p])]))


@council_case("a signer who left and was granted owner again signs no more", "Q4", "M14")
def _(s):
    council_of_three(s)
    p = s.propose("eve", "dan")
    s.approve("ann", p)
    s.approve("cat", p)
    s.remove("ann", "ann")
    s.grant("ben", "ann", "owner")
    s.approve("ann", p, expect="not_permitted")
    s.remove("eve", "dan", expect="needs_quorum|not_permitted")
    s.approve("ben", p)
    s.remove("eve", "dan")


@council_case("a removal by the council is used up, not its founders", "Q3", "Q4")
def _(s):
    council_of_three(s)
    acks, _ = ask(s, "dan", "ben", "cat")
    s.remove("eve", "dan", acks=acks)
    s.grant("ann", "dan", "admin")
    s.remove("eve", "dan", expect="needs_quorum|not_permitted")
    s.remove("ben", "dan")


@council_case("the council needs no approvals of a quorum, and a quorum not those of the council", "Q4", "R6")
def _(s):
    council_of_three(s)
    s.quorum("ann", 2, ["dan", "eve"])
    p = s.propose("eve", "ann")
    s.approve("ben", p)
    s.remove("ben", "ann", expect="needs_quorum")
    s.approve("cat", p)
    s.remove("ben", "ann")
    p = s.propose("eve", "fay")
    s.approve("dan", p)
    s.approve("eve", p)
    s.remove("ben", "fay")


@council_case("a quorum's removal of who publishes the council's", "Q4", "R6")
def _(s):
    council_of_three(s)
    s.quorum("ann", 1, ["dan"])
    p = s.propose("dan", "eve")
    s.approve("dan", p)
    base = s.heads()
    acks, _ = ask(s, "ann", "ben", "cat", by="eve")
    s.remove("eve", "ann", acks=acks)
    s.remove("dan", "eve", acks=base)
    s.note("ann", expect="unknown_author")


@council_case("a founder who tries to change the council", "M1", "Q4")
def _(s):
    council_of_three(s)
    owners = [s.id("ann")]
    certificate = crypto.sign(s.repo_seed, crypto.repo_digest(s.repo, "again", [*owners, s.id("dan")], 2))
    states = s.states(s.new_epoch())
    s.commit(
        "ann", ["init3", "again", [*owners, s.id("dan")], certificate, states, 2], expect="not_permitted"
    )
    s.grant("ann", "dan", 6, expect="bad_body")
    s.quorum("ann", 1, ["ann"])
    s.remove("ann", "ben", expect="needs_quorum")
    acks, _ = ask(s, "ann", "ben", "cat")
    s.remove("eve", "ann", acks=acks)


@council_case("a council excludes all others, and stays", "Q4")
def _(s):
    council_of_three(s)
    for user in ("cat", "dan"):
        acks, _ = ask(s, user, "ann", "ben")
        s.remove("eve", user, acks=acks)
    p = s.propose("eve", "ben")
    s.approve("ann", p)
    s.remove("ann", "ben", expect="needs_quorum")
    s.approve("ben", p)
    s.remove("ann", "ben")
    s.note("ann")


@council_case("content of an excluded founder", "Q4", "N1", "N2")
def _(s):
    council_of_three(s)
    b = s.branch("eve", adder="ann")
    one = s.note("ann", branch=b)
    acks, _ = ask(s, "ann", "ben", "cat")
    s.expected[s.note("ann", branch=b)] = "void"
    s.remove("eve", "ann", feeds=[(b, 1, one)], acks=acks)


@council_case("an init with a council outside the root branch", "M1")
def _(s):
    council_of_three(s)
    b = s.branch("ann")
    s.commit("ann", ["init3", "a repo", [s.id("ann")], bytes(64), s.states(s.now), 2], branch=b)


@council_case("founders of a council sign for no checkpoint", "M14")
def _(s):
    council_of_three(s)
    b = s.branch("eve", adder="ann")
    p = s.commit("eve", ["propose-checkpoint1", b, s.heads(b)])
    s.approve("ann", p, expect="not_permitted")
