"""Circuits through a relay: the relay's switch with its quotas, and the client that dials through it.

Start with `switch` for the relay's side, `dialing` for the client's.
"""
