"""WebSocket addresses: what is one, its shortest form, and the form in links that older nodes pass over."""

import re

import pytest

from protocol.formats.web_address import (
    WEB_PATH,
    WebAddress,
    from_link,
    is_web_address,
    is_web_path,
    parse_web_address,
    to_link,
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
def test_an_address_has_one_shortest_form_and_comes_back_from_a_link(
    text: str, address: WebAddress, shortest: str
) -> None:
    assert parse_web_address(text) == address
    assert str(address) == shortest
    assert from_link(to_link(text)) == shortest


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
    assert not any(map(is_web_address, ("a.example.org:7474", "[::1]:7474", to_link("wss://a"))))


@pytest.mark.parametrize(
    "text",
    [
        "", "a:1", "wss:/a", "http://a", "wss://", "wss://a:0", "wss://a:65536", "wss://a:080", "wss://a:1:2", "wss://[::1]:9443",
        "wss://a/b c", "wss://a/b?c", "wss://a/..", "wss://user@a", "wss://-a", "wss://a..b", "wss://a/1/2/3/4/ravel",
        "wss://a/" + "x" * 41 + "/ravel", "wss://a/reboot", "wss://a/ravel/reboot",
        "wss://" + "a" * 64, "wss://a\n", "wss://ä", "wss://" + ".".join(["a" * 60] * 4),
    ],
)  # fmt: skip
def test_what_is_none_or_fits_into_no_link(text: str) -> None:
    assert parse_web_address(text) is None


def test_the_longest_fits_exactly() -> None:
    rest = len(".=ravel.wss.invalid")
    longest = ".".join(["a" * 63] * 3)
    longest += "." + "b" * (253 - rest - len(longest) - 1)
    assert parse_web_address(f"wss://{longest}:65535") is None, "the port, too, must fit"
    fitting = longest[: -(253 + len(":65535") - ADDRESS_SIZE_MAX)]
    assert len(to_link(f"wss://{fitting}:65535")) == ADDRESS_SIZE_MAX


def _is_dialable_of_before(text: str) -> bool:
    """What nodes that know no WebSocket hold for an address; a link with anything else they refuse as a whole."""
    host, _, port = text.rpartition(":")
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return (
        port.isdigit() and 0 < int(port) < 65536 and bool(re.fullmatch(r"[^\s:/\x00-\x20\x7f]{1,253}", host))
    )


@pytest.mark.parametrize(
    "text",
    [
        "wss://relay.example.org",
        "ws://10.0.0.1:81/a/ravel",
        "wss://" + "a" * 63 + ".org/" + "x" * 40 + "/ravel",
    ],
)
def test_nodes_that_know_none_take_it_for_a_name_that_nobody_has(text: str) -> None:
    in_link = to_link(text)
    assert not _is_dialable_of_before(text)
    assert _is_dialable_of_before(in_link)
    assert in_link.rpartition(":")[0].endswith(".invalid")


@pytest.mark.parametrize(
    "text",
    [
        "a.example.org:7474",
        "127.0.0.1:7474",
        "[::1]:7474",
        "a.wss.invalid:1",
        "a.=ravel.wss.invalid:99999",
        "a.=b.wss.invalid:1",
    ],
)
def test_other_addresses_stand_in_links_as_they_are(text: str) -> None:
    assert to_link(text) == from_link(text) == text


@pytest.mark.parametrize(
    "text", ["wss://203.0.113.7:443", "wss://203.0.113.7:443/ravel", "ws://203.0.113.7:9443"]
)
def test_introductions_pass_them_over(text: str) -> None:
    assert host_of(text) is None
    assert as_seen(text, "203.0.113.9:1") is None
    assert not may_travel(text, "127.0.0.1:1")
