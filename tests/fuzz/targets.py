"""What takes bytes from outside, each as a function of any bytes: what refused them in words, "" if they were taken.

A target lets through the one error that its decoder promises, and no other. What was taken must encode again to the
same bytes, or whatever else is promised of it. Nothing here knows a fuzzer: `harness` feeds these functions with what
it finds, `test_corpus` with what was found before.
"""

from collections.abc import Callable
from typing import Final

from tests.fuzz import api, connections, decoders, inputs, native, reconciliation, session

Target = Callable[[bytes], str]

TARGETS: Final[dict[str, Target]] = {
    "block": decoders.take_block,
    "commit": decoders.take_commit,
    "body": decoders.take_body,
    "publication": decoders.take_publication,
    "bundle": decoders.take_bundle,
    "opening": decoders.take_opening,
    "start": decoders.take_start,
    "native_reading": native.take_native_reading,
    "object": decoders.take_object,
    "message": decoders.take_message,
    "signature": decoders.take_signature,
    "yjs_update": decoders.take_yjs_update,
    "invitation": decoders.take_invitation,
    "capability": decoders.take_capability,
    "branch_capability": decoders.take_branch_capability,
    "device_link": decoders.take_device_link,
    "ask_link": decoders.take_ask_link,
    "link": decoders.take_link,
    "id": decoders.take_id,
    "session": session.take_session,
    "symbols": reconciliation.take_symbols,
    "ask_symbols": reconciliation.take_ask_symbols,
    "lacks": reconciliation.take_lacks,
    "ranges_question": reconciliation.take_ranges_question,
    "ranges_answer": reconciliation.take_ranges_answer,
    "acceptor": connections.take_acceptor,
    "dialer": connections.take_dialer,
    "wire": connections.take_wire,
    "frames": connections.take_frames,
    "http": api.take_http,
    "request": api.take_request,
    "answer": api.take_answer,
    "config": inputs.take_config,
    "announcement": inputs.take_announcement,
    "secret": inputs.take_secret,
    "tokens": inputs.take_tokens,
    "keys": inputs.take_keys,
    "file_batch": inputs.take_file_batch,
    "jsonl": inputs.take_jsonl,
    "jsonl_gz": inputs.take_jsonl_gz,
    "git_commits": inputs.take_git_commits,
    "ssb": inputs.take_ssb,
}
