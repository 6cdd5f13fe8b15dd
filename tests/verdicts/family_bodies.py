"""Named histories of bodies: each kind well-formed and malformed, and each bound."""

from .bodies import SAYABLE
from .cases import add, case
from .codec import MOST, Raw, encode
from .family_rights import said
from .story import FOREVER

ID = bytes(range(32))
REF = [ID, ID]
STATES = [ID, ID, bytes(72)]
MAP = Raw(b"\x80")
FLOAT = Raw(b"\xca\x3f\x80\x00\x00")

# A well-formed body of each kind, and whether its place is the root branch.
EXAMPLES = {
    "init2": (True, ["a repo", [ID], bytes(64), STATES]),
    "init3": (True, ["a repo", [ID], bytes(64), STATES, 2]),
    "branch-add2": (True, [ID, "name", REF]),
    "branch-link1": (True, [ID]),
    "invite1": (True, [ID, 2, 1, FOREVER]),
    "join1": (True, [ID, bytes(64)]),
    "grant2": (True, [ID, 2]),
    "remove1": (True, [ID, None, [[ID, 1, ID]]]),
    "revoke1": (True, [ID]),
    "adopt1": (True, [ID, [ID]]),
    "epoch-open1": (True, [[[ID, ID]]]),
    "epoch-hand1": (True, [ID, ID, ID, [[ID, ID, None]]]),
    "branch-edit1": (True, [ID, "name", None]),
    "tag1": (True, ["name", ID, None]),
    "quorum1": (True, [[ID], 1, True]),
    "propose-checkpoint1": (True, [ID, [ID]]),
    "propose-removal1": (True, [ID, None]),
    "approve1": (True, [ID]),
    "offer1": (True, [ID, True, "note", b""]),
    "answer1": (True, [ID, True]),
    "post1": (False, ["text"]),
    "branch-root1": (False, []),
    "checkpoint1": (False, [ID]),
    "compaction1": (False, [[ID]]),
    "set1": (False, [["a"], ["b"], [[ID, [0]]]]),
    "dict1": (False, [[["k", "v"]], ["e"], [[ID, [1]]]]),
    "text1": (False, [b"update", [ID]]),
    "text-snapshot1": (False, [[[ID, b"update", [ID]]]]),
    "set-squeeze1": (False, ["a", None, [[ID, ["a"]]]]),
    "dict-squeeze1": (False, ["a", "b", [[ID, [["a", "v"]]]]]),
    "files1": (False, [[["name", 12]]]),
    "fork1": (False, [ID, [ID]]),
    "carried1": (False, [ID, ID, ID, 5, encode(["post1", "text"])]),
    "merge1": (False, [ID, [ID]]),
    "imported1": (False, ["source", "author", -1, "text"]),
}
# Bodies that no rule reads, of kinds that can be said.
FREE = {
    "json1": [[["k", "1"]], ["g"], [ID]],
    "json-squeeze1": ["a", None, [[ID, [["a", "1"]]]]],
}
# Fields that may be nil, so that nil is not wrong there.
NIL = {
    ("remove1", 1),
    ("branch-edit1", 1),
    ("branch-edit1", 2),
    ("tag1", 2),
    ("propose-removal1", 1),
    ("set-squeeze1", 1),
    ("dict-squeeze1", 1),
}


def many(s, root, bodies, expect):
    """Write bodies, each in a commit of its own, all to one end."""
    b = None if root else s.branch("ann")
    for body in bodies:
        data = body if isinstance(body, bytes) else encode(body)
        s.commit("ann", None, branch=b, body_data=data, expect=expect)
    s.note("ann", branch=b)


def elsewhere(s, root, bodies, expect):
    """Write them where such a body means nothing."""
    many(s, not root, bodies, expect)


for tag, (root, values) in EXAMPLES.items():
    whole = [tag, *values]
    wrong = [
        [*whole, None],
        [*whole[:-1], [*whole[-1], MAP]] if values and type(values[-1]) is list else [*whole, 1],
    ]
    if values:
        wrong.append(whole[:-1])
    add(
        f"{tag} with a field too many or too few",
        ["shape"],
        many,
        root=root,
        bodies=wrong,
        expect="bad_body",
    )
    for number, value in enumerate(values):
        others = [MAP, FLOAT, -1 if type(value) is not int or value >= 0 else "text", 2**53]
        if (tag, number) not in NIL:
            others.append(None)
        if (
            type(value) is bytes
            and tag not in ("offer1", "text1", "text-snapshot1")
            and not (tag == "carried1" and number == 4)
        ):
            others += [value[:-1], value + b"\0"]
        if type(value) is bytes:
            others.append("text")
        elif type(value) is str:
            others.append(b"bytes")
        elif type(value) is list:
            others += [[MAP], [[[]]], b""]
        elif value is not True and (tag, number) != ("branch-edit1", 2):
            others.append(True)
        bodies = [[tag, *values[:number], other, *values[number + 1 :]] for other in others]
        add(
            f"{tag} with another field {number}",
            ["shape"],
            many,
            root=root,
            bodies=bodies,
            expect="bad_body",
        )
    data = encode(whole)
    odd = [
        data + b"\0",
        data[:-1] if len(data) > 1 + len(tag) + 1 else data + b"\xc0",
        bytes((0xDC, 0, len(whole))) + data[1:],
        data[:1] + b"\xd9" + bytes((len(tag),)) + data[2:],
    ]
    add(f"{tag} in other encodings", ["shape"], many, root=root, bodies=odd, expect="bad_body")
    if tag not in ("epoch-init3", "files1", "carried1"):
        add(
            f"{tag} malformed where it means nothing",
            ["shape"],
            elsewhere,
            root=root,
            bodies=[[*whole, None]],
            expect="bad_body",
        )
    if root:
        add(f"{tag} outside the root branch", ["V7"], many, root=False, bodies=[whole], expect="accepted")
    elif tag not in ("files1",):
        add(f"{tag} in the root branch", ["V7"], many, root=True, bodies=[whole], expect="accepted")


def bound(s, root, body, right, how=None):
    """A body at a bound: one that is right, or one beyond."""
    how = dict(how or {})
    b = None if root else s.branch("ann")
    s.commit("ann", body, branch=b, expect="accepted" if right else "bad_body", **how)


def ids(count):
    """So many different ids."""
    return [number.to_bytes(32, "big") for number in range(count)]


BOUNDS = [
    ("a tag's name", True, lambda n: ["tag1", "ä" * n, ID, None], (1, 255), (0, 256)),
    ("a branch's name", True, lambda n: ["branch-edit1", ID, "\U0001f600" * n, None], (1, 255), (0, 256)),
    ("the text of a post", False, lambda n: ["post1", "x" * n], (0, 262144), (262145,)),
    ("the permission of a grant", True, lambda n: ["grant2", ID2, n], (), (0, 6)),
    ("the permission of an invitation", True, lambda n: ["invite1", ID, n, 1, 1], (1, 2), (0, 6)),
    ("the uses of an invitation", True, lambda n: ["invite1", ID, 1, n, 1], (1, 10000), (0, 10001)),
    ("the expiry of an invitation", True, lambda n: ["invite1", ID, 1, 1, n], (0, MOST), (MOST + 1, -1)),
    ("what a removal keeps", True, lambda n: ["remove1", ID, n, []], (), (0, 6)),
    ("commits that an adoption names", True, lambda n: ["adopt1", ID, ids(n)], (1, 1024), (0, 1025)),
    ("the threshold of a quorum", True, lambda n: ["quorum1", [ID], n, True], (), (0, 65)),
    ("signers of a quorum", True, lambda n: ["quorum1", ids(n), 1, True], (), (0, 65)),
    (
        "commits that a proposal names",
        True,
        lambda n: ["propose-checkpoint1", ID, ids(n)],
        (1, 128),
        (0, 129),
    ),
    ("what a proposal keeps", True, lambda n: ["propose-removal1", ID, n], (1, 5), (0, 6)),
    (
        "epochs that are opened",
        True,
        lambda n: ["epoch-open1", [[one, ID] for one in ids(n)]],
        (),
        (0, 2049),
    ),
    (
        "members who are handed an epoch",
        True,
        lambda n: ["epoch-hand1", ID, ID, ID, [[i, ID, None] for i in ids(n)]],
        (),
        (0, 1501),
    ),
    (
        "feeds that a removal names",
        True,
        lambda n: ["remove1", ID, None, [[one, 1, ID] for one in ids(n)]],
        (),
        (4097,),
    ),
    ("items that a set adds", False, lambda n: ["set1", ["i"] * n, [], []], (0, 1024), (1025,)),
    ("items that a set deletes", False, lambda n: ["set1", [], ["i"] * n, []], (0, 1024), (1025,)),
    ("characters of an item", False, lambda n: ["set1", ["é" * n], [], []], (1024,), (1025,)),
    (
        "what a set replaces",
        False,
        lambda n: ["set1", [], [], [[one, [0]] for one in ids(n)]],
        (0, 2048),
        (2049,),
    ),
    ("values that a dict puts", False, lambda n: ["dict1", [["k", "v"]] * n, [], []], (0, 256), (257,)),
    ("keys that a dict erases", False, lambda n: ["dict1", [], ["k"] * n, []], (0, 256), (257,)),
    ("characters of a key", False, lambda n: ["dict1", [["k" * n, "v"]], [], []], (1024,), (1025,)),
    ("characters of a value", False, lambda n: ["dict1", [["k", "v" * n]], [], []], (262144,), (262145,)),
    ("bytes of an update", False, lambda n: ["text1", bytes(n), []], (1, 384 * 1024), (0, 384 * 1024 + 1)),
    (
        "updates of a snapshot",
        False,
        lambda n: ["text-snapshot1", [[ID, b"u", []]] * n],
        (1, 2048),
        (0, 2049),
    ),
    (
        "commits of a snapshot",
        False,
        lambda n: ["set-squeeze1", "", None, [[i, ["x"]] for i in ids(n)]],
        (0, 8192),
        (8193,),
    ),
    (
        "items of a commit of a snapshot",
        False,
        lambda n: ["set-squeeze1", "", None, [[ID, ["x"] * n]]],
        (1, 1024),
        (0, 1025),
    ),
    (
        "entries of a commit of a snapshot",
        False,
        lambda n: ["dict-squeeze1", "", None, [[ID, [["k", "v"]] * n]]],
        (1, 256),
        (0, 257),
    ),
    ("commits that a fork names", False, lambda n: ["fork1", ID, ids(n)], (1, 128), (0, 129)),
    ("commits that a merge names", False, lambda n: ["merge1", ID, ids(n)], (1, 128), (0, 129)),
    ("the source of an import", False, lambda n: ["imported1", "s" * n, "", 0, ""], (1, 255), (0, 256)),
    ("the author of an import", False, lambda n: ["imported1", "s", "a" * n, 0, ""], (0, 255), (256,)),
    (
        "the time of an import",
        False,
        lambda n: ["imported1", "s", "", n, ""],
        (-MOST, MOST),
        (-MOST - 1, MOST + 1),
    ),
    ("a body's tag", False, lambda n: ["t" * n, 1], (1, 31), (32,)),
]
ID2 = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
for title, root, make, right, wrong in BOUNDS:
    for number in right:
        add(f"{title}: {number}", ["section 11"], bound, root=root, body=make(number), right=True)
    for number in wrong:
        add(
            f"{title}: {number} is out of bounds",
            ["section 11"],
            bound,
            root=root,
            body=make(number),
            right=False,
        )


@case("lists that name something twice where only words are said", "section 5")
def _(s):
    b = s.branch("ann")
    s.commit("ann", ["adopt1", b, [b, b]])
    s.commit("ann", ["propose-checkpoint1", b, [b, b]])
    s.commit("ann", ["set1", ["a", "a"], ["a", "a"], [[b, [0]], [b, [0]]]], branch=b)
    s.commit("ann", ["merge1", b, [b, b]], branch=b)
    s.commit("ann", ["quorum1", [b, b], 60, True], branch=b)
    s.commit("ann", ["epoch-open1", [[b, b], [b, b]]], branch=b)
    s.commit("ann", ["epoch-hand1", b, b, b, [[b, b, None], [b, b, b]]], branch=b)
    s.commit("ann", ["remove1", b, None, [[b, 1, b], [b, 1, b]]], branch=b)


@case("an offer with a note of 1,000 characters and a link of 16 KiB", "section 11")
def _(s):
    b = s.branch("ann")
    s.commit("ann", ["offer1", b, True, "n" * 1000, bytes(16384)])
    s.commit("ann", ["offer1", b, True, "n" * 1001, b""], expect="bad_body")
    s.commit("ann", ["offer1", b, True, "", bytes(16385)], expect="bad_body")


@case("free bodies say nothing where they do not decode", "section 5")
def _(s):
    for tag in (
        "profile1",
        "hide1",
        "devices1",
        "hand-on2",
        "device1",
        "device-end1",
        "lobby1",
        "lobby-add2",
        "lobby-answer2",
    ):
        s.commit("ann", [tag, None, 1, 2, 3])
        s.commit("ann", [tag])
    s.commit("ann", ["profile1", " bad  name ", 99])


@case("bodies of unknown tags", "section 5")
def _(s):
    b = s.branch("ann")
    for branch in (None, b):
        s.commit("ann", ["x", [[], None]], branch=branch)
        s.commit("ann", ["Any text, at 31 bytes at most..", -1], branch=branch)
        s.commit("ann", ["grant3", 5], branch=branch)
        s.commit("ann", ["ü", True], branch=branch)


@case("bodies that are no bodies", "section 5")
def _(s):
    b = s.branch("ann")
    for branch in (None, b):
        for data in (
            b"",
            b"\x90",
            b"\xc0",
            b"post1",
            encode(["", 1]),
            encode([1, "post1"]),
            encode([b"post1", "x"]),
            b"\x92\xa2\xff\xfe\x01",
            b"\x91\xa5post",
            b"\x80",
        ):
            s.commit("ann", branch=branch, body_data=data, expect="bad_body")


@case("a body of 512 KiB and one beyond", "section 11")
def _(s):
    b = s.branch("ann")
    s.commit("ann", ["odd1", bytes(512 * 1024 - 11)], branch=b)
    s.commit("ann", ["odd1", bytes(512 * 1024 - 10)], branch=b, expect="bad_body")


# V8


@case("files", "V8")
def _(s):
    b = s.branch("ann")
    f = ids(3)
    s.commit("ann", ["files1", [["one", 1], ["two", 2**40]]], branch=b, files=f[:2])
    s.commit("ann", ["files1", [["one", 1]]], branch=b, files=f[:2], expect="bad_files")
    s.commit("ann", ["files1", [["one", 1]]], branch=b, expect="bad_files")
    s.commit("ann", ["files1", []], branch=b, expect="bad_files")
    s.commit("ann", ["files1", []], branch=b, nfiles=f)
    s.commit("ann", ["files1", [["one", 2**40 + 1]]], branch=b, files=f[:1], expect="bad_body")
    s.commit("ann", ["post1", "with a file"], branch=b, files=f[:1], file_keys=[bytes(32)])
    carried = ["carried1", b, b, s.id("ann"), 1]
    s.commit("ann", [*carried, encode(["files1", [["one", 1]]])], branch=b, files=f[:1])
    s.commit("ann", [*carried, encode(["files1", [["one", 1]]])], branch=b, expect="bad_files")


@case("carried bodies", "forks")
def _(s):
    b = s.branch("ann")
    carried = ["carried1", b, b, s.id("ann"), 1]
    for body in (
        ["post1", "text"],
        ["grant1", 1],
        ["grant2", "malformed"],
        ["lobby1"],
        ["carried1", 1],
        ["odd", 1],
        ["compaction1", "malformed"],
        ["merge1", "malformed"],
        ["text-snapshot1", []],
    ):
        s.commit("ann", [*carried, encode(body)], branch=b)
    for body in (
        ["post1"],
        ["post1", 1],
        ["imported1", "", "", 0, ""],
        ["set1"],
        ["dict1"],
        ["text1", b"", []],
        ["files1", 1],
    ):
        s.commit("ann", [*carried, encode(body)], branch=b, expect="bad_body")
    for data in (b"", b"\x90", b"text", encode([1])):
        s.commit("ann", [*carried, data], branch=b, expect="bad_body")


@case("a fork instead of a root", "forks")
def _(s):
    b = s.branch("ann")
    c = s.branch("ann", body=["fork1", b, [b]])
    d = s.branch("ann", body=["post1", "first"])
    e = s.branch("ann", body=["grant2", s.id("ben"), 5])
    for branch in (c, d, e):
        s.note("ann", branch=branch)


# V9


for tag in sorted(SAYABLE):

    def saying(s, tag):
        """A commit that says its kind, whatever its body holds."""
        b = s.branch("ann")
        values = FREE[tag] if tag in FREE else EXAMPLES[tag][1]
        s.commit("ann", [tag, *values], branch=b, metadata=said(tag))
        for data in (encode(["grant2", 1]), encode([tag, 1, 2, 3, 4, 5, 6]), b"", b"\xc1\xc1", bytes(1000)):
            s.commit("ann", branch=b, body_data=data, metadata=said(tag))

    add(f"commits that say {tag}", ["V9"], saying, tag=tag)


@case("metadata that means nothing", "V9")
def _(s):
    b = s.branch("ann")
    for metadata in (
        said("files1"),
        said("compaction1"),
        said("text-snapshot1"),
        said("carried1"),
        said("grant2"),
        encode(["kind2", "post1"]),
        encode(["kind1"]),
        encode(["kind1", "post1", 1]),
        b"\xc1",
        b"text",
        encode("post1"),
        encode(["kind1", b"post1"]),
        b"\x92\xa5kind1\xd9\x05post1",
        said("post1") + b"\0",
    ):
        s.commit("ann", ["post1", "judged"], branch=b, metadata=metadata)
        s.commit("ann", ["post1", 1], branch=b, metadata=metadata, expect="bad_body")
    s.commit("ann", ["post1", 1], metadata=said("post1"), expect="bad_body")
    s.commit("ann", ["post1", "in the root branch"], metadata=said("post1"))


NAMES = ("a", "é" * 64, "a/b", ".hidden", "...", "a b", "x" * 128)
NO_NAMES = (
    "",
    "x" * 129,
    "é" * 64 + "x",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "./a",
    "a\nb",
    "\x7f",
    "a\x9f",
    b"a",
    1,
)


@case("metadata that names a document", "V9")
def _(s):
    b = s.branch("ann")
    for tag in sorted(SAYABLE - {"post1", "imported1"}):
        for name in NAMES:
            s.commit("ann", ["grant2", 1], branch=b, metadata=encode(["kind2", tag, name]))
    for name in NO_NAMES:
        s.commit("ann", ["set1", 1], branch=b, metadata=encode(["kind2", "set1", name]), expect="bad_body")
    for tag in ("post1", "imported1", "carried1", "files1"):
        s.commit("ann", ["set1", 1], branch=b, metadata=encode(["kind2", tag, "a"]), expect="bad_body")
    s.commit("ann", ["set1", [], [], []], metadata=encode(["kind2", "set1", "a"]))
    s.commit("ann", ["set1", 1], metadata=encode(["kind2", "set1", "a"]), expect="bad_body")


@case("a compaction that says another kind", "V9", "M15")
def _(s):
    s.grant("ann", "ben", "write")
    b = s.branch("ann")
    s.commit("ben", ["compaction1", []], branch=b, metadata=said("post1"))
    s.commit("ben", ["compaction1", []], branch=b, metadata=said("compaction1"), expect="not_permitted")
    s.commit("ben", ["checkpoint1", b], branch=b, metadata=said("set1"))
    s.commit("ben", ["checkpoint1", b], branch=b, expect="unknown_proposal")
