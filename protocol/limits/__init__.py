"""Every bound on what a peer, a file or a user can make this node hold, wait for or compute: with its unit and its reason.

Each module holds the bounds that one kind of input presses against. Bounds of one kind of document stand beside it in
`protocol.formats.document_kinds`. They and `formats` are part of the protocol: a change there changes what is valid. So are
the counts and sizes of messages at the head of `peers`. All others are this node's own choice. Start with `formats`, then
`peers`.
"""
