"""From the bytes of a publication to accepted commits: parsing, verdict, one transaction, and what follows from it.

Rules are `verifier`'s and rows are `storage`'s. Start with `publication_parsing`, then
`acceptance`; `replica` is what a node follows.
"""
