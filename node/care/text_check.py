"""Compares texts as the store keeps them with what the commits that they are made of come to."""

from sqlalchemy import Connection

from node.content.text_keeping import restore
from node.content.text_reading import TextReader
from node.content.text_versions import merge_pieces
from node.content.text_words import TextWords
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from storage.check.check_integrity import CheckFindings
from storage.commits.kept_texts import KeptText, load_kept_branches, load_text, load_text_blocks
from storage.engine.column_encryption import BadSecret
from storage.repos.repos import Branch
from verifier.documents import ErasedValues
from verifier.texts import TooManyDeletions


def check_texts(connection: Connection, tables: Tables, findings: CheckFindings) -> None:
    """Find texts that are kept otherwise than their commits say. Costs O(updates of these texts)."""
    reader = TextReader(tables)
    for num in load_kept_branches(connection):
        findings.checked["texts"] += 1
        kept, branch = load_text(connection, num), tables.branches.get(num)
        words = None if kept is None or branch is None else _restore(connection, num, kept)
        if words is None or branch is None or kept is None:
            findings.add(
                "text", f"branch {num}", "what is kept of its text cannot be read, or it is not here"
            )
        elif not _is_right(connection, reader, branch, words, kept.upto):
            findings.add("text", branch.name, "its text is kept otherwise than its commits say")


def _restore(connection: Connection, num: int, kept: KeptText) -> TextWords | None:
    if kept.summary is None:
        return None
    try:
        return restore(kept.summary, load_text_blocks(connection, num))
    except BadSecret:
        return None


def _is_right(
    connection: Connection, reader: TextReader, branch: Branch, words: TextWords, upto: int
) -> bool:
    new = reader.read_new(connection, branch, upto, words.depth)
    if new is None or not all(words.grow(*one) for one in new):
        return True  # it is made anew when it is read next
    try:
        whole = reader.reduce(connection, branch)
    except (ErasedValues, TooManyDeletions, ServiceError):
        return False  # then nothing would have been kept, or it would have been dropped
    return (words.encode(), words.count) == (merge_pieces(whole.pieces.values()), len(whole.pieces))
