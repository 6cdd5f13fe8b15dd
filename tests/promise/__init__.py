"""Histories of whole nodes, and the promise that must hold after each: `python -m tests.promise`, `make promise`.

A history is drawn from a seed as plain steps (`draw`), done by real nodes (`play`), healed (`healing`) and checked
(`checks`): what is promised stands in docs/specification/membership-rules.md, section E. A history that breaks the
promise is shrunk to the fewest steps that still do (`shrink`). `mutants` takes rules out of the product, one after another.

Read it in this order: `draw`, `people`, `world`, `meetings`, `actions`, `hostile`, `hostile_rules`, `play`, `healing`,
`checks`, `orders`, `judging`.
"""
