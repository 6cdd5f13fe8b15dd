"""Addresses: who can dial them, and what counts as one host."""

import pytest

from protocol.session.reach import Reach, host_named, host_of, is_public, network_of, reach_of


@pytest.mark.parametrize(
    "host, reach",
    [
        ("127.0.0.1", Reach.MACHINE),
        ("127.9.9.9", Reach.MACHINE),
        ("::1", Reach.MACHINE),
        ("10.0.0.1", Reach.PRIVATE),
        ("192.168.1.1", Reach.PRIVATE),
        ("100.64.0.1", Reach.PRIVATE),
        ("fd00::1", Reach.PRIVATE),
        ("93.184.216.34", Reach.EVERYBODY),
        ("2606:4700::1", Reach.EVERYBODY),
        ("0.0.0.0", None),  # noqa: S104  # nothing listens there
        ("::", None),
        ("224.0.0.1", None),
        ("ff02::1", None),
        ("169.254.1.1", None),
        ("fe80::1", None),
        ("fe80::1%eth0", None),
        ("240.0.0.1", None),
        ("::ffff:93.184.216.34", None),
    ],
)
def test_a_host_is_dialed_by_the_machine_a_network_everybody_or_nobody(
    host: str, reach: Reach | None
) -> None:
    found = host_named(host)
    assert found is not None
    assert reach_of(found) is reach
    shown = f"[{host}]:7474" if ":" in host else f"{host}:7474"
    assert is_public(shown) is (reach is Reach.EVERYBODY)


@pytest.mark.parametrize("address", ["example.org:7474", "93.184.216.34", "93.184.216.34:0", "[::1]", ""])
def test_what_is_no_number_with_a_port_is_not_public(address: str) -> None:
    assert host_of(address) is None
    assert not is_public(address)


@pytest.mark.parametrize("text", ["", "example.org", "[::1]", "127.0.0.1:1", "1.2.3", "01.2.3.4"])
def test_what_is_no_number_names_no_host(text: str) -> None:
    assert host_named(text) is None


def test_a_whole_ipv6_network_counts_as_one_host_and_each_ipv4_address_as_its_own() -> None:
    def counted(*texts: str) -> int:
        return len({network_of(host) for text in texts if (host := host_named(text)) is not None})

    assert counted("2606:4700::1", "2606:4700::2", "2606:4700:0:0:ffff::") == 1
    assert counted("2606:4700:0:1::1", "2606:4700:0:2::1") == 2
    assert counted("93.184.216.34", "93.184.216.35") == 2
