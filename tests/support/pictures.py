"""Pictures for tests that attach files."""

import struct
import zlib


def png() -> bytes:
    """Return a picture of 64 by 64 pixels."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + bytes((y * 4, 120, x * 4)[c] for x in range(64) for c in range(3)) for y in range(64)
    )
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    )
