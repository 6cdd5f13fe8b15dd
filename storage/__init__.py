"""The store: synchronous access by SQLAlchemy Core, and the schema of exports."""
