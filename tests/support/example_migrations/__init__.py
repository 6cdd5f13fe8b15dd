"""Migrations as an example: as if there had been a schema before the first one (`tests.support.older_stores`)."""
