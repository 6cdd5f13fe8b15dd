"""Named histories of commits: their shapes, encodings, marks and signatures."""

import hashlib

from nacl import bindings

from . import crypto
from .cases import add, case
from .codec import MOST, encode
from .crypto import ZEROS
from .family_bodies import FLOAT, ID, MAP, ids
from .family_rights import SMALL
from .formats import commit_digest, make_block, make_commit

GROUP = "group"


# Shapes of commits.


def shaped(s, right, root=True, **how):
    """A commit with one thing in its header that is right or wrong."""
    b = None if root else s.branch("ann")
    s.note("ann", branch=b)
    s.note("ann", branch=b, expect="accepted" if right else "bad_commit", **how)


SHAPES = [
    ("a feed link that names nothing", True, {"feed_previous": ID}),
    ("no feed link", False, {"feed_previous": None}),
    ("a feed link in the first", False, {"sequence": 1, "feed_previous": ID}),
    ("a forked feed", True, {"sequence": 1}),
    ("a feed sequence of 0", False, {"sequence": 0, "lipmaa": None}),
    ("a feed sequence far ahead", True, {"sequence": 13, "feed_previous": ID, "lipmaa": ID}),
    ("a feed sequence at the bound", True, {"sequence": MOST, "feed_previous": ID, "lipmaa": ID}),
    ("a feed sequence beyond the bound", False, {"sequence": MOST + 1, "feed_previous": ID, "lipmaa": ID}),
    ("no lipmaa link", False, {"sequence": 4, "feed_previous": ID, "lipmaa": None}),
    ("a lipmaa link where none belongs", False, {"sequence": 3, "feed_previous": ID, "lipmaa": ID}),
    ("a lipmaa link of the second", False, {"sequence": 2, "feed_previous": ID, "lipmaa": ID}),
    ("lipmaa links of the fifth", True, {"sequence": 5, "feed_previous": ID, "lipmaa": None}),
    ("lipmaa links of the eighth", True, {"sequence": 8, "feed_previous": ID, "lipmaa": ID}),
    ("deps that name nothing", True, {"deps": ids(128), "ndeps": [ID]}),
    ("deps that name something twice", False, {"deps": [ID, ID]}),
    ("129 deps", False, {"deps": ids(129)}),
    ("negative deps that name something twice", False, {"ndeps": [ID, ID]}),
    ("a dep and a negative dep", False, {"deps": [ID], "ndeps": [ID]}),
    ("129 negative deps", False, {"ndeps": ids(129)}),
    ("files", True, {"files": ids(3), "nfiles": [ID]}),
    ("128 files", True, {"files": ids(128)}),
    ("129 files", False, {"files": ids(129)}),
    ("files that are named twice", False, {"files": [ID, ID]}),
    ("negative files that are named twice", False, {"nfiles": [ID, ID]}),
    ("a file and a negative file", False, {"files": [ID], "nfiles": [ID]}),
    ("129 negative files", False, {"nfiles": ids(129)}),
    ("keys of files", True, {"files": ids(2), "file_keys": [bytes(32), b""]}),
    ("a key too few", False, {"files": ids(2), "file_keys": [b""]}),
    ("a key too many", False, {"files": ids(1), "file_keys": [b"", b""]}),
    ("a key without a file", False, {"file_keys": [b""]}),
    ("a key of 31 bytes", False, {"files": ids(1), "file_keys": [bytes(31)]}),
    ("a key of 33 bytes", False, {"files": ids(1), "file_keys": [bytes(33)]}),
    ("a timestamp at the bound", True, {"timestamp": MOST}),
    ("a timestamp of 0", True, {"timestamp": 0}),
    ("a timestamp beyond the bound", False, {"timestamp": MOST + 1}),
    ("a timestamp below 0", False, {"timestamp": -1}),
    ("a timestamp that is no whole number", False, {"timestamp": FLOAT}),
    ("metadata of 4 KiB", True, {"metadata": bytes(4096)}),
    ("metadata beyond 4 KiB", False, {"metadata": bytes(4097)}),
    ("metadata that is text", False, {"metadata": "text"}),
    ("a commit that does not say it is whole", True, {"whole": False}),
    ("whole as a number", False, {"whole": 1}),
    ("a tangle", True, {"tangles": [["reply", ID, [ID]]]}),
    ("a tangle without previous", True, {"tangles": [["reply", ID, []]]}),
    ("16 tangles", True, {"tangles": [[f"kind-{n:02}", ID, []] for n in range(16)]}),
    ("17 tangles", False, {"tangles": [[f"kind-{n:02}", ID, []] for n in range(17)]}),
    ("tangles out of order", False, {"tangles": [["reply", ID, []], ["edit", ID, []]]}),
    ("a kind of tangle twice", False, {"tangles": [["reply", ID, []], ["reply", ID, [ID]]]}),
    ("a kind of 32 characters", True, {"tangles": [["k" * 32, ID, []]]}),
    ("a kind of 33 characters", False, {"tangles": [["k" * 33, ID, []]]}),
    ("an empty kind", False, {"tangles": [["", ID, []]]}),
    ("a kind that begins with a digit", False, {"tangles": [["1st", ID, []]]}),
    ("a kind in capitals", False, {"tangles": [["Reply", ID, []]]}),
    ("a kind that ends its line", False, {"tangles": [["reply\n", ID, []]]}),
    ("a kind with all that it may have", True, {"tangles": [["a-1--z", ID, []]]}),
    ("128 previous", True, {"tangles": [["reply", ID, ids(128)]]}),
    ("129 previous", False, {"tangles": [["reply", ID, ids(129)]]}),
    ("a previous twice", False, {"tangles": [["reply", ID, [ID, ID]]]}),
    ("a tangle's root of 31 bytes", False, {"tangles": [["reply", ID[:31], []]]}),
    ("a reference without a key", False, {"reference": [ID]}),
    ("an epoch of 31 bytes", False, {"named": ID[:31]}),
    ("a branch that is a map", False, {"branch_id": MAP}),
]
for title, right, how in SHAPES:
    add(f"a commit with {title}", ["section 4"], shaped, right=right, **how)
for title in ("deps that name nothing", "files", "a forked feed", "metadata of 4 KiB"):
    how = next(values for name, _, values in SHAPES if name == title)
    add(f"a commit in a branch with {title}", ["section 4"], shaped, right=True, root=False, **how)


def encoded(s, twist):
    """A commit in another encoding."""
    body = encode(["post1", "a note"])
    _, body_id, body_key = make_block(s.now.convergence, body)
    content = [s.id("ann"), s.repo, s.now.id, True, True, 1, None, [], 5, b"", [body_id, body_key], []]
    acks, mark = s.heads(), crypto.branch_mark(s.now.key, s.repo)
    plain = make_commit(s.user("ann").seed, acks, 1, mark, [[], [], [], [], None], content)
    s.note("ann", acks=acks, plain=twist(plain), expect="bad_commit")
    s.note("ann")


ENCODINGS = {
    "with something behind it": lambda plain: plain + b"\0",
    "that is cut": lambda plain: plain[:-1],
    "with a long header": lambda plain: b"\xdc\x00\x04" + plain[1:],
    "with a long tag": lambda plain: plain[:1] + b"\xd9\x07" + plain[2:],
    "with a number in two bytes": lambda plain: plain.replace(b"\x05\xc4\x00", b"\xcc\x05\xc4\x00"),
    "that is empty": lambda plain: b"",
    "that is text": lambda plain: b"hello",
    "that is a map": lambda plain: b"\x84" + plain[1:],
    "of another kind": lambda plain: plain.replace(b"commit2", b"commot2"),
    "with a field more": lambda plain: b"\x95" + plain[1:] + b"\xc0",
}
for title, twist in ENCODINGS.items():
    add(f"a commit {title}", ["section 1"], encoded, twist=twist)


@case("a commit of 64 KiB and one beyond", "section 11")
def _(s):
    big = [[f"kind-{n:02}", ID, ids(120)] for n in range(15)]
    s.note("ann", tangles=big)
    s.note("ann", tangles=big, deps=ids(128), expect="bad_commit")


# Marks and signatures.


@case("marks", "section 4")
def _(s):
    b = s.branch("ann")
    s.note("ann", mark=bytes(8), expect="bad_mark")
    s.note("ann", mark=crypto.branch_mark(s.now.key, b), expect="bad_mark")
    s.note("ann", branch=b, mark=bytes(8), expect="bad_mark")
    s.note("ann", branch=b, mark=crypto.branch_mark(s.now.key, s.repo), expect="bad_mark")
    s.branch("ann", add=False, mark=crypto.branch_mark(s.now.key, s.repo), expect="bad_mark")
    s.branch("ann", add=False, mark=crypto.branch_mark(s.now.key, ZEROS), expect="bad_mark")
    s.note("ann", branch=b)


@case("the mark of another epoch", "section 4")
def _(s):
    b = s.branch("ann")
    old = s.now
    s.start("ann")
    s.note("ann", mark=crypto.branch_mark(old.key, s.repo), expect="bad_mark")
    s.note("ann", branch=b, mark=crypto.branch_mark(old.key, b), expect="bad_mark")
    s.note("ann", branch=b)


@case("an init without the mark of the root branch", "section 4", found=False)
def _(s):
    s.found(mark=bytes(8), expect="bad_mark")


@case("signatures of others", "section 6")
def _(s):
    b = s.branch("ann")
    s.grant("ann", "ben", "write")
    s.note("ann", sign_with=s.user("ben").seed, expect="bad_signature")
    s.note("ann", branch=b, sign_with=s.user("ben").seed, expect="bad_signature")
    s.note("ben", branch=b)


def odd_author(s, key):
    """A commit whose author is no key of the prime-order group, with what might pass for a signature."""
    body = encode(["post1", "a note"])
    _, body_id, body_key = make_block(s.now.convergence, body)
    content = [key, s.repo, s.now.id, False, True, 1, None, [], 5, b"", [body_id, body_key], []]
    plain = encode(["commit2", [[], [], [], [], None], content, key + bytes(32)])
    s.commit("ann", ["post1", "a note"], plain=plain, by_writer=False, expect="bad_signature")
    s.note("ann")


for number, key in enumerate(SMALL):
    add(f"an author that is no key ({number})", ["section 2"], odd_author, key=key)

ORDER = 2**252 + 27742317777372353535851937790883648493


@case("a signature whose S is not reduced", "section 2")
def _(s):
    body = encode(["post1", "a note"])
    _, body_id, body_key = make_block(s.now.convergence, body)
    content = [s.id("ann"), s.repo, s.now.id, True, True, 1, None, [], 5, b"", [body_id, body_key], []]
    plain = make_commit(
        s.user("ann").seed,
        s.heads(),
        1,
        crypto.branch_mark(s.now.key, s.repo),
        [[], [], [], [], None],
        content,
    )
    number = int.from_bytes(plain[-32:], "little") + ORDER
    s.note("ann", plain=plain[:-32] + number.to_bytes(32, "little"), expect="bad_signature")
    s.note("ann", plain=plain, rank=1)


def points(s):
    """A secret scalar with its key, and a point of order 8."""
    digest = bytearray(hashlib.sha512(s.user("ann").seed).digest()[:32])
    digest[0] &= 248
    digest[31] = digest[31] & 127 | 64
    return int.from_bytes(digest, "little") % ORDER, s.id("ann"), SMALL[3]


def signing(s, key, scalar, nonce, point, multiple=1):
    """A commit that is signed by hand: R is a given point, and the challenge a multiple of something."""
    body = encode(["post1", "a note"])
    _, body_id, body_key = make_block(s.now.convergence, body)
    acks, mark = s.heads(), crypto.branch_mark(s.now.key, s.repo)
    timestamp = 0
    while True:
        content = [key, s.repo, s.now.id, False, True, 1, None, [], timestamp, b"", [body_id, body_key], []]
        signed = encode([[], [], [], [], None]) + encode(content)
        message = commit_digest(acks, 1, mark, signed)
        challenge = int.from_bytes(hashlib.sha512(point + key + message).digest(), "little") % ORDER
        if challenge % multiple == 0:
            break
        timestamp += 1
    signature = point + ((nonce + challenge * scalar) % ORDER).to_bytes(32, "little")
    return b"\x94" + encode("commit2") + signed + encode(signature)


@case("signatures by hand", "section 2")
def _(s):
    scalar, key, _small = points(s)
    nonce = int.from_bytes(crypto.digest(b"nonce"), "little") % ORDER
    base = multiply(nonce)
    s.note("ann", plain=signing(s, key, scalar, nonce, base), rank=1, by_writer=False)
    s.note("ann")


@case("a signature whose R has a part of small order", "section 2")
def _(s):
    scalar, key, small = points(s)
    nonce = int.from_bytes(crypto.digest(b"nonce"), "little") % ORDER
    point = bindings.crypto_core_ed25519_add(multiply(nonce), small)
    s.note(
        "ann", plain=signing(s, key, scalar, nonce, point), rank=1, by_writer=False, expect="bad_signature"
    )
    s.note("ann")


@case("a signature whose R is of small order", "section 2")
def _(s):
    scalar, key, _small = points(s)
    s.note("ann", plain=signing(s, key, scalar, 0, SMALL[1]), rank=1, by_writer=False, expect="bad_signature")
    s.note("ann")


@case("an author whose key has a part of small order, and a signature that would hold", "section 2")
def _(s):
    scalar, key, small = points(s)
    mixed = bindings.crypto_core_ed25519_add(key, small)
    nonce = int.from_bytes(crypto.digest(b"nonce"), "little") % ORDER
    s.grant("ann", mixed, "write", expect="bad_user")
    s.note(
        "ann",
        plain=signing(s, mixed, scalar, nonce, multiply(nonce), 8),
        rank=1,
        by_writer=False,
        expect="bad_signature",
    )
    s.note("ann")


def multiply(number):
    """A multiple of the base point."""
    total, step = None, bytes.fromhex("58" + "66" * 31)
    while number:
        if number & 1:
            total = step if total is None else bindings.crypto_core_ed25519_add(total, step)
        step = bindings.crypto_core_ed25519_add(step, step)
        number >>= 1
    return total
