"""A community of ten years, made by the code that members use: who came and went, which epochs, branches and commits.

Start with `plan`, which says what happens when; `life` makes it happen in a store, and `build` keeps the folders.
"""
