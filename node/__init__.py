"""The running node: daemon, network, CLI and HTTP API; the only asynchronous code (trio)."""
