"""State machines of a session as tables: each state and event has a cell that says what is done and what comes next.

Nothing is carried out here. `protocol.session.session` and `protocol.session.comparison` look a cell up and do what it says;
bounded counters and queues stand beside the state, in `protocol.session.topic_progress`. Read `table` first, then
`comparing`.
"""
