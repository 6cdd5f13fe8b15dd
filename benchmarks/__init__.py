"""Benchmarks: each prints one JSON line per figure, as a ratio to a stated limit or peer of the same run."""
