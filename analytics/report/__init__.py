"""The report of an analysis: one page with its pictures, and nothing to fetch.

Computes nothing that `analytics.tables` does not. Start with `report`.
"""
