"""Cases of texts for `generate`: updates by hand, and what they come to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pycrdt import Doc, Text

from node.content.text_versions import Piece, merge_pieces
from protocol.crypto.hashing import block_key, text_clients
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.body import encode_body
from protocol.formats.document_kinds import TEXT_SESSION_BITS, TextUpdate
from protocol.formats.yjs_updates import BadUpdate
from protocol.ids import BranchId, CommitId, UserId
from tests.support.ids import as_commit_id
from verifier.texts import TextEdit, TextRanges, TextShape, read_ranges, reduce_text

MAIN, SIDE = BranchId(b"\x01" * 32), BranchId(b"\x02" * 32)
ALICE, BOB = UserId(b"\xaa" * 32), UserId(b"\xbb" * 32)
SECRET = ConvergenceSecret(b"\x0c" * 32)


@dataclass(frozen=True)
class _Said:
    """A `text1` of the branch main, or one that `carrier` has carried there."""

    update: bytes
    author: UserId = ALICE
    branch: BranchId = MAIN
    replaces: tuple[CommitId, ...] = ()
    carrier: UserId | None = None
    name: int = 0  # 0: one more than the one before


def _client(author: UserId, session: int, branch: BranchId = MAIN) -> int:
    return text_clients(author, branch) << TEXT_SESSION_BITS | session


def _number(number: int) -> bytes:
    return bytes([number & 127 | 128]) + _number(number >> 7) if number > 127 else bytes([number])


def _in_root(client: int, clock: int, root: str, info: bytes, content: bytes, *, key: str = "") -> bytes:
    """An item in a root, under a key where it has one."""
    head = info + b"\x01" + _text(root) + (_text(key) if key else b"")
    return b"\x01\x01" + _number(client) + _number(clock) + head + content + b"\x00"


def _in_item(client: int, parent: tuple[int, int], info: bytes, content: bytes) -> bytes:
    """An item in an item."""
    head = info + b"\x00" + _number(parent[0]) + _number(parent[1])
    return b"\x01\x01" + _number(client) + b"\x00" + head + content + b"\x00"


def _nested(client: int, depth: int) -> bytes:
    """Lists in lists, from the root "n" on."""
    inside = b"".join(b"\x07\x00" + _number(client) + _number(above) + b"\x00" for above in range(depth - 1))
    return b"\x01" + _number(depth) + _number(client) + b"\x00\x07\x01\x01n\x00" + inside + b"\x00"


def _text(text: str) -> bytes:
    return _number(len(text)) + text.encode()


def _typed(
    client: int,
    clock: int,
    text: str,
    after: tuple[int, int] | None = None,
    before: tuple[int, int] | None = None,
) -> bytes:
    """A string in the root "t": at its beginning, or behind a letter, and before another where that is given."""
    head = b"\x04\x01\x01t" if after is None else b"\x84" + _number(after[0]) + _number(after[1])
    if before is not None:
        assert after is not None, "only between two"
        head = b"\xc4" + head[1:] + _number(before[0]) + _number(before[1])
    encoded = text.encode()
    return b"\x01\x01" + _number(client) + _number(clock) + head + _number(len(encoded)) + encoded + b"\x00"


def _fill(client: int, clock: int, length: int) -> bytes:
    """Deleted letters in the root "t"."""
    return b"\x01\x01" + _number(client) + _number(clock) + b"\x01\x01\x01t" + _number(length) + b"\x00"


def _delete(client: int, clock: int, length: int) -> bytes:
    return b"\x00\x01" + _number(client) + b"\x01" + _number(clock) + _number(length)


def _name(number: int) -> CommitId:
    return as_commit_id(bytes([number]) * 32)


A, A2, B = _client(ALICE, 1), _client(ALICE, 2), _client(BOB, 1)
SIDE_A = _client(ALICE, 1, SIDE)
_MAP = (
    b"\x01\x02"
    + _number(A2)
    + b"\x00\x28\x01\x01m\x01k\x01\x76\x02\x01b\x7d\x01\x01a\x7e\x27\x01\x01m\x01t\x02\x00"
)


def _cases() -> dict[str, list[_Said]]:
    return {
        "two authors": [_Said(_typed(A, 0, "hello")), _Said(_typed(B, 0, " world", (A, 4)), BOB)],
        "the client id of another author": [
            _Said(_fill(A, 0, 1000), BOB),
            _Said(_typed(0, 0, "zero"), BOB),
            _Said(_typed(_client(ALICE, 1, SIDE), 0, "of another branch")),
            _Said(_typed(A, 0, "hello")),
        ],
        "clocks twice: cut to what follows": [
            _Said(_typed(A, 0, "one")),
            _Said(_typed(A, 1, "XYzz", (A, 0))),
        ],
        "clocks twice: nothing is left": [_Said(_typed(A, 0, "longer")), _Said(_typed(A, 2, "xy", (A, 1)))],
        "clocks twice: the rest meets a taken range": [
            _Said(_typed(A, 0, "ab")),
            _Said(_typed(A, 4, "ef", (A, 1))),
            _Said(_typed(A, 0, "abcdefgh")),
            _Said(_typed(A, 6, "gh", (A, 5))),
        ],
        "a cut within a surrogate pair": [
            _Said(_typed(A, 0, "a\U0001f600b")),
            _Said(_typed(A, 3, "\U0001f600z", (A, 2))),
            _Said(_typed(A2, 0, "!", (A, 5))),
        ],
        "a gap, and what fills it": [
            _Said(_typed(A, 0, "ab")),
            _Said(_typed(A, 4, "ef", (A, 3))),
            _Said(_typed(B, 0, "!", (A, 5)), BOB),
            _Said(_typed(A, 2, "cd", (A, 1))),
        ],
        "a gap that stays": [_Said(_typed(A, 0, "ab")), _Said(_typed(A, 4, "ef", (A, 3)))],
        "deletions": [
            _Said(_typed(A, 0, "hello")),
            _Said(_delete(A, 0, 1), BOB),
            _Said(_delete(A, 1, 1000), BOB, replaces=(_name(1), _name(9))),
            _Said(_typed(A, 5, " again", (A, 4))[:-1] + _delete(A, 5, 2)[1:]),
        ],
        "copies": [
            _Said(_fill(SIDE_A, 0, 4), branch=SIDE, carrier=BOB, name=20),
            _Said(_fill(A, 0, 99), carrier=BOB, name=21),
            _Said(_typed(SIDE_A, 0, "draft"), branch=SIDE, carrier=ALICE, name=22),
            _Said(_delete(SIDE_A, 0, 1), branch=SIDE, carrier=BOB, replaces=(_name(22),), name=23),
            _Said(_typed(SIDE_A, 0, "draft"), branch=SIDE, carrier=BOB, name=22),
            _Said(_typed(A, 0, "main ")),
        ],
        "words that wait for others": [
            _Said(_typed(B, 0, "later", (A, 1)), BOB),
            _Said(_typed(B, 5, "!", (B, 4)), BOB),
            _Said(_delete(B, 0, 2), BOB, replaces=(_name(1),)),
            _Said(_typed(A, 0, "a")),
            _Said(_typed(A2, 0, "never", (A, 9))),
            _Said(_typed(A, 1, "b", (A, 0))),
        ],
        "misplaced": [
            _Said(_typed(A, 0, "ab")),
            _Said(_in_root(A2, 0, "u", b"\x04", b"\x02cd")),
            _Said(_typed(B, 0, "between two lists", (A, 0), (A2, 1)), BOB),
            _Said(_typed(B, 17, "and after it"), BOB),
            _Said(_in_item(_client(ALICE, 3), (A, 0), b"\x04", b"\x01e")),
            _Said(_in_root(_client(ALICE, 4), 0, "m", b"\x24", b"\x02xy", key="k")),
            _Said(_in_root(_client(ALICE, 5), 0, "m", b"\x27", b"\x02", key="k")),
            _Said(_in_item(_client(ALICE, 6), (_client(ALICE, 5), 0), b"\x04", b"\x02in")),
            _Said(_nested(_client(ALICE, 7), 66)),
            _Said(_typed(A, 2, "c", (A, 1))),
        ],
        "maps and types keep their bytes": [_Said(_MAP), _Said(_typed(A, 0, "t"))],
        "unreadable": [
            _Said(b"\x00"),
            _Said(b"\x01\x01" + _number(A) + b"\x00\x08\x01\x01t\x01" + b"\x75\x01" * 65 + b"\x7e\x00"),
            _Said(b"\x01\x03" + _number(A) + b"\x00\x00\x01\x0a\x01\x00\x01\x00"),
            _Said(_fill(A, 1 << 31, 1)),
            _Said(b"\x01\x01" + _number(A) + b"\x00\x09\x01\x01t\x01g\x7e\x00"),
            _Said(b"\x01\x01" + _number(A) + b"\x00\x00\x05\x00"),  # a filler
            _Said(_typed(A, 0, "me", (A, 0))),  # beside itself
            _Said(_typed(A, 0, "read")),
        ],
    }


def texts() -> dict[str, Any]:
    """Cases of one branch each, and a body that a snapshot holds."""
    bodies = [TextUpdate(_typed(A, 0, said), (_name(7),)) for said in ("true", "lies")]
    return {
        "branch": MAIN.hex(),
        "cases": [{"name": name, **_case(said)} for name, said in _cases().items()],
        "snapshot": {
            "convergence_secret": SECRET.hex(),
            "body_key": block_key(SECRET, encode_body(bodies[0])).hex(),
            "said": [[_name(1).hex(), one.update.hex(), [_name(7).hex()]] for one in bodies],
            "holds": [True, False],
        },
    }


def _case(said: Sequence[_Said]) -> dict[str, Any]:
    names = [_name(one.name or number + 1) for number, one in enumerate(said)]
    edits = [_edit(number, names[number], one) for number, one in enumerate(said)]
    state = reduce_text(edits)
    left = {one.edit.place[2]: TextShape(one.runs, one.deletes) for one in state.shown}
    faults = {one.place[2]: fault.value for one, fault in state.passed_over}
    merged = _merged(said, left)
    document: Doc[Text] = Doc()
    document.apply_update(merged)
    return {
        "updates": [
            {
                "name": names[number].hex(),
                "author": one.author.hex(),
                "branch": one.branch.hex(),
                "carried_by": None if one.carrier is None else one.carrier.hex(),
                "clients": text_clients(one.author, one.branch),
                "update": one.update.hex(),
                "replaces": [name.hex() for name in one.replaces],
                "takes": [list(run) for run in sorted(left[number].runs)] if number in left else [],
                "deletes": [list(run) for run in sorted(left[number].deletes)] if number in left else [],
                "fault": faults.get(number),
            }
            for number, one in enumerate(said)
        ],
        "text_as_one_update": merged.hex(),
        "text": str(document.get("t", type=Text)),
    }


def _edit(number: int, name: CommitId, said: _Said) -> TextEdit:
    try:
        content: TextRanges | None = read_ranges(said.update)
    except BadUpdate:
        content = None
    is_copy = said.carrier is not None and said.carrier != said.author
    clients = text_clients(said.author, said.branch)
    place = (0, 0, number, name)
    is_stray = is_copy and said.branch == MAIN
    return TextEdit(name, place, clients, content, said.replaces, is_copy, is_stray)


def _merged(said: Sequence[_Said], left: dict[int, TextShape]) -> bytes:
    return merge_pieces(Piece.left_of(said[number].update, shape) for number, shape in left.items())
