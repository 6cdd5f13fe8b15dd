"""WebSocket addresses: what is one, and its shortest form."""

import pytest

from protocol.formats.web_address import (
    WEB_PATH,
    WebAddress,
    is_web_address,
    is_web_path,
    parse_web_address,
)
from protocol.limits.formats import ADDRESS_SIZE_MAX
from protocol.session.reach import as_seen, host_of, may_travel


@pytest.mark.parametrize(
    "text, address, shortest",
    [
        (
            "wss://relay.example.org",
            WebAddress(True, "relay.example.org", 443, WEB_PATH),
            "wss://relay.example.org",
        ),
        (
            "WSS://Relay.Example.org:443/ravel/",
            WebAddress(True, "relay.example.org", 443, WEB_PATH),
            "wss://relay.example.org",
        ),
        ("ws://127.0.0.1:9443", WebAddress(False, "127.0.0.1", 9443, WEB_PATH), "ws://127.0.0.1:9443"),
        ("ws://a", WebAddress(False, "a", 80, WEB_PATH), "ws://a"),
        (
            "wss://a:80/Some/way_2/ravel",
            WebAddress(True, "a", 80, "/Some/way_2/ravel"),
            "wss://a:80/Some/way_2/ravel",
        ),
    ],
)
def test_an_address_has_one_shortest_form(text: str, address: WebAddress, shortest: str) -> None:
    assert parse_web_address(text) == address
    assert str(address) == shortest
    assert parse_web_address(shortest) == address


@pytest.mark.parametrize(
    "text, full, place",
    [
        ("wss://a", "wss://a:443/ravel", "a:443"),
        ("ws://A", "ws://a:80/ravel", "a:80"),
        ("wss://a:81/b/ravel", "wss://a:81/b/ravel", "a:81"),
    ],
)
def test_clients_are_given_the_port_and_path_that_were_left_out(text: str, full: str, place: str) -> None:
    address = parse_web_address(text)
    assert address is not None
    assert (address.full, address.place) == (full, place)
    assert parse_web_address(full) == address


def test_a_node_answers_at_paths_that_an_address_may_have_and_at_no_others() -> None:
    assert all(map(is_web_path, ("/ravel", "/a/ravel", "/a/B_1/c-/ravel")))
    assert not any(map(is_web_path, ("", "/", "ravel", "/ravel/", "/ravel/a", "/a/b/c/d/ravel", "/../ravel")))
    assert not is_web_path("/" + "x" * 41 + "/ravel")


def test_an_address_of_websocket_is_told_from_host_and_port() -> None:
    assert is_web_address("wss://a.example.org")
    assert not any(map(is_web_address, ("a.example.org:7474", "[::1]:7474")))


@pytest.mark.parametrize(
    "text",
    [
        "", "a:1", "wss:/a", "http://a", "wss://", "wss://a:0", "wss://a:65536", "wss://a:080", "wss://a:1:2", "wss://[::1]:9443",
        "wss://a/b c", "wss://a/b?c", "wss://a/..", "wss://user@a", "wss://-a", "wss://a..b", "wss://a/1/2/3/4/ravel",
        "wss://a/" + "x" * 41 + "/ravel", "wss://a/reboot", "wss://a/ravel/reboot",
        "wss://" + "a" * 64, "wss://a\n", "wss://ä", "wss://" + ".".join(["a" * 60] * 4),
    ],
)  # fmt: skip
def test_what_is_none_or_too_long(text: str) -> None:
    assert parse_web_address(text) is None


def test_the_longest_fits_exactly() -> None:
    labels = ".".join(["a" * 63] * 3)
    host = f"{labels}.{'b' * (ADDRESS_SIZE_MAX - len(f'wss://{labels}.:65535/ravel'))}"
    fitting = parse_web_address(f"wss://{host}:65535")
    assert fitting is not None
    assert len(fitting.full) == ADDRESS_SIZE_MAX
    assert parse_web_address(f"wss://{host}b:65535") is None


@pytest.mark.parametrize(
    "text", ["wss://203.0.113.7:443", "wss://203.0.113.7:443/ravel", "ws://203.0.113.7:9443"]
)
def test_introductions_pass_them_over(text: str) -> None:
    assert host_of(text) is None
    assert as_seen(text, "203.0.113.9:1") is None
    assert not may_travel(text, "127.0.0.1:1")
