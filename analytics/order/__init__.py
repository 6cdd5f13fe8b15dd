"""The canonical order anew, from acks alone, for branches of any size.

What is counted of it is in `analytics.tables`. Start with `linearize`, then `kernel`.
"""
