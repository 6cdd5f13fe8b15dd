"""Fuzz targets for what a node reads of its own machine: the configuration, and other systems' histories.

See `targets` for what a target is.
"""

import json
import tempfile
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

from node.content.file_batch import EncryptedFile, FileBatch
from node.home.config import default_config_text, parse_config
from node.home.key_file import decode_key_file, encode_key_file, open_node_keys
from node.home.tokens import decode_tokens, encode_tokens
from node.importers.git_history import GitHistory, read_commits
from node.importers.item import SourceItem
from node.importers.jsonl import read_jsonl
from node.importers.ssb_log import item_of
from node.network.lan import read_announcement
from node.runtime.errors import ServiceError
from node.scuttlebutt.canonical_json import canonical, parse_by_rules, write_by_rules
from node.scuttlebutt.messages import MessageRefused, read_ssb_message
from protocol.crypto.signing import public_key
from protocol.formats.body import encode_body
from protocol.formats.content import Imported
from protocol.formats.text import id_text
from protocol.session.reach import host_of
from ravel.home import TOKEN_NAME, read_token
from tests.fuzz.decoders import CONVERGENCE


def take_config(data: bytes) -> str:
    path = Path("config.toml")
    try:
        config = parse_config(path, data.decode("utf-8"))
    except UnicodeDecodeError:
        return "not UTF-8"  # refused by `load_document`, which parses text only
    except ServiceError as error:
        return _message(error, "bad_config")
    listen, api = config.network.listen, config.api.listen
    again = parse_config(path, default_config_text(listen=listen, api=api))
    assert (again.network.listen, again.api.listen) == (listen, api)
    return ""


def take_announcement(data: bytes) -> str:
    """A line of the process that listens on the local network."""
    heard = read_announcement(data)
    if heard is None:
        return "not an announcement"
    assert host_of(heard.address) is not None
    assert (len(heard.salt), len(heard.mark)) == (16, 32)
    return ""


def take_secret(data: bytes) -> str:
    """A file of the API's token."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, TOKEN_NAME)
        path.write_bytes(data)
        path.chmod(0o600)
        try:
            token = read_token(Path(folder))
        except ServiceError as error:
            return _message(error, "bad_config").replace(str(path), "")
    assert len(bytes.fromhex(token)) == 32
    return ""


def take_tokens(data: bytes) -> str:
    """A file of tokens for apps."""
    try:
        tokens = decode_tokens(data, Path("tokens.json"))
    except ServiceError as error:
        return _message(error, "bad_config")
    assert decode_tokens(encode_tokens(tokens), Path("tokens.json")) == tokens
    return ""


def take_keys(data: bytes) -> str:
    """A file of keys. What a passphrase opens is not opened: an input may ask for a gigabyte, and is granted it."""
    try:
        file = decode_key_file(data, "keys.json", "node")
    except ServiceError as error:
        return _message(error, "bad_config")
    assert decode_key_file(encode_key_file(file), "keys.json", "node") == file
    if file.protection == "passphrase":
        return ""
    try:
        keys = open_node_keys(file, "keys.json", bytes(32))
    except ServiceError as error:
        return _message(error, "bad_config")
    assert (id_text(public_key(keys.node_seed)), id_text(public_key(keys.user_seed))) == (
        file.node,
        file.user,
    )
    return ""


def take_file_batch(data: bytes) -> str:
    """The body of a request to add many files, whole and byte by byte."""
    found, refusals, codes = list[list[EncryptedFile]](), list[str](), set[str]()
    for size in (max(len(data), 1), 1):
        batch = FileBatch(CONVERGENCE, lambda _: None)
        try:
            for start in range(0, len(data), size):
                batch.add(memoryview(data[start : start + size]))
            found.append(batch.finish())
        except ServiceError as error:
            refusals.append(error.message)
            codes.add(error.code)
    assert codes <= {"bad_request", "too_large"}
    assert found[1:] == found[:-1]
    assert refusals[1:] == refusals[:-1]
    if refusals:
        return refusals[0]
    assert sum(file.size for file in found[0]) < len(data)
    for file in found[0]:
        # Who writes the files into a folder by their names is not led out of it.
        assert Path("/folder", file.name).resolve().is_relative_to("/folder")
    return ""


def take_jsonl(data: bytes) -> str:
    return _take_lines("graph.jsonl", data)


def take_jsonl_gz(data: bytes) -> str:
    return _take_lines("graph.jsonl.gz", data)


def take_ssb(data: bytes) -> str:
    """A line of a Scuttlebutt log. Its signature is not looked at: nobody can guess one."""
    try:
        message = read_ssb_message(data)
    except MessageRefused as refused:
        return str(refused)
    text = message.text.encode()
    assert canonical(text)[1] == write_by_rules(parse_by_rules(text)) == message.text
    _check_item(item_of(message))
    return ""


def take_git_commits(data: bytes) -> str:
    """What `git cat-file --batch` prints. A history starts git itself, so this goes through its parts."""
    history = GitHistory(Path())
    try:
        for _, content in read_commits(BytesIO(data)):
            _check_item(history.take("id", content))
    except ServiceError as error:
        return _message(error, "bad_input")
    return ""


def _take_lines(name: str, data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        items: list[SourceItem] = []
        refusal = ""
        try:
            for item in read_jsonl(path):
                _check_item(item)
                items.append(item)
        except ServiceError as error:
            refusal = _message(error, "bad_input").removeprefix(str(path))
        again = Path(folder, "again.jsonl")
        again.write_text("".join(json.dumps(asdict(item)) + "\n" for item in items), encoding="utf-8")
        assert list(read_jsonl(again)) == items
    return refusal


def _message(error: ServiceError, code: str) -> str:
    assert error.code == code
    return error.message


def _check_item(item: SourceItem) -> None:
    """What an importer yields can be a commit's body."""
    encode_body(Imported(item.id, item.author, item.time * 1000, item.text))
