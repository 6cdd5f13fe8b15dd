"""Schema migrations, run at start by `storage.database`."""
