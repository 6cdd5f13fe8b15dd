"""The canonical order anew, from acks alone, for branches of any size.

What is counted of it is in `analytics.tables`. Whether a node's own order is wrong is decided in `analytics.analyze`
and `analytics.audit.findings`. Start with `linearize`, then `kernel`.
"""
