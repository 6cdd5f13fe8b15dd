"""The `ravel` command: one file for each group of commands, each a call of the HTTP API and a printer."""
