"""Sessions of many nodes on a simulated network: one seed is one run, replayed alike every time."""
