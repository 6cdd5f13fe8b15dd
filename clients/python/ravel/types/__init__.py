"""Types of answers, which the node returns and the clients read. Start with `values`.

A field's annotation (`values.means`) says what it means, for the API's description, and what the node of this version puts
there at most. Clients read more than that: a newer node may allow it.
"""
