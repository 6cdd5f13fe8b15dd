"""Histories of repos and what becomes of them, written from the documents alone."""
