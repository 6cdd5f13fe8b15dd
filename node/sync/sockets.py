"""Where the two ends of a TCP connection are."""

import trio


def local_host(stream: trio.SocketStream) -> str:
    """This machine's address on a connection; empty of one that has ended."""
    try:
        return str(stream.socket.getsockname()[0])
    except OSError:  # the peer has gone already
        return ""


def address_of(stream: trio.SocketStream) -> str:
    """host:port of the other end of a connection; "unknown" of one that has ended."""
    try:
        host, port = stream.socket.getpeername()[:2]
    except OSError:  # the peer has gone already
        return "unknown"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
