"""The `ravel` command: one file for each group of commands, no logic, the same service as the HTTP API."""
