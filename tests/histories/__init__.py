"""Random histories of members, some malicious: told as plain steps from a seed, then sealed as real signed commits."""
