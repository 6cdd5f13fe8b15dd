"""One conversation of two nodes as a pure state machine: events in, outputs out.

`messages` has what is sent, `machines` what is allowed when, `reconciliation` finds what one side lacks. Start with
`session`.
"""
