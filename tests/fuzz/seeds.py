"""Writes the corpus: small inputs that are taken, one of every kind, from the positive vectors and from fixed values.

    .venv/bin/python -m tests.fuzz.seeds

These files are named `taken-WHAT`. The others in the corpus are named `refused-HASH`: near misses that a fuzzer found,
one for each way of being refused, and what was once a defect.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from node.contract.access import ACTIONS
from node.home.config import default_config_text
from node.home.key_file import Cost, Keys, encode_key_file, seal_node_keys
from node.home.tokens import Token, digest_of, encode_tokens
from protocol.codec import encode
from protocol.crypto.keys import BlockKey, NodeSeed, UserSeed
from protocol.crypto.signing import key_pair, public_key, sign
from protocol.formats.block import Reference, decode_block, decrypt_block, decrypt_unchecked
from protocol.formats.commit import NO_EPOCH, NO_MARK, Content, Links, create_commit
from protocol.formats.links import PeerAddress
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text
from protocol.ids import AnnouncedTopic, BlindTopic, TopicKey
from protocol.session.messages import (
    Announce,
    Blocks,
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
    Deposit,
    DepositFiles,
    Features,
    Fetch,
    FileDeposit,
    FoundBodies,
    Introduce,
    Introductions,
    JoinAccount,
    KeepAlive,
    Keeps,
    ListFiles,
    Meet,
    Message,
    PresenceSaid,
    Publications,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    Seen,
    Summary,
    Want,
    WantBodies,
    WantWindow,
    Window,
    encode_message,
)
from ravel.files import encode_head
from tests.fuzz import api, connections, decoders, native, reconciliation, session
from tests.support.streams import ACCEPTOR_SEED, recorded_session

Seeds = dict[str, bytes]
CORPUS: Final = Path(__file__).parent / "corpus"
_VECTORS: Final = Path(__file__).parents[1] / "vectors"
_ID: Final[Any] = b"\x11" * 32
"""An id, a key or a secret: inputs need the shape alone."""
_OTHER: Final[Any] = b"\x22" * 32
_SEED: Final = bytes(range(32))


def seeds() -> dict[str, Seeds]:
    """The inputs of each target, by name."""
    vector, link, capability = map(_vector, ("commits.json", "links.json", "capabilities.json"))
    sets = _vector("reconciliation.json")
    publication = bytes.fromhex(vector["publication"])
    blocks = decode_publication(publication).blocks
    plaintext = decrypt_unchecked(blocks[0], BlockKey(bytes.fromhex(vector["commit_key"])))
    objects = {
        f"{case['size']}-bytes": case["blocks"] for case in _vector("objects.json") if "blocks" in case
    }
    bodies = {body["kind"]: bytes.fromhex(body["encoded"]) for body in _vector("bodies.json")}
    return {
        "block": {
            **{size: bytes.fromhex(encoded) for size, (encoded,) in objects.items()},
            "commit": blocks[0].encoded,
            "body": blocks[1].encoded,
            "inner": encode(["block2", [_ID, _OTHER], [], 0, b"", bytes(64)]),
        },
        "commit": {"every-field": b"\x02" + plaintext, "first": b"\x00" + _first_commit()},
        "body": {**bodies, "unknown": encode(["poll7", 1])},
        "publication": {
            "commit-and-body": publication,
            "bare": bytes.fromhex(vector["bare_publication"]),
            "one-block": encode(["publication1", _ID, bytes(32), [blocks[1].encoded], bytes(64)]),
        },
        "opening": {
            "commit": b"c" + decoders.signed_commit(decoders.POST),
            "body": b"b" + bodies["files"],
            "publication": decoders.published(decoders.signed_commit(decoders.POST), decoders.POST),
        },
        "start": {"keys": b"k" + decoders.given_keys()},
        "native_reading": {
            "commit": b"c" + native.honest_commit(),
            "clear": b"k" + encode([_ID]) + encode(1) + encode(native.MARK),
            "body": b"b" + native.BODY.encoded,
            "publication": native.publish(native.honest_commit()),
        },
        "bundle": {"bundle": b"\x40" + bytes.fromhex(_vector("bundles.json")["bundle"])},
        "message": {made["tag"]: bytes.fromhex(made["encoded"]) for made in _vector("messages.json")},
        "symbols": {"opening": bytes.fromhex(sets["opening"]), "more": bytes.fromhex(*sets["symbols"])},
        "ask_symbols": {"vector": bytes.fromhex(sets["ask"])},
        "lacks": {"vector": bytes.fromhex(*sets["lacks"])},
        "ranges_question": {"vector": bytes.fromhex(sets["ranges_question"])},
        "ranges_answer": reconciliation.answers(),
        "session": _sessions(),
        "invitation": {"vector": bytes.fromhex(link["encoded"]), "reader": _reader_invitation()},
        "capability": {"vector": bytes.fromhex(capability["encoded"])},
        "branch_capability": {"vector": bytes.fromhex(_vector("branch_capabilities.json")["encoded"])},
        "device_link": {"vector": bytes.fromhex(_vector("device_links.json")["encoded"])},
        "ask_link": {"vector": bytes.fromhex(_vector("ask_links.json")["encoded"])},
        "link": {"read": capability["text"].encode(), "spaces": f" {link['text']}\n".encode()},
        "id": {
            "id": id_text(_ID).encode(),
            "last": b"7" * 51 + b"q",
            "prefix": b"a",
            "long-prefix": b"a" * 51,
        },
        "object": _object_programs(),
        **_handshakes(),
        "wire": {"session": trio.run(recorded_session)},
        "frames": {"frame": b"\0\0\0\x05hello" + bytes(4), "two": b"\0\0\0\x01a\0\0\0\x02bc" + bytes(4)},
        "signature": {
            "signature": public_key(UserSeed(_SEED)) + sign(key_pair(UserSeed(_SEED))[1], _ID) + _ID
        },
        "yjs_update": _updates(),
        "http": _conversations(),
        "request": _requests(),
        "answer": {"error": b'{"error": {"code": "not_found", "message": "m", "next": "n"}}'},
        "config": _configs(),
        "announcement": {
            "heard": json.dumps(
                {"address": "10.0.0.1:7474", "salt": bytes(16).hex(), "mark": _ID.hex()}
            ).encode()
        },
        "secret": {"key": _ID.hex().encode() + b"\n"},
        "tokens": _token_files(),
        "keys": _key_files(),
        "ssb": _messages(),
        "file_batch": {
            "empty": encode_head("a", 0),
            "folder": encode_head("f/a", 3)
            + b"abc"
            + encode_head("f/\u00fc", 0)
            + encode_head("b", 1)
            + b"{",
        },
        "jsonl": {"graph": _graph(), "empty": b"", "blank": b"\n \n"},
        "jsonl_gz": {
            "graph": gzip.compress(_graph(), 0, mtime=0),
            "two": 2 * gzip.compress(b"\n", 0, mtime=0),
        },
        "git_commits": {"two": _git_commits(), "empty": b""},
    }


def _vector(name: str) -> Any:  # noqa: ANN401  # whatever the file holds
    return json.loads((_VECTORS / name).read_text(encoding="utf-8"))


def _token_files() -> dict[str, bytes]:
    repo = id_text(_ID)
    chat = Token("chat", digest_of("a"), "app", ("read", "write"), 1, 2, (repo,), (f"{repo}:{repo}",), 1)
    page = Token("page-00", digest_of("b"), "page", ACTIONS, 1, 2)
    return {"none": encode_tokens([]), "two": encode_tokens([chat, page])}


def _key_files() -> Seeds:
    """One in the clear, and one sealed with a passphrase, whose box nothing opens."""
    clear = seal_node_keys(Keys(NodeSeed(_SEED), _ID, _OTHER), "none", b"")
    sealed = msgspec.structs.replace(
        clear,
        protection="passphrase",
        cost=Cost(8192, 1),
        salt="00" * 16,
        nonce="00" * 24,
        box="00" * 112,
    )
    return {"clear": encode_key_file(clear), "sealed": encode_key_file(sealed)}


def _updates() -> Seeds:
    """Of each case of a text the last update, which is read, and what all come to."""
    cases = [case for case in _vector("texts.json")["cases"] if case["name"] != "unreadable"]
    found = {str(number): case["updates"][-1]["update"] for number, case in enumerate(cases)}
    found |= {
        f"{number}-all": case["text_as_one_update"]
        for number, case in enumerate(cases)
        if len(case["text_as_one_update"]) < 100
    }
    unique = {encoded: name for name, encoded in reversed(found.items())}
    return {name: bytes.fromhex(encoded) for encoded, name in sorted(unique.items())}


def _first_commit() -> bytes:
    content = Content(
        public_key(UserSeed(_SEED)),
        _ID,
        NO_EPOCH,
        False,
        True,
        1,
        None,
        (),
        0,
        b"",
        Reference(_ID, _OTHER),
    )
    secret = key_pair(UserSeed(_SEED))[1]
    commit, block = create_commit((), 0, NO_MARK, Links(), content, secret, decoders.CONVERGENCE)
    return decrypt_block(decode_block(block.encoded), commit.key, decoders.CONVERGENCE)


def _sessions() -> Seeds:
    root, main = (
        BlindTopic(session.blinded(TopicKey(session.ROOT))),
        BlindTopic(session.blinded(session.MAIN)),
    )
    both: list[Message | int] = [
        Announce(
            (
                AnnouncedTopic(session.announced(TopicKey(session.ROOT))),
                AnnouncedTopic(session.announced(session.MAIN)),
            )
        ),
        Summary(root, 0, (_ID[:16],), 7, _OTHER),
        Summary(main, 0, (), 0, _OTHER),
    ]
    # Either is said by the peer, or happens at the node meanwhile.
    talks: dict[str, list[Message | int]] = {
        "joins": both,
        "takes": [*both, Publications(root, (b"one", b"two")), KeepAlive(), Publications(main, (b"one",))],
        "sends": [*both, Receipt(root), Receipt(main), Receipt(root), Receipt(main)],
        "finds": [*both, *[Want(main, (_ID, _OTHER)), Want(root, (_ID,))] * 2, Receipt(root), Receipt(root)],
        "finds-bodies": [
            *both,
            WantBodies(main, (_ID, _OTHER)),
            session.IN_MAIN | session.BODIES,
            FoundBodies(main, 1),
        ],
        "accepts": [*both, Receipt(root), session.UNREAD, 0, session.IN_MAIN, Receipt(root), Receipt(root)],
        "fetches": [*both, session.FETCH, Blocks(root, (session.BLOCK.encoded,)), Fetch(main, (_ID, _OTHER))],
        "relays": [Relay(), *both, Deposit((_ID, _OTHER)), Refused(root, "topic_full"), 0, Receipt(root)],
        "relays-files": [
            *both,
            ListFiles(root, _ID[:16]),
            ListFiles(root, _ID[:16]),
            DepositFiles(root, (FileDeposit(_ID, 7, _ID + _OTHER), FileDeposit(_OTHER, 7, _ID + _OTHER))),
            DepositFiles(root, (FileDeposit(_ID, 7, _ID + _OTHER),)),
        ],
        "shows-links": [JoinAccount(_ID), *both, JoinAccount(_OTHER)],
        "says-what-it-knows": [Features(("files", "newer")), *both],
        "asks-for-windows": [
            *both,
            WantWindow(main, _ID[:8], 9, is_upwards=False, count=2),
            session.IN_MAIN | session.WINDOW,
            Window(main, session.MARK, (b"one",), is_last=True),
            WantWindow(main, _ID[:8], 9, is_upwards=True, count=2),
            Keeps(main, is_all=False, marks=(_ID[:8],), days=90),
        ],
        "says-who-is-here": [Features(("presence",)), *both, PresenceSaid(main, b"a box"), 0],
        "introduces": [
            Introductions(),
            Seen("198.51.100.7:50123"),
            *both,
            Introduce(root, (PeerAddress("192.0.2.7:7474", _ID),)),
            0,
        ],
        "opens-circuits": [
            Circuits(),
            CircuitOpen(2, _ID),
            CircuitCredit(2, 100),
            session.CIRCUIT,
            CircuitData(2, b"bytes"),
            CircuitClose(2, "closed"),
            *both,
            Meet(root),
            Meet(root),
        ],
        "opens-wide-circuits": [
            Circuits(),
            CircuitOpen(2, _ID),
            CircuitCredit(2, 1 << 20),
            session.CIRCUIT,
            CircuitData(2, b"bytes"),
        ],
        "reconciles": [*both, Reconcile(root, 0, b"frame"), Summary(root, 1, (), 0, _ID), Receipt(root)],
        "is-slow": [both[0], session.HOLD, both[1], session.UNREAD, 0, session.HOLD, *[Receipt(root)] * 4],
    }
    return {name: b"".join(map(_step, talk)) for name, talk in talks.items()}


def _step(said: Message | int) -> bytes:
    if isinstance(said, int):
        return bytes([session.NO_MESSAGE, said])
    data = encode_message(said)
    return len(data).to_bytes(2, "big") + data


def _reader_invitation() -> bytes:
    return encode(["invitation5", _ID, [_ID, _OTHER], _ID, _ID, None, _OTHER, _ID, 1, 7, [], None, "a", None])


def _object_programs() -> Seeds:
    """Trees as the target's instructions: leaves are `size << 3`, a parent of n is `n << 3 | 4`."""
    full, one, two, three = 4 << 3, 1 << 3 | 4, 2 << 3 | 4, 3 << 3 | 4
    unlike = [full, full | 1, full | 2, full | 3]
    return {
        "empty": bytes([0]),
        "leaf": bytes([3 << 3 | 1]),
        "two-leaves": bytes([full, 1 << 3, two]),
        "equal-leaves": bytes([full, full, full, three]),
        "three-levels": bytes([*unlike[:3], three, unlike[3], one, two]),
        "six-leaves": bytes([*unlike[:3], three, unlike[3], full, 2 << 3, three, two]),
        # Nine full leaves below one child, one byte below the other.
        "four-levels": bytes([*[*unlike[:3], three] * 3, three, 1 << 3, one, one, two]),
    }


def _handshakes() -> dict[str, Seeds]:
    (first, second), third, payload = connections.honest_messages()
    return {
        "acceptor": {"first": b"1" + first, "third": b"3" + third, "payload": b"p" + payload},
        "dialer": {"second": b"2" + second, "key": b"k" + public_key(ACCEPTOR_SEED)},
    }


def _conversations() -> Seeds:
    def request(first: str, content: bytes = b"", *more: str) -> bytes:
        lines = [f"{first} HTTP/1.1", "Host: 127.0.0.1:7475", f"Authorization: Bearer {api.TOKEN}", *more]
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + content

    body = b'{"name":"n"}'
    length = f"Content-Length: {len(body)}"
    chunked = b"c\r\n" + body + b"\r\n0\r\n\r\n"
    return {
        "two": request("GET /api/v1/status") + request("POST /api/v1/repos", body, length),
        "chunked": request("POST /api/v1/repos", chunked, "Transfer-Encoding: chunked"),
        "waits": request("POST /api/v1/repos", body, length, "Expect: 100-continue"),
        "file": request("GET /api/v1/branches/b/files/f"),
        # Ignored: only HTTP/1.1 is spoken.
        "upgrade": request("GET /api/v1/status", b"", "Connection: Upgrade", "Upgrade: h2c"),
        "health": b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\n\r\n",
        # Other protocols are offered in vain.
        "websocket": request("GET /api/v1/status", b"", "Connection: Upgrade", "Upgrade: websocket"),
        "h2c": request("GET /api/v1/status", b"", "Connection: Upgrade", "Upgrade: h2c"),
    }


def _requests() -> Seeds:
    item = {"id": "a", "parents": ["b"], "author": "A", "time": -1, "text": "t"}
    contents: dict[str, object] = {
        "/repos": {"name": "n"},
        "/repos/r/invitations": {"permission": "read", "expires_seconds": 60},
        "/follow": {"capability": "ravel:read:a"},
        "/join": {"invitation": "ravel:invite:a"},
        "/devices/invitations": {"expires_seconds": 60},
        "/devices/join": {"link": "ravel:device:a"},
        "/me": {"name": "Ann", "color": 3},
        "/petnames": {"user": "u", "name": None, "peer": True},
        "/repos/r/branches": {"name": "n"},
        "/branches/b/commits": {"text": "Grüße"},
        "/branches/b/import": {"items": [item], "source": "s"},
        "/peers": {"address": "a:1", "peer": "b"},
        "/branches/b/timeline": "after_position=-1&limit=7",
        "/branches/b/files": "after=7&limit=7",
        "/branches/b/files/f": "bytes=10-19",
        "/repos/r/members": {"user": "u", "permission": "admin"},
        "/repos/r/removals": {"user": "u", "keeps": "read"},
        "/repos/r/leave": {"force": True},
        "/branches/b/adoptions": {"commits": ["c"]},
        "/branches/b/edits": {"name": "n", "archived": False},
        "/repos/r/tags/t": {"commit": "c"},
        "/repos/r/tangles/group": "limit=7&branch=main",
        "/branches/b/past/c": "limit=7",
        "/branches/b/forks": {"name": "n", "commit": "c"},
        "/branches/b/merges": {"source": "s"},
        "/branches/b/offers": {"source": "s", "note": "n", "pulls": False},
        "/branches/b/comments": {"text": "t"},
        "/repos/r/offers/o/answers": {"accepts": True},
        "/repos/r/forks": {"name": "n"},
        "/branches/b/set": {"add": ["a", "é"], "remove": [""]},
        "/branches/b/dict": {"put": {"k": "v"}, "erase": ["l"]},
        "/branches/b/text": {"update": "AAA="},
        "/branches/b/dict/entry": "key=k%C3%A9",
        "/commits/c/replies": {"text": "re", "resolve_mentions": True},
        "/commits/c/text": {"text": "new"},
        "/commits/c/hidden": {"hidden": True},
        "/commits/c/versions": "limit=7&before=a",
        "/commits/c/thread": "limit=7&after=a",
        "/branches/b/imported": "source=s&after=7&limit=7",
    }
    queries = {  # of paths that are also asked for something else
        ("POST", "/branches/b/files"): "name=n",
        ("GET", "/branches/b/edits"): "since=7.1&limit=7",
    }
    made = {}
    for number, (method, path) in enumerate(api.REQUESTS):
        content = queries.get((method, path), contents[path])
        text = content if isinstance(content, str) else json.dumps(content)
        name = f"{method.lower()}{path.replace('/', '-')}"
        made[name] = bytes([number]) + text.encode()
    return made | {"last-bytes": made["get-branches-b-files-f"][:1] + b"bytes=-7"}


def _configs() -> Seeds:
    peer = f'peers = [{{ address = "example.org:7474", peer = "{id_text(public_key(NodeSeed(_SEED)))}" }}]\n'
    return {
        "default": default_config_text().encode(),
        "peer": f'[network]\nlisten = "[::]:0"\nadvertise = "example.org:7474"\n{peer}'.encode(),
        "empty": b"",
    }


def _graph() -> bytes:
    items = [
        {"id": "a", "parents": [], "author": "A", "time": 1, "text": "first"},
        {"id": "b", "parents": ["a"], "author": "B", "time": -1, "text": "Grüße"},
        {"id": "c", "parents": ["a", "b"], "author": "", "time": 2**42, "text": ""},
    ]
    return "".join(json.dumps(item) + "\n" for item in items).encode()


def _messages() -> Seeds:
    kinds = (
        "a post",
        "sequence before author",
        "lone surrogates",
        "keys that are array indices",
        "a box",
        "numbers",
    )
    lines = {case["description"]: case["line"] for case in _vector("ssb.json")["messages"]}
    return {kind.replace(" ", "-"): lines[kind].encode() for kind in kinds}


def _git_commits() -> bytes:
    first = b"tree t\nauthor A <a@x> 1600000000 +0000\ncommitter C <c@x> 1600000001 +0000\n\nfirst\n"
    second = (
        f"tree t\nparent {'a' * 40}\nparent {'c' * 40}\nauthor Å <a@x>\ncommitter C <c@x> -5 +0000\n"
        "encoding ISO-8859-1\ngpgsig -----BEGIN\n \n -----END\n\nsecond\0\n\nline\n"
    ).encode()
    commits = {"a" * 40: first, "b" * 40: second}
    return b"".join(
        f"{name} commit {len(content)}\n".encode() + content + b"\n" for name, content in commits.items()
    )


def main() -> None:
    """Write all files, and remove those of the same kind that are no longer made."""
    for path in CORPUS.glob("*/taken-*"):
        path.unlink()
    for target, inputs in seeds().items():
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (CORPUS / target / f"taken-{name}").write_bytes(data)


if __name__ == "__main__":
    main()
