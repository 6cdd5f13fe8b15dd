"""Real daemons on bad lines."""
