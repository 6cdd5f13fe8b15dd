"""Pure rules that decide which commits are valid, who holds which permission, and what is void."""
