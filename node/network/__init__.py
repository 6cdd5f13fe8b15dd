"""Ways by which two nodes reach each other: addresses, dialing, ports of routers, punching, WebSocket.

What they then say to each other is `node.sync`'s. Start with `network`; `dialing` and `line` make one connection.
"""
