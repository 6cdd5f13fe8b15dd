"""The second reader opens every positive vector, from its capability down to the body, without a line of Ravel's.

Each vector is made again of what was opened, and must be the whole file: so nothing in a file is left unread.
"""

import ast
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from blake3 import blake3

from tests.vectors import (
    second_bundles,
    second_handshakes,
    second_histories,
    second_names,
    second_ranges,
    second_sync,
    second_texts,
)
from tests.vectors import second_epochs as epochs
from tests.vectors import second_reader as reader
from tests.vectors import second_sets as sets

FOLDER: Final = Path(__file__).parent
LIBRARIES: Final = {"blake3", "cryptography", "msgspec", "nacl", "pycrdt"}
SECOND: Final = (
    "second_reader", "second_handshake", "second_handshakes", "second_sets", "second_ranges", "second_epochs",
    "second_histories", "second_sync", "second_names", "second_texts", "second_bundles",
)  # fmt: skip
"""The second implementation."""
NEGATIVE: Final = {"refused.json", "ed25519_speccheck.json"}
Vector = Any  # whatever a file holds


def load(name: str) -> Vector:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def in_hex(value: object) -> object:
    """A value as the vectors spell it."""
    match value:
        case bytes():
            return value.hex()
        case list():
            return [in_hex(item) for item in value]
        case dict():
            return {name: in_hex(item) for name, item in value.items()}
    return value


@pytest.mark.parametrize("name", SECOND)
def test_it_imports_public_libraries_and_nothing_of_ravels(name: str) -> None:
    nodes = list(ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + str(node.module)
            is_folder = module == "tests.vectors"
            imported |= {f"{module}.{alias.name}" for alias in node.names} if is_folder else {module}
    imported -= {f"tests.vectors.{one}" for one in SECOND}  # these files themselves
    assert {module.partition(".")[0] for module in imported} <= LIBRARIES | set(sys.stdlib_module_names)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert ({"__import__", "eval", "exec"} & names, "importlib" in imported) == (set(), False)


def open_object(vector: Vector, reference: reader.Reference) -> Vector:
    """The object, from its blocks where they are given, else from those that its plaintext makes."""
    convergence = bytes.fromhex(vector["convergence_secret"])
    plaintext = (bytes(range(251)) * (vector["size"] // 251 + 1))[: vector["size"]]
    made, blocks = reader.make_object(plaintext, convergence)
    given = [bytes.fromhex(block) for block in vector.get("blocks", ())]
    found = {blake3(block).digest(): block for block in given} or blocks
    assert reader.open_object(reference, found, convergence) == plaintext
    assert vector["plaintext"] in (plaintext.hex(), "byte number i is i mod 251")
    again = {
        "size": len(plaintext),
        "plaintext": vector["plaintext"],
        "plaintext_hash": blake3(plaintext).digest(),
        "convergence_secret": convergence,
        "object_id": made[0],
        "key": made[1],
        "block_ids": list(blocks),
    }
    root = blocks[made[0]]
    if len(blocks) > 1:
        again |= {"root_block": root, "root_plaintext": reader.decrypt_block(root, made[1], convergence)[1]}
    return again | ({"blocks": list(blocks.values())} if given else {})


def remake_objects(vectors: Vector) -> Vector:
    return [
        open_object(vector, (bytes.fromhex(vector["object_id"]), bytes.fromhex(vector["key"])))
        for vector in vectors
    ]


def remake_names(vectors: Vector) -> Vector:
    return [
        {"name": one["name"], "may_be_stated": second_names.may_be_stated(one["name"])} for one in vectors
    ]


def remake_bodies(vectors: Vector) -> Vector:
    """Every kind once, the signatures inside checked."""
    opened = [reader.open_body(bytes.fromhex(vector["encoded"])) for vector in vectors]
    assert {tag for tag, _ in opened} == set(reader.BODIES)
    fields = dict(opened)
    assert fields["quorum1"]["signers"] == sorted(fields["quorum1"]["signers"])
    repo = bytes.fromhex(load("derivations.json")["repo_id"])
    user = bytes.fromhex(load("commits.json")["author"])
    init, key = fields["init2"], fields["invite1"]["invitation_key"]
    for one, council in ((init, []), (fields["init3"], [fields["init3"]["council"]])):
        signed = [repo, one["name"], one["owners"], *council]
        reader.check_signature(repo, "repo certificate signature v1", signed, one["certificate"])
    reader.check_signature(key, "invitation proof signature v1", [repo, user], fields["join1"]["proof"])
    *given, signatures = fields["recovery-grant1"].values()
    for friend, signature in signatures:
        reader.check_signature(friend, "recovery grant signature v1", [repo, *given], signature)
    statement, end, handed = fields["device1"], fields["device-end1"], fields["hand-on2"]
    pair = [repo, statement["person"], statement["device"]]
    for signer, signature in (
        (statement["person"], statement["person_signature"]),
        (statement["device"], statement["device_signature"]),
        (statement["person"], handed["signature"]),
    ):
        reader.check_signature(
            signer, "device statement signature v1", [*pair, statement["since"]], signature
        )
    reader.check_signature(end["device"], "device end signature v1", [*pair, end["until"]], end["signature"])
    check_epoch_bodies(repo, fields)
    sealed = {
        "hand-on2": (repo, handed["key"]),
        "lobby-add2": (fields["lobby-add2"]["lobby"], fields["lobby-add2"]["boxes"][0][1]),
        "lobby-answer2": (repo, fields["lobby-answer2"]["admission"][2]),
    }
    return [
        {"kind": tag.rstrip("0123456789"), "encoded": reader.pack([tag, *body.values()])}
        | (open_sealed(*sealed[tag], vector) if tag in sealed else {})
        for (tag, body), vector in zip(opened, vectors, strict=True)
    ]


def check_epoch_bodies(repo: bytes, fields: Vector) -> None:
    """Both inits state the epoch of `derivations.json`; the hand-over has its boxes."""
    told = load("derivations.json")
    key, writers_secret = bytes.fromhex(told["epoch_key"]), bytes.fromhex(told["writers_secret"])
    states = fields["init2"]["states"]
    assert states == fields["epoch-init3"]["states"]
    assert epochs.open_topic(key, repo, states).hex() == told["writers_topic"]
    ours, writers = epochs.sealing_key(key, repo), epochs.writers_sealing_key(writers_secret, repo)
    marks = [epochs.mark_of(ours), epochs.mark_of(writers)]
    hand = fields["epoch-hand1"]
    assert (states[:2], [hand["mark"], hand["writers_mark"]]) == (marks, marks)
    assert hand["boxes"] == sorted(hand["boxes"])
    for user, box, writers_box in hand["boxes"]:
        assert box == epochs.make_box(key, ours, user)
        assert writers_box in (None, epochs.make_box(writers_secret, writers, user))


def open_sealed(repo: bytes, sealed: bytes, vector: Vector) -> Vector:
    """What a sealed key is, to the member of that seed, from that author, and for that repo alone."""
    seed, author = bytes.fromhex(vector["member_seed"]), bytes.fromhex(vector["author"])
    key = reader.open_sealed_key(seed, author, repo, sealed)
    for wrong in ((bytes(32), repo), (seed, bytes(32))):
        with pytest.raises(reader.Refused):
            reader.open_sealed_key(wrong[0], author, wrong[1], sealed)
    return {"member_seed": seed, "author": author, "epoch_key": key}


def remake_link(kind: str, vector: Vector) -> Vector:
    tag, link = reader.open_link(kind, vector["text"])
    assert link["repo"].hex() == load("derivations.json")["repo_id"]
    if kind == "invite":
        states, signature = link["voucher"]
        signed = [link["repo"], link["invitation"], states]
        reader.check_signature(states[0], "link voucher signature v1", signed, signature)
    encoded = reader.pack([tag, *link.values()])
    return {"encoded": encoded, "text": reader.link_text(kind, encoded)}


def remake_device_link(vector: Vector) -> Vector:
    """The invitation inside is the one of its own vector."""
    tag, link = reader.open_link("device", vector["text"])
    assert link["invitation"].hex() == load("links.json")["encoded"]
    encoded = reader.pack([tag, *link.values()])
    return {"encoded": encoded, "text": reader.link_text("device", encoded)}


def remake_ask_link(vector: Vector) -> Vector:
    """The invitation inside is the one of its own vector."""
    tag, link = reader.open_link("ask", vector["text"])
    assert link["lobby"].hex() == load("links.json")["encoded"]
    encoded = reader.pack([tag, *link.values()])
    lobby = bytes.fromhex(load("derivations.json")["repo_id"])
    user, request = bytes.fromhex(vector["user"]), bytes.fromhex(vector["request"])
    return {
        "encoded": encoded,
        "text": reader.link_text("ask", encoded),
        "name": vector["name"],
        "metadata": reader.pack(["ask1", vector["name"]]),
        "renewal_metadata": reader.pack(["renew1"]),
        "user": user,
        "request": request,
        "code_numbers": reader.code_numbers(lobby, link["repo"], user, request),
    }


def open_publication(encoded: bytes) -> tuple[Vector, Vector]:
    """The commit and its body, opened from the two links: their secrets are those of the vectors' epoch."""
    _, link = reader.open_link("invite", load("links.json")["text"])
    _, capability = reader.open_link("read", load("capabilities.json")["text"])
    epoch_key = capability["key"]
    assert link["key"] == epoch_key
    convergence = reader.convergence_secret(epoch_key)
    topic, key, blocks = reader.open_publication(encoded, reader.epoch_read_key(epoch_key))
    mark = epochs.mark_of(epochs.sealing_key(epoch_key, link["repo"]))
    seed = reader.writers_topic_seed(link["writers_secret"], link["repo"], mark)
    assert topic == reader.public_key(seed)
    commit_id, *body_ids = blocks
    commit = reader.open_commit(blocks[commit_id], key, convergence)
    assert (commit["by_writer"], body_ids) == (True, [commit["body"][0]])
    assert commit["mark"] == reader.branch_mark(reader.branch_secret(epoch_key, commit["branch"]))
    tag, body = reader.open_body(reader.open_object(commit["body"], blocks, convergence))
    opened = {"commit_id": commit_id, "commit_key": key, "topic": topic, "epoch_key": epoch_key}
    return commit | opened | {"block": blocks[commit_id]}, {"tag": tag} | body


def remake_commits(vector: Vector) -> Vector:
    commit, body = open_publication(bytes.fromhex(vector["publication"]))
    assert body["tag"] == "post1"
    assert all(commit[name] for name in (*reader.LINKS, "feed_previous", "tangles", "metadata"))
    whole = reader.read_publication(bytes.fromhex(vector["publication"]))
    bare = ["bare1", *(whole[name] for name in ("topic", "hidden_key"))]
    bare += [whole["blocks"][0], commit["body"][0], whole["signature"]]
    read_key = reader.epoch_read_key(commit["epoch_key"])
    bare_commit, _, signed = reader.open_publication(reader.pack(bare), read_key)
    assert (bare_commit, next(iter(signed))) == (whole["topic"], commit["commit_id"])
    taken = ("epoch_key", "author", "acks", "rank", "mark", "commit_id", "commit_key", "topic")
    return {name: commit[name] for name in taken} | {
        "branch_id": commit["branch"],
        "text": body["text"],
        "signed_digest": commit["digest"],
        "publication": vector["publication"],
        "publication_id": reader.publication_id(bytes.fromhex(vector["publication"])),
        "bare_publication": reader.pack(bare),
        **open_on_link_topic(commit, whole["blocks"], vector),
    }


def open_on_link_topic(commit: Vector, blocks: list[bytes], vector: Vector) -> Vector:
    """The same commit, opened by the branch's capability alone."""
    _, capability = reader.open_link("branch", load("branch_capabilities.json")["text"])
    ((epoch, link_topic, secret, convergence),) = capability["channels"]
    assert (epoch, capability["branch"]) == (commit["epoch"], commit["branch"])
    encoded = bytes.fromhex(vector["publication_on_link_topic"])
    topic, key, found = reader.open_publication(encoded, reader.branch_read_key(secret))
    assert (topic, key, list(found.values())) == (link_topic, commit["commit_key"], blocks)
    assert reader.open_commit(blocks[0], key, convergence)["mark"] == reader.branch_mark(secret)
    return {"link_topic": topic, "publication_on_link_topic": encoded}


def remake_files(vector: Vector) -> Vector:
    """The keys in each commit's content open the files that its header names."""
    published = [bytes.fromhex(encoded) for encoded in vector["publications"]]
    opened = [open_publication(encoded) for encoded in published]
    objects = {bytes.fromhex(made["object_id"]): made for made in vector["objects"]}
    there: dict[tuple[bytes, bytes], str] = {}  # (file, adding commit) -> name
    remade = {}
    for commit, body in opened:
        assert body["tag"] == "files1"
        for file, key, (name, size) in zip(commit["files"], commit["file_keys"], body["added"], strict=True):
            remade[file] = open_object(objects[file], (file, key))
            assert remade[file]["size"] == size
            there[file, commit["commit_id"]] = name
        for file in commit["nfiles"]:
            for adder in commit["deps"]:
                there.pop((file, adder), None)
    last = opened[-1][0]
    assert all(last[name] for name in ("acks", "deps", "ndeps", "files", "nfiles"))
    return {
        "epoch_key": last["epoch_key"],
        "branch_id": last["branch"],
        "commit_ids": [commit["commit_id"] for commit, _ in opened],
        "publications": published,
        "there_after_both": list(there.values()),
        "post": remake_post_with_files(vector["post"]["publication"], there),
        "objects": [remade[file] for file in objects],
    }


def remake_post_with_files(publication: str, there: dict[tuple[bytes, bytes], str]) -> Vector:
    """The place in the tangle `attach` names the commits whose files are the post's."""
    commit, body = open_publication(bytes.fromhex(publication))
    assert body["tag"] == "post1"
    [named] = [previous for kind, _, previous in commit["tangles"] if kind == "attach"]
    return {
        "publication": publication,
        "commit_id": commit["commit_id"],
        "text": body["text"],
        "attached": named,
        "files": [name for (_, adder), name in there.items() if adder in named],
    }


def remake_messages(vectors: Vector) -> Vector:
    opened = [reader.open_message(bytes.fromhex(vector["encoded"])) for vector in vectors]
    assert {tag for tag, _ in opened} == set(reader.MESSAGES)
    given = load("derivations.json")
    branch, session = bytes.fromhex(given["branch_id"]), bytes.fromhex(given["session_id"])
    topics = {fields["topic"] for _, fields in opened if "topic" in fields}
    assert topics == {reader.blinded_topic(branch, session)}
    return [{"tag": tag, "encoded": reader.pack([tag, *fields.values()])} for tag, fields in opened]


def remake_newer_messages(vectors: Vector) -> Vector:
    """Reasons are left as they are: the reader has none."""
    made: Vector = []
    for vector in vectors:
        one = {"frame": vector["frame"], "encoded": vector["encoded"]}
        try:
            taken = reader.take_message(bytes.fromhex(vector["encoded"]))
        except reader.Refused:
            made.append({**one, "refused": vector["refused"]})
            continue
        if taken is None:
            made.append({**one, "passed_over": True})
        else:
            tag, fields = taken
            made.append({**one, "taken_as": reader.pack([tag, *fields.values()])})
    return made


def remake_said_kinds(vector: Vector) -> Vector:
    assert reader.declared_kind(b"free") == reader.declared_kind(reader.pack(["kind1", "join1"])) == ""
    assert reader.said_of_body(reader.pack(["kind2", "post1", "a"])) == ("", "")
    assert reader.said_of_body(reader.pack(["kind2", "set1", "a/../b"])) == ("", "")
    made = {}
    for metadata in vector.values():
        tag, name = reader.said_of_body(bytes.fromhex(metadata))
        if name:
            tag = tag or "carried1"
            made[f"{tag} {name}"] = reader.pack(["kind2", tag, name])
        else:
            made[tag] = reader.pack(["kind1", tag])
    assert list(made) == list(vector)
    return made


def remake_skip_links(vector: Vector) -> Vector:
    return [reader.lipmaa(number) for number in range(1, len(vector) + 1)]


def remake_reconciliation(vector: Vector) -> Vector:
    topic, session = bytes.fromhex(vector["topic"]), bytes.fromhex(vector["session_id"])
    ids = [bytes.fromhex(commit_id) for commit_id in vector["ids"]]
    key, range_key = sets.symbol_key(topic), sets.range_key(topic, session)
    length = sets.prefix_length(len(ids))
    symbols = sets.symbols_of(ids, key, length)
    ranges = sets.open_ranges(bytes.fromhex(vector["ranges_question"]))
    items = sorted(zip(vector["depths_in_ranges"], ids, strict=True))
    # The asker's first fingerprint is of the same items, its last range is to be listed.
    (_, first, one, print_), (_, second, nothing, _), (low, third, list_, _) = ranges
    assert (one, print_) == (
        1,
        sets.fingerprint(range_key, [name for at, name in items if (at, name) < first]),
    )
    assert (nothing, list_) == (0, 2)
    listed = b"".join(name for at, name in items if low <= (at, name) < third)
    # Short ids that one of two sets alone holds come back from their symbols.
    fewer = sets.symbols_of(ids[10:], key, length)
    assert set(sets.peel(symbols, fewer, key)) == {commit_id[:16] for commit_id in ids[:10]}
    return vector | {
        "symbol_key": key,
        "range_key": range_key,
        "set_digest": sets.set_digest(ids),
        "opening": reader.pack(["symbols1", length, 0, b"".join(symbols[:48]), sets.marks_of(symbols)]),
        "ask": reader.pack(["ask-symbols1", 48, 8]),
        "symbols": [reader.pack(["symbols1", length, 48, b"".join(symbols[48:56]), b""])],
        "lacks": [reader.pack(["lacks1", b"".join(commit_id[:16] for commit_id in ids[:3])])],
        "ranges_question": reader.pack(
            ["ranges1", [[*first, 1, print_], [*second, 0, b""], [*third, 2, b""]]]
        ),
        "ranges_answer": reader.pack(["ranges1", [[*second, 0, b""], [*third, 2, listed]]]),
    }


def remake_comparisons(vector: Vector) -> Vector:
    """From the rule for ids and the numbers alone."""
    ids = [blake3(number.to_bytes(2, "little")).digest() for number in range(600)]
    assert vector["ids"] == "id number i is the BLAKE3 of i in two bytes, little-endian"
    topic, session = bytes.fromhex(vector["topic"]), bytes.fromhex(vector["session_id"])
    told, ranges = vector["symbols"], vector["ranges"]
    chosen = ids[slice(*told["numbers"])]
    length = sets.prefix_length(len(chosen))
    symbols = sets.symbols_of(chosen, sets.symbol_key(topic), length)
    marks = sets.marks_of(symbols)
    ours, theirs = (
        sorted((ranges["depth_of_all"], one) for one in ids[slice(*ranges[f"{side}_numbers"])])
        for side in ("asker", "answerer")
    )
    frames, here, there = second_ranges.compare(ours, theirs, sets.range_key(topic, session))
    lacks = b"".join(sorted(one[:16] for one in there))
    return vector | {
        "symbols": told
        | {"length": length, "opening": reader.pack(["symbols1", length, 0, b"".join(symbols[:48]), marks])},
        "ranges": ranges
        | {
            "frames": frames,
            "asker_alone": sorted(here),
            "answerer_alone": sorted(there),
            "lacks": [reader.pack(["lacks1", lacks])],
        },
    }


def remake_syncs(vectors: Vector) -> Vector:
    """All messages from what both hold; in the vector's order, which is one of those that time may bring."""
    remade = []
    for vector in vectors:
        topic, session = bytes.fromhex(vector["topic"]), bytes.fromhex(vector["session_id"])
        held = [
            second_sync.Side(map(bytes.fromhex, vector[f"{side}_holds"])) for side in ("dialer", "acceptor")
        ]
        sync = second_sync.Sync(topic, session, *held)
        again = vector | {"blinded_topic": reader.blinded_topic(topic, session)}
        for side, said in zip(("dialer", "acceptor"), sync.said, strict=True):
            told = [bytes.fromhex(frame) for frame in vector[f"{side}_says"]]
            assert (told[:2], told[-1], sorted(told)) == (said[:2], said[-1], sorted(said)), vector["name"]
            again |= {f"{side}_says": told}
        remade.append(again)
    return remade


REMAKE: Final[dict[str, Callable[[Vector], Vector]]] = {
    "derivations.json": epochs.remake_derivations,
    "boxes.json": epochs.remake_boxes,
    "objects.json": remake_objects,
    "bodies.json": remake_bodies,
    "person_names.json": remake_names,
    "links.json": partial(remake_link, "invite"),
    "device_links.json": remake_device_link,
    "ask_links.json": remake_ask_link,
    "capabilities.json": partial(remake_link, "read"),
    "branch_capabilities.json": partial(remake_link, "branch"),
    "commits.json": remake_commits,
    "said_kinds.json": remake_said_kinds,
    "files.json": remake_files,
    "bundles.json": second_bundles.remake,
    "messages.json": remake_messages,
    "newer_messages.json": remake_newer_messages,
    "skip_links.json": remake_skip_links,
    "reconciliation.json": remake_reconciliation,
    "comparisons.json": remake_comparisons,
    "handshake.json": second_handshakes.remake_handshake,
    "syncs.json": remake_syncs,
    "root_commit.json": second_histories.remake_root_commit,
    "epoch_change.json": second_histories.remake_epoch_change,
    "checkpoint_order.json": second_histories.remake_checkpoint_order,
    "texts.json": second_texts.remake_texts,
    "noise_xk.json": second_handshakes.remake_noise,
}


@pytest.mark.parametrize("name", REMAKE)
def test_it_opens_all_of_each_positive_vector(name: str) -> None:
    vector = load(name)
    assert in_hex(REMAKE[name](vector)) == vector


FOREIGN = {"ssb.json"}
"""Vectors of another system's format: Node.js wrote them, which is what that format stands on."""


def test_no_file_of_vectors_is_left_out() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == set(REMAKE) | NEGATIVE | FOREIGN


def refuses(vector: Vector) -> bool:
    """Whether the second reader refuses a negative vector."""
    raw = {name: bytes.fromhex(vector[name]) for name in vector if name in HEX}
    try:
        OPEN_REFUSED[vector["type"]](vector, raw)
    except reader.Refused:
        return True
    return False


HEX: Final = ("encoded", "key", "convergence_secret", "object_id")
OPEN_REFUSED: Final[dict[str, Callable[[Vector, Vector], object]]] = {
    "body": lambda _, raw: reader.open_body(raw["encoded"]),
    "block": lambda _, raw: reader.read_block(raw["encoded"]),
    "opened block": lambda _, raw: reader.decrypt_block(
        raw["encoded"], raw["key"], raw["convergence_secret"]
    ),
    "commit": lambda _, raw: reader.read_commit(raw["encoded"], raw["key"], raw["convergence_secret"]),
    "object": lambda vector, raw: reader.open_object(
        (raw["object_id"], raw["key"]),
        {blake3(block).digest(): block for block in map(bytes.fromhex, vector["blocks"])},
        raw["convergence_secret"],
    ),
    "publication": lambda _, raw: reader.read_publication(raw["encoded"]),
    "message": lambda _, raw: reader.open_message(raw["encoded"]),
    "invitation": lambda vector, _: reader.open_link("invite", vector["text"]),
    "capability": lambda vector, _: reader.open_link("read", vector["text"]),
    "id": lambda vector, _: reader.read_id(vector["text"]),
}
BOUNDS_NOT_CHECKED: Final = {
    "block_too_many_acks",
    "body_adoption_of_nothing",
    "body_handed_to_nobody",
    "body_opening_of_nothing",
    "body_empty_name",
    "body_empty_text_update",
    "body_long_dict_key",
    "body_long_name",
    "body_no_owners",
    "body_no_uses",
    "body_replaces_too_many",
    "body_snapshot_of_nothing",
    "body_time_beyond_exact_numbers",
    "body_too_many_friends",
    "body_too_many_friends_sign",
    "body_too_many_owners",
    "body_too_many_signers",
    "commit_tangle_kind_in_capitals",
    "commit_tangle_kind_with_newline",
    "commit_timestamp_beyond_exact_numbers",
    "message_batch_of_nothing",
    "message_blocks_too_many",
    "message_circuit_credit_of_nothing",
    "message_circuit_credit_too_large",
    "message_circuit_data_of_nothing",
    "message_circuit_data_too_large",
    "message_seen_address_too_long",
    "message_deposit_of_nothing",
    "message_fetch_of_nothing",
    "message_fetch_of_too_many",
    "message_account_quota_too_large",
    "message_deposit_of_an_empty_file",
    "message_deposit_of_no_file",
    "message_deposit_of_too_many_files",
    "message_files_listed_too_many",
    "message_settled_no_file",
    "message_goodbye_too_long",
    "message_nodes_of_nobody",
    "message_nodes_too_many",
    "message_refusal_too_long",
    "message_bodies_of_nothing",
    "message_bodies_of_too_many",
    "message_want_of_nothing",
    "message_want_of_too_many",
    "publication_too_many_blocks",
}
"""What the short reader does not check: bounds of section 11, and what a tangle's kind may be called."""


def test_it_refuses_all_but_what_is_out_of_bounds() -> None:
    assert {vector["defect"] for vector in load("refused.json") if not refuses(vector)} == BOUNDS_NOT_CHECKED


def test_it_takes_no_signature_that_libraries_disagree_on() -> None:
    for case in load("ed25519_speccheck.json")["cases"]:
        key, message, signature = (bytes.fromhex(case[name]) for name in ("key", "message", "signature"))
        with pytest.raises(reader.Refused):
            reader.check_ed25519(key, message, signature)


def test_an_object_of_many_blocks_is_read_back_and_another_tree_is_not() -> None:
    secret = bytes(32)
    reference, blocks = reader.make_object(bytes(reader.LEAF_SIZE) + b"tail", secret)
    assert reader.open_object(reference, blocks, secret) == bytes(reader.LEAF_SIZE) + b"tail"
    uneven, more = reader.make_object(b"short", secret)
    child_ids = [uneven[0], reference[0]]
    key = blake3(uneven[1] + reference[1], key=secret).digest()
    parent = reader.pack(["block2", child_ids, [], 0, b"", reader.chacha20(key, uneven[1] + reference[1])])
    wrong = [blake3(parent).digest(), key]
    with pytest.raises(reader.Refused, match="the one tree"):
        reader.open_object(wrong, {**blocks, **more, wrong[0]: parent}, secret)


def test_a_deposited_file_is_signed_by_its_topics_key() -> None:
    topic = bytes.fromhex(load("derivations.json")["writers_topic"])
    (encoded,) = [one["encoded"] for one in load("messages.json") if one["tag"] == "deposit-files1"]
    _, message = reader.open_message(bytes.fromhex(encoded))
    ((file, size, signature),) = message["files"]
    reader.check_signature(topic, "file deposit signature v1", [topic, file, size], signature)
