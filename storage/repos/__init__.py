"""Repos, their epochs and branches: rows that say what this node follows and what opens it.

Who may do what follows from commits (`verifier.membership`). Start with `repos`.
"""
