"""Pure rules that decide which commits are valid, who holds which permission, and what is void.

A question about operations costs O(1) for each one that it returns, and what `Tangle.precedes` costs for each pair that it
compares, unless its docstring says more.
"""
