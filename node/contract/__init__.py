"""What the local HTTP API promises: each endpoint with its parameters, its request and its answer, as values and types.

One module for each subject holds all three. Nothing here calls a service or opens a connection: `node.api` serves the
table, `node.client` calls by it, and the services return its answer types. Start with `endpoint`, then `members`, then
`table`.
"""
