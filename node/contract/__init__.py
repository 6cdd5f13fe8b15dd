"""Promises of the local HTTP API: each endpoint with its parameters and request, as values and types.

One module for each subject. `ravel.types` has the types of answers, which the services return and the client reads. Nothing
here imports a service or opens a connection: `node.api` serves the table, and the clients' calls are generated from it.
Start with `endpoint`, then `members`, then `table`.
"""
