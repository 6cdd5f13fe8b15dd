"""HTTP/1.1 for the API: listening, parsing, answers, and bounds of clients without a token.

The API itself is `node.api`. Start with `server`, then `connection`.
"""
