"""A small reverse proxy and a forward one, as web servers and companies run them: they read heads, then pass bytes on."""

import datetime
import ipaddress
import ssl
from pathlib import Path

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_HEAD_SIZE_MAX = 16_384


async def pass_on(ours: trio.abc.Stream, theirs: trio.abc.Stream) -> None:
    """Pass bytes on both ways until one side ends."""

    async def copy(source: trio.abc.Stream, target: trio.abc.Stream, scope: trio.CancelScope) -> None:
        try:
            while data := await source.receive_some(65_536):
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(copy, ours, theirs, nursery.cancel_scope)
        nursery.start_soon(copy, theirs, ours, nursery.cancel_scope)


async def read_head(stream: trio.abc.Stream) -> bytes:
    """The head of a request, and what came with it."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_SIZE_MAX:
        some = await stream.receive_some(4096)
        if not some:
            break
        head += some
    return head


class ReverseProxy:
    """What stands on port 443: TLS ends here, `/ravel` goes on to a node, and all else is another site's."""

    def __init__(self, backend: str, tls: ssl.SSLContext | None = None, client: str = "203.0.113.7") -> None:
        """`client`: where requests are said to come from, instead of loopback."""
        self._host, _, port = backend.rpartition(":")
        self._port = int(port)
        self._tls = tls
        self._client = client
        self.tunnels = 0

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection."""
        try:
            if self._tls is not None:
                stream = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
            head = await read_head(stream)
            if not head.startswith(b"GET /ravel "):
                await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                return
            said, _, rest = head.partition(b"\r\n")
            forwarded = f"X-Forwarded-For: 198.51.100.1, {self._client}\r\nX-Real-IP: {self._client}\r\n"
            async with await trio.open_tcp_stream(self._host, self._port) as backend:
                self.tunnels += 1
                await backend.send_all(said + b"\r\n" + forwarded.encode() + rest)
                await pass_on(stream, backend)
        except (trio.BrokenResourceError, OSError):
            pass
        finally:
            await trio.aclose_forcefully(stream)


class ForwardProxy:
    """A proxy for HTTP that opens tunnels by CONNECT."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self._answer = answer
        self.heads: list[bytes] = []

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection."""
        async with stream:
            head = await read_head(stream)
            self.heads.append(head)
            host, _, port = head.split()[1].decode().rpartition(":")
            await stream.send_all(self._answer)
            if b" 200 " in self._answer:
                async with await trio.open_tcp_stream(host, int(port)) as backend:
                    await pass_on(stream, backend)


def make_certificate(folder: Path, name: str = "localhost", host: str = "127.0.0.1") -> tuple[Path, Path]:
    """A self-signed certificate for a name and a host, and its key, as PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(host))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    chain, secret = folder / "certificate.pem", folder / "key.pem"
    chain.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return chain, secret
