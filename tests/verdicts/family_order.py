"""Named histories of the order of commits: V2 to V6 and V10."""

import base64

from .cases import case
from .codec import MOST
from .family_bodies import ID

GROUP = "group"


@case("first commits and others", "V2")
def _(s):
    b = s.branch("ann")
    s.note("ann", branch=b, acks=[], expect="second_root", rank=0)
    s.note("ann", acks=[b], first=True, expect="second_root", place=s.heads())
    s.note("ann", acks=[], expect="second_root")
    s.note("ann", branch=b)


@case("places", "V3")
def _(s):
    b = s.branch("ann")
    init, heads = s.graph.init, s.heads()
    s.note("ann", branch=b, tangles=[], expect="bad_group_place")
    s.note("ann", branch=b, tangles=[["reply", init, heads]], expect="bad_group_place")
    s.note("ann", branch=b, tangles=[[GROUP, s.repo, heads]], expect="bad_group_place")
    s.note("ann", branch=b, tangles=[[GROUP, b, heads]], expect="bad_group_place")
    s.note("ann", branch=b, tangles=[[GROUP, init, []]], expect="bad_group_place")
    s.note("ann", branch=b, place=[b], expect="bad_group_place")
    s.note("ann", branch=b, place=[*heads, b], expect="bad_group_place")
    s.note("ann", tangles=[[GROUP, init, heads]], expect="bad_group_place")
    s.note("ann", tangles=[[GROUP, init, []]], expect="bad_group_place")
    s.branch("ann", add=False, tangles=[], expect="bad_group_place")
    s.branch("ann", add=False, tangles=[[GROUP, init, []]], expect="bad_group_place")
    s.note("ann", branch=b, tangles=[["reply", init, []]], expect="bad_group_place")
    s.note("ann", branch=b, tangles=[[GROUP, init, heads], ["reply", b, [b]]])
    s.note("ann", branch=b, place=[*heads, init])
    s.note("ann", tangles=[["grouq", init, heads]])


@case("places do not go back", "V6")
def _(s):
    b = s.branch("ann")
    one = s.heads()[0]
    two = s.note("ann")
    other = s.note("ann", acks=[one])
    c = s.note("ann", branch=b, place=[two])
    s.note("ann", branch=b, acks=[c], place=[one], expect="bad_group_place")
    s.note("ann", branch=b, acks=[c], place=[other], expect="bad_group_place")
    d = s.note("ann", branch=b, acks=[c], place=[two])
    e = s.note("ann", branch=b, acks=[c], place=[two, other])
    s.note("ann", branch=b, acks=[d, e], place=[other], expect="bad_group_place")
    s.note("ann", branch=b, acks=[d, e], place=[two], expect="bad_group_place")
    three = s.note("ann")
    s.note("ann", branch=b, acks=[d, e], place=[three])
    s.note("ann", branch=b, acks=[b], place=[one])


@case("rejected causes", "V4")
def _(s):
    b = s.branch("ann")
    bad = s.note("ann", rank=9, expect="bad_rank")
    s.note("ann", acks=[bad], rank=10, expect="rejected_cause")
    s.note("ann", branch=b, place=[bad], expect="rejected_cause")
    worse = s.note("ann", branch=b, place=[*s.heads(), bad], expect="rejected_cause")
    s.note("ann", branch=b, acks=[worse], expect="rejected_cause")
    s.note("ann", acks=[bad, ID], rank=10, expect="rejected_cause")
    sign = s.note("ann", sign_with=s.secret(), expect="bad_signature")
    s.note("ann", acks=[sign], rank=1, expect="rejected_cause")
    s.note("ann", branch=b)


@case("causes that are missing", "V5")
def _(s):
    b = s.branch("ann")
    gone = s.note("ann", publish=False, expect="left out")
    s.expected[gone] = "unseen"
    s.note("ann", acks=[gone], expect="pending")
    s.note("ann", branch=b, place=[gone], expect="pending")
    last = s.heads()
    s.note("ann", acks=last, expect="pending")
    away = s.note(
        "ann",
        branch=b,
        acks=[b],
        place=[s.graph.init, *s.ledger.commits[b].place[1]][:1],
        publish=False,
        expect="left out",
    )
    s.expected[away] = "unseen"
    s.note("ann", branch=b, acks=[away], expect="pending", place=[gone])
    s.note("ann", acks=[ID], expect="pending")


@case("acks of other branches", "V6")
def _(s):
    b, c = s.branch("ann"), s.branch("ann")
    s.note("ann", acks=[*s.heads(), b], expect="ack_of_other_branch")
    s.note("ann", acks=[b], expect="ack_of_other_branch", rank=1)
    s.note("ann", branch=b, acks=[c], expect="ack_of_other_branch")
    s.note("ann", branch=b, acks=[b, c], expect="ack_of_other_branch")
    s.note("ann", branch=b, acks=s.heads(), expect="ack_of_other_branch")
    s.note("ann", branch=b, acks=[s.graph.init], expect="ack_of_other_branch")
    s.note("ann", branch=b, acks=[b])


@case("acks that acks imply", "V10")
def _(s):
    b = s.branch("ann")
    init = s.graph.init
    one = s.note("ann")
    two = s.note("ann")
    three = s.note("ann")
    s.note("ann", acks=[two, three], expect="implied_ack")
    s.note("ann", acks=[one, three])
    s.note("ann", acks=[init, three])
    c = s.note("ann", branch=b)
    d = s.note("ann", branch=b)
    s.note("ann", branch=b, acks=[c, d], expect="implied_ack")
    s.note("ann", branch=b, acks=[b, c], expect="implied_ack")
    s.note("ann", branch=b, acks=[b, d])


@case("ranks", "V6")
def _(s):
    b = s.branch("ann")
    for branch in (None, b):
        s.note("ann", branch=branch, rank=0, expect="bad_rank")
        s.note("ann", branch=branch, rank=99, expect="bad_rank")
        s.note("ann", branch=branch, rank=MOST, expect="bad_rank")
        s.note("ann", branch=branch)
    s.branch("ann", add=False, rank=1, expect="bad_rank")
    d = s.note("ann", branch=b, acks=[b])
    e = s.note("ann", branch=b)
    s.note("ann", branch=b, acks=[d, e], expect="implied_ack|bad_rank", rank=2)
    f = s.note("ann", branch=b, acks=[b])
    s.note("ann", branch=b, acks=[e, f], rank=s.ledger.commits[f].rank + 1, expect="bad_rank")


@case("an init of rank 1", "V6", found=False)
def _(s):
    s.found(rank=1, expect="bad_rank")


@case("branches that were not added", "V2")
def _(s):
    b = s.branch("ann", add=False)
    heads = s.heads()
    s.note("ann", branch=b, acks=[b], rank=1, expect="unknown_branch")
    s.add("ann", b)
    s.note("ann", branch=b, acks=[b], place=heads, expect="unknown_branch")
    s.note("ann", branch=b, acks=[b])


@case("a first commit that nobody adds", "V2")
def _(s):
    b = s.branch("ann", add=False, expect="pending")
    c = s.branch("nobody", add=False, expect="unknown_author")
    s.note("ann", branch=b, acks=[b], rank=1, expect="pending")
    s.note("ann", branch=c, acks=[c], rank=1, expect="rejected_cause")
    s.add("ann", c)


@case("a first commit beside what adds it", "V2")
def _(s):
    n = s.note("ann")
    b = s.branch("ann", add=False, place=[s.graph.init])
    m = s.note("ann", acks=[n])
    s.add("ann", b, acks=[n])
    s.note("ann", branch=b)
    s.note("ann", branch=b, acks=[b], place=[m], expect="unknown_branch")


@case("many branches", "V2")
def _(s):
    branches = [s.branch("ann", f"branch {n}") for n in range(6)]
    for b in branches * 2:
        s.note("ann", branch=b)
    return {"publications": [base64.b64decode(base64.b64encode(data)) for data in reversed(s.publications)]}
