"""The reason codes in docs/specification/protocol.md and its profiles are those that the code has: no more, no fewer.

They are found in the syntax tree, so that a new one cannot be forgotten in the documents.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from node.ingest.publication_parsing import CARRIER_FAULTS

pytestmark = pytest.mark.slow  # each parses all modules

ROOT: Final = Path(__file__).parents[3]
DOCUMENTS: Final = [
    path.read_text(encoding="utf-8")
    for path in (
        ROOT / "docs" / "specification" / "protocol.md",
        *sorted((ROOT / "docs" / "specification" / "profiles").glob("*.md")),
    )
]
"""The core, then the profiles."""
RECONCILING: Final = "protocol/session/machines/reconciling.py"
CODE: Final = re.compile(r"`([a-z_]+):?`")


def calls(path: str, *names: str) -> Iterator[ast.Call]:
    """Calls of functions or methods of these names in a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if not any(f"{name}(" in text for name in names):
        return  # to parse it takes a hundred times as long
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in names:
                yield node


def codes(argument: ast.expr) -> set[str]:
    """The codes that an argument may be, each up to its colon; none where it is no literal."""
    match argument:
        case ast.Constant(str(text)):
            return {text.partition(":")[0]} - {""}
        case ast.JoinedStr([ast.Constant(str(text)), *_]):
            return {text.partition(":")[0]}
        case ast.IfExp(body=first, orelse=second):
            return codes(first) | codes(second)
    return set()


def codes_of(path: str, position: int, *names: str) -> set[str]:
    """The codes that these calls in a file are given at a position."""
    found: set[str] = set()
    for call in calls(path, *names):
        if len(call.args) > position:
            found |= codes(call.args[position])
    return found


def returned(path: str, function: str) -> set[str]:
    """The texts that a function of a file returns."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            values = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
            found |= {code for value in values if value is not None for code in codes(value)}
    return found


def table(heading: str) -> list[list[str]]:
    """The rows of each document's first table whose head begins with these cells."""
    rows: list[list[str]] = []
    for document in DOCUMENTS:
        _, _, rest = document.partition(f"\n| {heading} ")
        for line in rest.splitlines()[2:]:
            if not line.startswith("|"):
                break
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert rows, heading
    return rows


def faults_in_exchange() -> set[str]:
    """What `Reconciled` may say that is wrong."""
    keywords = (
        keyword for call in calls("node/sync/session_queries.py", "Reconciled") for keyword in call.keywords
    )
    return {code for keyword in keywords if keyword.arg == "fault" for code in codes(keyword.value)}


ELSEWHERE: Final = {
    "reason": set[str](),  # what `Connection.part` is given, which is looked at
    "cell.reason": set[str](),  # that of a `PeerFaultCell`, which is looked at too
    "fault.reason": set[str](),  # that of a `PeerFault`
    "output.reason": set[str](),  # that of a `Close`
    "event.fault": faults_in_exchange(),
    "fault": set(CARRIER_FAULTS),
    "refusal": returned("node/sync/connection.py", "find_flood")
    | returned("node/network/admission.py", "admit")
    | {"banned"},
    "cut": {"stopping", "defect"},
    # Those of the transport's errors that come while frames are received; the peer may hear, where it is not gone.
    "error.reason": {"frame_too_large", "bad_frame", "truncated", "closed", "exhausted"},
    "DUPLICATE": {"duplicate"},
    "OFFERS_AGAIN": {"offers_again"},
    "TRUST_CHANGED": {"trust_changed"},
}
"""Arguments of what ends a connection that are no literals, and what they may be."""


def goodbyes_in_code() -> set[str]:
    """What ends a connection, wherever it is made: in a cell of a table, as a fault, a `Close` or a `Goodbye`."""
    found: set[str] = set()
    for path in (*(ROOT / "protocol").rglob("*.py"), *(ROOT / "node").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if name == RECONCILING:
            continue  # said behind `bad_reconciliation:`
        # Elsewhere another thing is closed.
        ends = ("Close", "Goodbye") if "protocol.session.outputs" in path.read_text("utf-8") else ()
        for call in calls(name, "part", "say_goodbye", "PeerFault", "PeerFaultCell", *ends):
            if call.args:  # else it is another method of that name
                argument = call.args[-1]  # of `say_goodbye` the second one
                found |= codes(argument) or ELSEWHERE[ast.unparse(argument)]
    return found


def test_every_reason_of_a_goodbye_is_in_the_document() -> None:
    documented = {code for row in table("reason") for code in CODE.findall(row[0])}
    assert documented == goodbyes_in_code()


def test_every_reason_of_a_reconciliation_is_in_the_document() -> None:
    raised = codes_of(RECONCILING, 0, "PeerFaultCell")
    for path in (ROOT / "protocol").rglob("*.py"):
        raised |= codes_of(str(path.relative_to(ROOT)), 0, "Unreconciled")
    row = next(row for row in table("reason") if "`bad_reconciliation:`" in row[0])
    assert set(CODE.findall(row[1])) == raised


def test_every_code_of_a_rejected_or_dropped_commit_is_in_the_document() -> None:
    found = set[str]()
    for path in (ROOT / "verifier").glob("*.py"):
        name = str(path.relative_to(ROOT))
        found |= codes_of(name, 0, "CommitRefused", "_MisplacedCommit") | codes_of(name, 1, "Rejected")
    found |= codes_of("node/ingest/publication_reading.py", 0, "Drop") | codes_of(
        "node/ingest/publication_reading.py", 1, "Rejected"
    )
    found |= {"bad_topic_signature"}  # counted where claims are settled
    documented = {code for row in table("what | where it does not hold") for code in CODE.findall(row[1])}
    documented |= {code for row in table("rule | says | code") for code in CODE.findall(row[2])}
    documented |= {code for row in table("code | rules") for code in CODE.findall(row[0])}
    assert documented == found


def test_the_documents_name_no_message_that_does_not_exist() -> None:
    tags = {
        *re.findall(r'tag="([a-z0-9-]+)"', "".join(map(Path.read_text, (ROOT / "protocol").rglob("*.py")))),
        "commit2", "block2", "publication1", "bare1",
    }  # fmt: skip
    versions = {
        name
        for name in re.findall(r"`([a-z][a-z-]*[0-9])`", "".join(DOCUMENTS))
        if not name.startswith("ravel")
    }
    assert versions - tags == {"commit3"}, "one that nobody knows yet, on purpose"
