"""The tables of a store, in SQLAlchemy Core, and the types of their columns.

Migrations of older stores are in `storage/migrations`; what reads and writes the tables is in the rooms above.
Start with `schema`.
"""
