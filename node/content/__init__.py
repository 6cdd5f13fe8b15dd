"""Files, sets, dicts and texts of branches: read, written, compacted, erased.

Which operation counts beside which is decided in `verifier.documents`. What a kind of document answers stands in
`node.contract.documents`. Start with `documents` and `files`.
"""
