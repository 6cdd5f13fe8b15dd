"""Two members who have both moved find each other again through a relay, and then need it no more."""

from pathlib import Path

import pytest

from tests.e2e.cluster import until
from tests.networks.kernel_nets import Machine, kernel_net

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def test_two_who_have_both_moved_meet_at_a_relay_and_connect_directly(tmp_path: Path) -> None:
    with kernel_net(tmp_path) as net:
        middle = net.hold()
        net.run(middle, "ip", "link", "add", "bridge", "type", "bridge")
        net.run(middle, "ip", "link", "set", "bridge", "up")
        places = {}
        for name, host in (("relay", "8.8.4.10"), ("alice", "8.8.4.5"), ("bob", "8.8.4.6")):
            places[name] = net.hold()
            net.link(places[name], "wan", middle, name)
            net.run(middle, "ip", "link", "set", name, "master", "bridge")
            net.give(places[name], "wan", host)
        machines = {name: Machine(tmp_path / name, pid) for name, pid in places.items()}
        relay, alice, bob = machines.values()
        try:
            config = relay.home / "config.toml"
            config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
            for machine in machines.values():
                machine.start()
            alice.client.add_peer("8.8.4.10:7474", str(relay.client.show_status()["node"]), relay=True)
            repo = str(alice.client.create_repo("shared")["repo"])

            def link() -> list[str]:
                made = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)
                links.append(made["invitation"])
                return made["addresses"]

            links: list[str] = []
            until(lambda: "8.8.4.10:7474" in link(), "the relay has the repo, and the link names it")
            bob.client.join_repo(links[-1])
            until(lambda: len(_ways(bob, alice)) == 1, "they are connected")
            assert _ways(bob, alice) == [("8.8.4.5:7474", "direct")]
            alice.stop()
            bob.stop()
            net.give(places["alice"], "wan", "8.8.4.50")
            net.give(places["bob"], "wan", "8.8.4.60")
            alice.start()
            bob.start()

            def is_direct() -> bool:
                return any(
                    path == "direct" and address.startswith(("8.8.4.50:", "8.8.4.60:"))
                    for one, other in ((alice, bob), (bob, alice))
                    for address, path in _ways(one, other)
                )

            until(is_direct, "they have found each other's new address", 60)
        finally:
            for machine in machines.values():
                machine.close()


def _ways(one: Machine, other: Machine) -> list[tuple[str, str]]:
    """Addresses and paths of one's connections with another."""
    node = other.client.show_status()["node"]
    return [
        (peer["address"], peer["path"])
        for peer in one.client.list_peers()["peers"]
        if peer["peer"] == node and peer["state"] == "connected"
    ]
