"""Events about the whole node: what each look finds that is other than before."""

from pathlib import Path

from trio.testing import MockClock

from node.api.node_events import NodeSource
from node.contract.peers import PeerList
from node.contract.repos import RepoList
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes


async def test_how_a_repo_stands_is_told_when_a_transfer_to_a_peer_has_moved(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The sender of a sync accepts no commits meanwhile: its page showed the state of the beginning until the end."""
    peers: PeerList = {"peers": [], "known": [], "banned": []}
    repos: RepoList = {"repos": []}
    looks = []

    async def list_peers() -> PeerList:
        return {**peers, "banned": [*peers["banned"]]}

    async def list_repos() -> RepoList:
        looks.append(len(peers["banned"]))
        return {"repos": [*repos["repos"]]}

    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        source = NodeSource(alice.hub, list_peers, list_repos)
        source.start()
        assert [event.name for event in await source.next()] == ["peers", "repos"]
        peers["banned"].append("other than before")
        assert [event.name for event in await source.next()] == ["peers"]
        assert looks == [0, 1], "the repos were looked at again, and stand as they did"
        source.stop()
