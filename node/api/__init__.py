"""The local HTTP API: who may call, how requests are read, and the endpoints.

What they do is in the rooms below. Start with `service`, then `api`.
"""
