"""What happens: the daemon, its network, CLI and HTTP API; the only asynchronous code (trio)."""
