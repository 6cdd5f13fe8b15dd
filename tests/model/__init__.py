"""Executable model of members, epochs, verdicts and transport: `python -m tests.model` (README.md has more).

It imports nothing of the product. Read it in this order: `commits` (values), `members` (R, M), `epochs` (the words of E),
`verdicts` (V, P, M, E), `views` (one node's knowledge), `authors` (honest nodes' commits), `hostile` (changed nodes'),
`worlds` (steps), `promise` and `soundness` (checks), `search` (all histories), `cases` (worlds), `mutants` (weakened
rules). `seniority` checks members alone, `replicas` has nodes with bounds, `links` follows single branches, `studies` and
`topics` hold floods, claims, relays and announcing.
"""
