"""The format of Scuttlebutt's messages: canonical JSON, ids and signatures, and the threads that messages state. Pure.

Reading logs and feeds of them is `node.importers`'s. Start with `messages`.
"""
