"""Routers on loopback that forward ports, or answer otherwise: by UPnP over HTTP, and by PCP or NAT-PMP over UDP."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

PUBLIC: Final = "8.8.4.4"
_DESCRIPTION: Final = """<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major><minor>0</minor></specVersion><device>
<deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType><friendlyName>r</friendlyName>
<UDN>uuid:1</UDN><deviceList><device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType><UDN>uuid:2</UDN>
<serviceList><service><serviceType>urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1</serviceType>
<serviceId>urn:upnp-org:serviceId:WANCommonIFC1</serviceId><controlURL>/ctl</controlURL><eventSubURL>/e</eventSubURL>
<SCPDURL>/s.xml</SCPDURL></service></serviceList><deviceList><device>
<deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType><UDN>uuid:3</UDN><serviceList><service>
<serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>
<serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId><controlURL>/ctl</controlURL><eventSubURL>/e</eventSubURL>
<SCPDURL>/s.xml</SCPDURL></service></serviceList></device></deviceList></device></deviceList></device></root>"""
_CONNECTED: Final = (
    "<NewConnectionStatus>Connected</NewConnectionStatus><NewLastConnectionError>ERROR_NONE</NewLastConnectionError>"
    "<NewUptime>1</NewUptime>"
)


class UpnpRouter:
    """What a router says by UPnP, and which ports it was told to forward."""

    def __init__(self, host: str = PUBLIC, *, held: tuple[int, ...] = (), is_permanent: bool = False) -> None:
        """Ports `held` are another machine's. One that is `is_permanent` grants no time."""
        self.host = host
        self.held = held
        self.is_permanent = is_permanent
        self.forwarded: dict[int, str] = {}  # external port: what was asked
        self.description = ""

    def answer(self, action: str, body: str) -> tuple[int, str]:
        """The status and the body's inside for an action."""
        external = int(_field(body, "NewExternalPort") or 0)
        if action == "GetStatusInfo":
            return 200, _CONNECTED
        if action == "GetExternalIPAddress":
            return 200, f"<NewExternalIPAddress>{self.host}</NewExternalIPAddress>"
        if action == "GetSpecificPortMappingEntry":
            if external not in self.held:
                return _fault(714, "NoSuchEntryInArray")
            return 200, (
                "<NewInternalPort>1</NewInternalPort><NewInternalClient>10.9.9.9</NewInternalClient>"
                "<NewEnabled>1</NewEnabled><NewPortMappingDescription/><NewLeaseDuration>0</NewLeaseDuration>"
            )
        if action == "AddPortMapping":
            if self.is_permanent and _field(body, "NewLeaseDuration") != "0":
                return _fault(725, "OnlyPermanentLeasesSupported")
            self.forwarded[external] = (
                f"{_field(body, 'NewInternalPort')} for {_field(body, 'NewLeaseDuration')}"
            )
            return 200, ""
        return _fault(401, "Invalid Action")


@contextmanager
def serve_upnp(router: UpnpRouter, page: Callable[[], bytes] = _DESCRIPTION.encode) -> Iterator[str]:
    """The URL of the router's description, which is `page`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, page())

        def do_POST(self) -> None:
            if self.path != "/ctl":
                self._answer(404, b"")
                return
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            action = self.headers["SOAPAction"].strip('"').partition("#")[2]
            status, inside = router.answer(action, body)
            kind = "urn:schemas-upnp-org:service:WANIPConnection:1"
            wrapped = (
                inside
                if status != 200
                else f'<u:{action}Response xmlns:u="{kind}">{inside}</u:{action}Response>'
            )
            envelope = "http://schemas.xmlsoap.org/soap/envelope/"
            self._answer(
                status, f'<s:Envelope xmlns:s="{envelope}"><s:Body>{wrapped}</s:Body></s:Envelope>'.encode()
            )

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]  # the worker may hang up
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/rootDesc.xml"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serve_gateway(answer: Callable[[bytes], bytes | None]) -> Iterator[tuple[str, int]]:
    """Where a gateway answers packets; None: it is silent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(0.05)
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                try:
                    data, sender = udp.recvfrom(1100)
                except TimeoutError:
                    continue
                answered = answer(data)
                if answered is not None:
                    udp.sendto(answered, sender)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield udp.getsockname()
        finally:
            is_over.set()
            thread.join()


def pcp(data: bytes, *, host: str = PUBLIC, code: int = 0, nonce: bytes = b"") -> bytes | None:
    """What a PCP gateway answers that forwards the suggested port for an hour."""
    if data[0] != 2:
        return None
    mapped = bytes(10) + b"\xff\xff" + socket.inet_aton(host)
    header = struct.pack("!BBBBII", 2, 0x81, 0, code, 3600, 1) + bytes(12)
    return header + (nonce or data[24:36]) + data[36:44] + mapped


def nat_pmp(data: bytes, *, host: str = PUBLIC, code: int = 0) -> bytes:
    """What a NAT-PMP gateway answers, also to PCP, whose version it does not know."""
    if data[0] != 0:
        return struct.pack("!BBHI", 0, 0x80 | data[1], 1, 1)
    if data[1] == 0:
        return struct.pack("!BBHI", 0, 128, code, 1) + socket.inet_aton(host)
    internal, external, seconds = struct.unpack("!HHI", data[4:12])
    return struct.pack("!BBHIHHI", 0, 130, code, 1, internal, external, seconds)


def _field(body: str, name: str) -> str:
    return body.partition(f"<{name}>")[2].partition(f"</{name}>")[0]


def _fault(code: int, text: str) -> tuple[int, str]:
    return 500, (
        "<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>"
        f'<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>{code}</errorCode>'
        f"<errorDescription>{text}</errorDescription></UPnPError></detail></s:Fault>"
    )
