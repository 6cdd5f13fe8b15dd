"""Executable model of members, epochs, verdicts and transport: `python -m tests.model` (README.md has more).

It imports nothing of the product. Read it in this order: `commits` (values), `members` (R, M), `epochs` (the words of E),
`verdicts` (V, P, M, E), `views` (one node's knowledge), `authors` (honest nodes' commits), `hostile` (changed nodes'),
`worlds` (steps), `promise` and `soundness` (checks), `search` (all histories), `cases` (worlds), `mutants` (weakened
rules). `links` follows single branches.
"""
