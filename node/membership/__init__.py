"""Repos and who is in them: sharing and joining, rights, devices, epochs, quorums, inbox, branches that continue others.

What operations mean is decided in `verifier.membership`. Start with `members`, then `joining`.
"""
