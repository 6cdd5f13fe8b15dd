"""Values and their one encoding: blocks, commits, bodies, publications, links, documents.

Decoding is strict, and each length is bounded before it is buffered. Start with `block`, then `commit` and `body`.
"""
