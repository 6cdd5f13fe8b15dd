"""The HTTP API from Python, which the command line is written on.

The API itself is `node.api`. Start with `client`.
"""
