"""Promises of the local HTTP API: each endpoint with its parameters, request and answer, as values and types.

One module for each subject holds all three. Nothing here imports a service or opens a connection: `node.api` serves the
table, the clients are generated from it, and the services return its answer types. Start with `endpoint`, then
`members`, then `table`.
"""
