"""Alembic's entry: runs the migrations on the connection that `storage.engine.database` gives."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=False)
context.run_migrations()
