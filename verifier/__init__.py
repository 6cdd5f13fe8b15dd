"""What may be believed, and in which order: pure rules over protocol values."""
