"""The local HTTP API: who may call and what for, how requests are read, and the endpoints.

What they do is in the rooms below. Start with `answers`, then `api`; `access` compares tokens with the table.
"""
