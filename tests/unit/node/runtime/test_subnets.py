"""Addresses that are bounded together."""

import pytest

from node.runtime.subnets import subnet_of


@pytest.mark.parametrize(
    "address, subnet",
    [
        ("192.0.2.77:7474", "192.0.2.0/24"),
        ("[2001:db8:1:2::3]:7474", "2001:db8:1::/48"),
        ("[::ffff:192.0.2.1]:7474", "192.0.2.0/24"),
        ("[fe80::1%eth0]:7474", "fe80::/48"),
        ("unknown", "unknown"),
        ("relay.example.org:7474", "unknown"),
    ],
)
def test_an_address_is_of_the_subnet_that_one_customer_is_given(address: str, subnet: str) -> None:
    assert subnet_of(address) == subnet
