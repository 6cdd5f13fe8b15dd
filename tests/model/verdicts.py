"""Verdicts: what a commit, the commits that it acks and the root branch decide (V, P1 to P3, M, E). No node matters here.

Two verdicts wait: an init for its key (E3), a branch's first commit for the commit that pins it (V2).
"""

from tests.model.commits import ALL, ROOT, SEEN, WRITE, Branch, Hand, Init, Open, deciding, inits, key_of
from tests.model.epochs import boxes_after, opened
from tests.model.members import is_admitted, members, permission
from tests.model.switches import SETTINGS, memo, on


@memo
def is_right(one: int) -> bool:
    """Return True if a commit is to be accepted once its causes are, and what it waits for is there."""
    return one == 0 or (_is_shaped(one) and _fits_acks(one) and is_admitted(one) and _is_right_epoch(one))


def _is_shaped(one: int) -> bool:
    """V2, V3, P1: where it stands, and what it states in clear."""
    commit = ALL[one]
    if not commit.is_marked and on("P1 the mark"):
        return False
    if max(len(commit.acks), len(commit.places)) > SETTINGS.heads_max:
        return False
    if commit.branch == ROOT:
        return bool(commit.acks) and not commit.places
    if (
        not commit.places
        or (commit.kind == "first") != (one == commit.branch)
        or bool(commit.acks) == (one == commit.branch)
    ):
        return False
    return (
        one == commit.branch
        or not on("V2 added in the past of the place")
        or bool(adds_of(commit.branch, SEEN[one]))
    )


def adds_of(first: int, roots: frozenset[int]) -> list[int]:
    """Return the commits that add a branch, counting or not."""
    return [one for one in roots if ALL[one].kind == "add" and ALL[one].body == Branch(first)]


def _fits_acks(one: int) -> bool:
    """P3: the acked commits are of the branch, none acks another, ranks and places go on from theirs."""
    commit = ALL[one]
    acked = [ALL[a] for a in commit.acks]
    if on("P1 the rank") and commit.rank != 1 + max((a.rank for a in acked), default=-1):
        return False
    if on("P3 the branch of acks") and any(a.branch != commit.branch for a in acked):
        return False
    if on("V10 direct acks") and any(commit.acks & a.acks for a in acked):
        return False
    return not on("P3 monotony") or commit.branch == ROOT or all(a.places <= SEEN[one] for a in acked)


def _is_right_epoch(one: int) -> bool:
    """E2, E4, E5, M9 to M11."""
    commit, body, seen = ALL[one], ALL[one].body, SEEN[one]
    started = set(inits(seen))
    if on("E5 started in its past") and commit.epoch not in started:
        return False
    base = commit.epoch
    if isinstance(body, Init):
        if not _is_right_init(one, body):
            return False
        base = one
    elif isinstance(body, Open):
        if (body.wrong and on("M11 keys give marks")) or (
            on("M11 started in its past") and not body.epochs <= started
        ):
            return False
    elif isinstance(body, Hand):
        if not _is_right_hand(body, started, one):
            return False
        base = body.epoch
    if isinstance(body, Init) and not on("E4 inits"):
        return True
    if isinstance(body, Hand) and not on("E4 hand-overs: the epoch that is handed over"):
        base = commit.epoch
    return not on("E4") or started <= opened(base, seen | {one})


def _is_right_init(one: int, body: Init) -> bool:
    seen = SEEN[one]
    boxes, writers = boxes_after(seen)
    if on("E2 a box for each member") and set(boxes) - set(body.boxes):
        return False
    if on("E2 boxes for members alone") and set(body.boxes) - set(boxes):
        return False
    if on("E2 writers' boxes") and body.writers != writers:
        return False
    if on("E2 boxes follow from the key") and body.wrong:
        return False
    if body.wrong_keys and on("M11 keys give marks"):
        return False
    if not body.opens <= {*inits(seen)}:
        return False
    if on("E2 the epoch that it is published in among them") and ALL[one].epoch not in body.opens:
        return False
    return not on("E2 no mark twice") or all(key_of(one) != key_of(e) for e in inits(seen))


def _is_right_hand(body: Hand, started: set[int], one: int) -> bool:
    if on("M10 started in its past") and body.epoch not in started:
        return False
    if on("M10 boxes are right") and body.wrong:
        return False
    if on("M10 to members") and not set(body.users) <= members(deciding(SEEN[one])):
        return False
    ops = deciding(SEEN[one])
    return not on("M10 writers' boxes for writers") or all(
        permission(ops, user) >= WRITE for user in body.writers
    )


def is_waiting_for_key(one: int, keys: frozenset[int] | set[int]) -> bool:
    """Return True if an init waits for the key of the epoch that it starts (E3), or others for keys (none do, by E4)."""
    body = ALL[one].body
    if isinstance(body, Init):
        return on("E3") and key_of(one) not in keys
    if isinstance(body, Open):
        return not all(key_of(e) in keys for e in body.epochs)
    return isinstance(body, Hand) and key_of(body.epoch) not in keys


def is_waiting_for_pin(one: int, accepted: frozenset[int] | set[int]) -> bool:
    """V2: whether a branch's first commit waits for a commit that adds the branch."""
    if ALL[one].kind != "first" or not on("V2 first commits wait for a pin"):
        return False
    return not adds_of(one, frozenset(other for other in accepted if ALL[other].branch == ROOT))
