"""Repos and who is in them: sharing and joining, rights, devices, epochs, quorums, inbox.

What operations mean is decided in `verifier.membership`. Start with `members`, then `joining`.
"""
