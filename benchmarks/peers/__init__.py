"""Members of other systems and of Ravel, which do the same work in turns.

Start with `members`, which says what a member can do. `workloads` has them do it, and `bench_peers` prints what it took.
`systems.toml` says of each system what it is, and which workloads it cannot do.
"""
