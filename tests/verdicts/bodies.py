"""Bodies: their shapes, of the core and of the profiles, and what is read of them."""

import re

from .codec import MOST, Refused, decode, fields, flag, identity, listed, maybe, number, raw, text

permission = number(1, 5)
reference = fields(identity, identity)
states = fields(identity, identity, raw(72))
name = text(1, 255)
words = text(0, 256 * 1024)
ids_128 = listed(identity, 0, 128)
ids_128_some = listed(identity, 1, 128)
item = text(0, 1024)
items = listed(item, 0, 1024)
replaced = listed(fields(identity, listed(number(0, 2047), 0, 2048)), 0, 2048)
dict_key = text(0, 1024)
dict_value = text(0, 256 * 1024)
update = raw(1, 384 * 1024)
imported_time = number(-MOST, MOST)

founding = (
    ("name", name),
    ("owners", listed(identity, 1, 64)),
    ("certificate", raw(64)),
    ("states", states),
)
# Fields and their shapes by tag.
SHAPES = {
    "init2": founding,
    "init3": (*founding, ("council", number(2, 64))),
    "branch-add2": (("branch", identity), ("name", name), ("root", reference)),
    "branch-link1": (("branch", identity),),
    "invite1": (
        ("key", identity),
        ("permission", permission),
        ("uses", number(1, 10000)),
        ("expires", number()),
    ),
    "join1": (("invitation", identity), ("proof", raw(64))),
    "grant2": (("user", identity), ("permission", permission)),
    "device-grant1": (("user", identity), ("permission", permission)),
    "move1": (("user", identity), ("credential", identity)),
    "recovery-friends1": (("friends", listed(identity, 0, 15)), ("threshold", number(0, 15))),
    "recovery-grant1": (
        ("friends", identity),
        ("user", identity),
        ("permission", permission),
        ("signatures", listed(fields(identity, raw(64)), 0, 15)),
    ),
    "remove1": (
        ("user", identity),
        ("keeps", maybe(permission)),
        ("feeds", listed(fields(identity, number(1), identity), 0, 4096)),
    ),
    "revoke1": (("invitation", identity),),
    "adopt1": (("branch", identity), ("commits", listed(identity, 1, 1024))),
    "epoch-init3": (
        ("states", states),
        ("boxes", reference),
        ("writers_boxes", reference),
        ("keys", reference),
    ),
    "epoch-open1": (("epochs", listed(fields(identity, identity), 1, 2048)),),
    "epoch-hand1": (
        ("epoch", identity),
        ("mark", identity),
        ("writers_mark", identity),
        ("boxes", listed(fields(identity, identity, maybe(identity)), 1, 1500)),
    ),
    "prekey1": (("key", identity),),
    "branch-root1": (),
    "post1": (("text", words),),
    # names
    "branch-edit1": (("branch", identity), ("name", maybe(name)), ("archived", maybe(flag))),
    "tag1": (("name", name), ("branch", identity), ("commit", maybe(identity))),
    # quorum
    "quorum1": (("signers", listed(identity, 1, 64)), ("threshold", number(1, 64)), ("removals", flag)),
    "propose-checkpoint1": (("branch", identity), ("commits", ids_128_some)),
    "propose-removal1": (("user", identity), ("keeps", maybe(permission))),
    "approve1": (("proposal", identity),),
    "checkpoint1": (("proposal", identity),),
    # inbox
    "offer1": (("branch", identity), ("pulls", flag), ("note", text(0, 1000)), ("link", raw(0, 16384))),
    "answer1": (("offer", identity), ("accepts", flag)),
    # documents and compaction
    "set1": (("added", items), ("deleted", items), ("replaces", replaced)),
    "dict1": (
        ("put", listed(fields(dict_key, dict_value), 0, 256)),
        ("erased", listed(dict_key, 0, 256)),
        ("replaces", replaced),
    ),
    "text1": (("update", update), ("replaces", listed(identity, 0, 2048))),
    "text-snapshot1": (("updates", listed(fields(identity, update, listed(identity, 0, 2048)), 1, 2048)),),
    "set-squeeze1": (
        ("first", item),
        ("end", maybe(item)),
        ("operations", listed(fields(identity, listed(item, 1, 1024)), 0, 8192)),
    ),
    "dict-squeeze1": (
        ("first", dict_key),
        ("end", maybe(dict_key)),
        ("operations", listed(fields(identity, listed(fields(dict_key, dict_value), 1, 256)), 0, 8192)),
    ),
    "compaction1": (("given_up", listed(identity, 0, 1024)),),
    # files, forks, imports
    "files1": (("added", listed(fields(name, number(0, 2**40)), 0, 128)),),
    "fork1": (("origin", identity), ("commits", ids_128_some)),
    "carried1": (
        ("branch", identity),
        ("commit", identity),
        ("author", identity),
        ("time", number()),
        ("body", raw(0, 512 * 1024)),
    ),
    "merge1": (("branch", identity), ("commits", ids_128_some)),
    "imported1": (
        ("source_id", text(1, 255)),
        ("author", text(0, 255)),
        ("time", imported_time),
        ("text", words),
    ),
}

# Free bodies that something is read of: one that is malformed says nothing, and is not refused.
FREE = {"members-checkpoint1": (("digest", identity),)}

# All other tags are taken for unknown ones.
SAYABLE = {
    "post1",
    "imported1",
    "set1",
    "set-squeeze1",
    "dict1",
    "dict-squeeze1",
    "json1",
    "json-squeeze1",
    "text1",
}
NAMED = SAYABLE - {"post1", "imported1"}
CARRIED = {"post1", "imported1", "files1", "set1", "dict1", "text1"}
LIMIT = 512 * 1024


class Body:
    """A body that was read: its tag, and its fields by name where the tag is one with a shape."""

    def __init__(self, tag, values=()):
        self.tag = tag
        names = SHAPES.get(tag) or FREE.get(tag, ())
        for (field, _), value in zip(names, values, strict=False):
            setattr(self, field, value)
        self.values = values


def tag_of(data):
    """Read the tag alone, which must stand in its shortest form."""
    if len(data) < 2 or not 0x91 <= data[0] <= 0x9F or not 0xA1 <= data[1] <= 0xBF:
        raise Refused("bad_shape")
    size = data[1] & 31
    if len(data) < 2 + size:
        raise Refused("bad_shape")
    try:
        return data[2 : 2 + size].decode()
    except UnicodeDecodeError:
        raise Refused("bad_shape") from None


def read(data):
    """Read a body; refuse one of a known tag that is malformed."""
    if len(data) > LIMIT:
        raise Refused("too_large")
    tag = tag_of(data)
    shapes = SHAPES.get(tag)
    if shapes is None:
        return read_free(tag, data)
    value = decode(data)
    fields(*(shape for _, shape in shapes))(value[1:])
    body = Body(tag, value[1:])
    if tag == "carried1":
        # Only these kinds of content are looked at where they are carried.
        inner = tag_of(body.body)
        body.carried = read(body.body) if inner in CARRIED else Body(inner)
    return body


def read_free(tag, data):
    """Read a body that is never refused."""
    try:
        values = decode(data)[1:]
        fields(*(shape for _, shape in FREE[tag]))(values)
    except (KeyError, Refused):
        return Body(tag)
    return Body(tag, values)


def said_kind(metadata):
    """The tag that metadata says, or None where it says none of those that can be said."""
    try:
        value = decode(metadata)
    except Refused:
        return None
    if type(value) is list and len(value) == 2 and value[0] == "kind1" and value[1] in SAYABLE:
        return value[1]
    if type(value) is list and len(value) == 3 and value[0] == "kind2" and value[1] in NAMED:
        return value[1] if names_a_document(value[2]) else None
    return None


def names_a_document(name):
    """True for 1 to 128 bytes without controls, whose segments are not empty, `.` or `..`."""
    if type(name) is not str or not 0 < len(name.encode()) <= 128 or re.search("[\x00-\x1f\x7f-\x9f]", name):
        return False
    return not {"", ".", ".."} & set(name.split("/"))


KIND = re.compile(r"[a-z][a-z0-9-]*\Z")
