"""From the bytes of a publication to accepted commits: opening, verdict, one transaction, and what follows from it.

Rules are `verifier`'s and rows are `storage`'s. Start with `opening`, then `inbound`; `replica` is what a node follows.
"""
