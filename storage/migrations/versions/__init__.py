"""Schema migrations, run at start by `storage.engine.database`."""
