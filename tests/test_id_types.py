"""Ids, keys, seeds and secrets have types of their own in public signatures of protocol, verifier and storage.

Bare `bytes` stands for contents alone: encodings, plaintexts, ciphertexts, frames. So a repo's id in place of a branch's, a
seed in place of a public key, or an epoch's key in place of a writers' secret is an error of mypy's. A public function that
takes or gives bare `bytes` under another name than those below would let all of these pass again.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
BARE: Final = re.compile(r"\bbytes\b")

CONTENTS: Final = {
    "associated", "block", "blocks", "body", "box", "boxes", "ciphertext", "content", "data", "encoded", "frame", "frames",
    "hidden_key", "items", "kept", "lanes", "link", "marks", "material", "message", "metadata", "nonce", "packed",
    "payload", "place", "plaintext", "prefix", "prologue", "publication", "salt", "sealed",
    "start", "statement", "symbols", "writers_boxes",
}  # fmt: skip
"""Parameters and fields that hold contents: bytes whose meaning does not follow from their length, or that only a parser or
a cipher gives a meaning to."""

MAKERS: Final = {
    "answer", "answer_ranges", "box_nonce", "box_pad", "commit_key_pad", "commit_key_context", "declare_kind", "decrypt",
    "decrypt_edit",
    "decrypt_unchecked", "encode", "encode_bare", "encode_batch",
    "encoded",
    "encode_body", "encode_end",
    "encode_lacks", "encode_note", "encode_manifest", "encode_message", "encode_parts", "encode_publication",
    "encode_update",
    "epoch_place",
    "feed_link", "file_place", "find_kept_block", "fingerprint", "hide_key",
    "first_message", "link_checksum", "load_content", "load_kept_block",
    "load_kept_publications",
    "load_one_pending", "load_parts",
    "load_pending", "load_publications", "load_rejected_givers", "load_unread", "mask",
    "membership_place", "open", "decrypt_block", "encrypt", "prekey_place",
    "open_object", "open_optional", "opening", "pack_symbols", "range_fingerprint", "read", "read_blocks",
    "read_body", "read_held", "read_message", "repo_place", "search_place", "search_text_place", "seal",
    "seal_key", "seal_keys", "seal_presence", "seal_optional", "seal_topic", "set_lanes",
    "start", "pop_released", "pop_unread", "read_first", "read_second", "handle_frame", "symbol_bits", "to_bytes",
    "text_block_place", "text_place", "topic_place", "write_message",
}  # fmt: skip
"""Functions that give contents."""

OTHERS: Final = {
    "storage.commits.kept_texts.TextBlock": "structs of a text, encoded",
    "storage.commits.kept_texts.KeptText.summary": "what a text comes to, encoded",
    "protocol.formats.block.Block.mark": "a mark, or nothing in a block that is no commit's",
    "protocol.formats.block.encrypt_block.mark": "a mark, or nothing in a block that is no commit's",
    "protocol.formats.epochs.Box": "a ciphertext",
    "protocol.formats.epochs.SealedTopic": "a ciphertext",
    "protocol.formats.epochs.StartParts.keys": "an encoded object of a commit, not a key",
    "protocol.crypto.hashing.earlier_fingerprint": "the first bytes of a digest",
    "protocol.session.messages.Earlier.fingerprints": "many, one after another",
    "protocol.crypto.hashing.box_pad.shared": "what a key agreement gives",
    "protocol.crypto.hashing.wait_mark.what": "a tag of what is waited for",
    "protocol.formats.document_kinds.YjsUpdate": "an encoding",
    "protocol.ids._Bytes32": "what the types of ids are made of",
    "protocol.crypto.keys._Bytes32": "what the types of keys are made of",
    "protocol.crypto.stream_cipher.Encipher": "what keys of blocks and of batches are given to alike",
    "protocol.crypto.stream_cipher.by_openssl": "data of any length",
    "protocol.crypto.stream_cipher.by_openssl.key": "a key of a block, or of a batch",
    "protocol.crypto.stream_cipher.encipher": "data of any length",
    "protocol.crypto.stream_cipher.encipher.key": "a key of a block, or of a batch",
    "protocol.crypto.noise.Bytes": "what a cipher takes: no copy is made of a memory view",
    "protocol.session.presence.PresenceSession": "what a browser's tab draws for itself",
    "protocol.session.presence.RelativePosition": "an encoding",
    "protocol.formats.publication.HiddenKey": "a ciphertext",
    "protocol.session.reconciliation.range_items.Bound": "the first bytes of an id, as many as part two ids",
    "protocol.crypto.sealed_keys.SealedKey": "a ciphertext",
    "protocol.session.reconciliation.symbols.Lacks.short_ids": "many, one after another",
    "protocol.formats.links.AskLink.lobby": "an encoded link, not the id of a lobby",
    "protocol.formats.links.DeviceLink.invitation": "an encoded link, not the id of an invitation",
    "protocol.formats.text.base32_text.raw": "what an id or a link is made of",
    "protocol.formats.text.parse_base32": "what an id or a link is made of",
    "storage.commits.document_counters.insert_counters.counters": "a key of a dict as UTF-8",
    "storage.commits.document_counters.keep_counters.changes": "a key of a dict as UTF-8",
    "storage.commits.document_counters.load_increments.key": "a key of a dict as UTF-8",
    "storage.commits.document_index_rows.load_places": "places in an order",
    "storage.commits.document_index_rows.load_range": "places in an order",
    "storage.commits.document_index_rows.load_range.end": "a place in an order",
    "storage.commits.document_index_rows.load_range.start": "a place in an order",
    "storage.commits.document_index_rows.write_places.places": "places in an order",
    "storage.commits.document_making.MadeDocument.unmet": "a key of a dict as UTF-8",
    "storage.commits.document_making.MadeRow.key": "a key of a dict as UTF-8",
    "storage.commits.document_making.MadeRow.position": "a position in an order",
    "storage.commits.document_positions.PlacedItem.key": "a key of a dict as UTF-8",
    "storage.commits.document_positions.PlacedItem.position": "a position in an order",
    "storage.commits.document_positions.find_shown": "a position in an order",
    "storage.commits.document_positions.insert_positions.positions": "a position in an order",
    "storage.commits.document_positions.load_positions": "a position in an order",
    "storage.commits.document_positions.load_positions.end": "a position in an order",
    "storage.commits.document_positions.load_positions.first": "a position in an order",
    "storage.commits.document_reading.Tip.key": "a key of a dict as UTF-8",
    "storage.commits.document_reading.load_keys": "a key of a dict as UTF-8",
    "storage.commits.document_reading.load_tips_between.end": "a key of a dict as UTF-8",
    "storage.commits.document_reading.load_tips_between.first": "a key of a dict as UTF-8",
    "storage.commits.document_reading.load_tips.keys": "a key of a dict as UTF-8",
    "storage.commits.document_rows.SaidOperation.key": "a key of a dict as UTF-8",
    "storage.commits.document_rows.SaidOperation.position": "a position in an order",
    "storage.commits.document_rows._Pair": "a key of a dict as UTF-8",
    "storage.commits.pending_release.drop_causes.causes": "ids of any type, and marks of what is no commit",
    "storage.engine.id_keys.id_keys.starts": "ids of any type, or as much of their beginnings",
    "storage.relay.bare.complete_bare.whole": "publications, each with its encoding",
    "storage.engine.store_seal._Place": "makes the names of places",
    "storage.engine.backends.Backend.rewrite.change": "makes one column's value of others",
    "storage.engine.postgresql.PostgresqlBackend.rewrite.change": "makes one column's value of others",
    "storage.engine.sqlite.SqliteBackend.rewrite.change": "makes one column's value of others",
    "storage.relay.quotas.make_room.new": "publications, each with its encoding",
    "storage.relay.relay.store_publications.new": "publications, each with its encoding",
    "storage.repos.deletion.forget_sketches.of_topics": "SQLAlchemy's types know columns, not ids",
    "storage.repos.repos.Repo.invitation": "an encoded link, not the id of an invitation",
    "verifier.documents.PlacedSnapshot.end": "a key of a dict as UTF-8",
    "verifier.documents.PlacedSnapshot.first": "a key of a dict as UTF-8",
    "verifier.json_contents.find_position": "a position in an order",
    "verifier.json_contents.parse_position.position": "a position in an order",
    "verifier.json_contents.position_of": "a position in an order",
    "verifier.json_contents.positions_in": "a position in an order",
    "verifier.json_registers.HeldRegisters.load_positions": "a position in an order",
    "verifier.json_registers.HeldRegisters.load_positions.end": "a position in an order",
    "verifier.json_registers.HeldRegisters.load_positions.first": "a position in an order",
    "verifier.json_registers.Registers.load_positions": "a position in an order",
    "verifier.json_registers.Registers.load_positions.end": "a position in an order",
    "verifier.json_registers.Registers.load_positions.first": "a position in an order",
}
"""Single names, with the reason."""


def is_bare(annotation: ast.expr | None) -> bool:
    """Whether an annotation, a string inside it included, names bytes."""
    return annotation is not None and BARE.search(ast.unparse(annotation)) is not None


def found_in(body: list[ast.stmt], place: str) -> Iterator[tuple[str, bool]]:
    """Public names with bare bytes in a module or class, each with whether it may."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("_") and name != "__init__":
                    continue
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                arguments += [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
                for one in arguments:
                    if is_bare(one.annotation):
                        yield f"{place}.{name}.{one.arg}", one.arg.lstrip("_") in CONTENTS
                if is_bare(node.returns):
                    yield f"{place}.{name}", name in MAKERS
            case ast.ClassDef(name=name):
                if not name.startswith("_"):
                    yield from found_in(node.body, f"{place}.{name}")
            case ast.AnnAssign(target=ast.Name(id=name)):
                if not name.startswith("_") and is_bare(node.annotation):
                    yield f"{place}.{name}", name in CONTENTS
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp() | ast.Name()):
                if is_bare(node.value):  # another name for bytes, or for what holds them
                    yield f"{place}.{name}", False


@cache
def found() -> dict[str, bool]:
    """All of the three packages. Migrations are of the rows as they once were."""
    names: dict[str, bool] = {}
    for package in ("protocol", "verifier", "storage"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                names.update(found_in(ast.parse(path.read_text()).body, module))
    return names


@pytest.mark.slow
def test_no_public_signature_has_bare_bytes_for_an_id_a_key_or_a_secret() -> None:
    assert [name for name, is_content in found().items() if not is_content and name not in OTHERS] == []


@pytest.mark.slow
def test_every_exception_is_needed() -> None:
    bare = found()
    assert OTHERS.keys() - bare.keys() == set()
    used = {name.rpartition(".")[2].lstrip("_") for name in bare}
    assert (CONTENTS | MAKERS) - used == set()
