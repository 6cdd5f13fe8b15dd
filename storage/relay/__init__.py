"""Publications that a relay keeps for others and cannot open, within quotas.

What this node follows itself is in `storage.commits`. Start with `relay`.
"""
