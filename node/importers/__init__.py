"""Other systems' histories as streams of items to import, causes before effects. Start with `imports`."""
