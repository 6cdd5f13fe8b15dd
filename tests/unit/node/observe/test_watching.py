"""What is seen of a running node from outside: metrics that Prometheus reads, readiness, a dashboard of what there is."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import structlog
import trio
from sqlalchemy import text

from node.observe import watching
from node.runtime import logs
from node.runtime.metrics import Family, Histogram, Sample, render
from protocol.ids import PeerId, TopicKey
from protocol.limits.users import DISK_FREE_MIN, LOG_LINE_COUNT_MAX, LOG_LINE_SIZE_MAX
from storage.relay.quotas import Visitor
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, found_and_join, open_nodes, until_equal
from tests.support.relays import PLENTY, open_relay
from tests.support.served import app_of, service_of

TOKEN = "t" * 64
ROOT = Path(__file__).parents[4]
LINE = re.compile(r'([a-z_]+)(\{([a-z]+="[^"\\\n]*",?)*\})? (-?[0-9.e+-]+|\+Inf)')


@asynccontextmanager
async def _client(node: Node, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app_of(service_of(node, folder)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7475") as client:
        yield client


async def _scrape(client: httpx.AsyncClient) -> dict[str, float]:
    """Samples by name and labels; each line has the format's form, and each family says what it is first."""
    answer = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, float] = {}
    families: dict[str, str] = {}
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            families[name] = kind
        if line.startswith("#"):
            continue
        matched = LINE.fullmatch(line)
        assert matched, line
        assert re.sub("_(bucket|sum|count)$", "", matched[1]) in families or matched[1] in families
        key, _, value = line.rpartition(" ")
        assert key not in found
        found[key] = float(value)
    return found


@pytest.mark.slow
async def test_metrics_tell_what_the_node_did(tmp_path: Path) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await found_and_join(alice, bob)
        bob.write(bob.branch(), "hello")
        async with connected(bob, alice):
            await until_equal(alice, bob)
        async with _client(alice, tmp_path / "alice") as client:
            assert (await client.get("/metrics")).status_code == 401
            await client.get("/api/v1/nothing", headers={"Authorization": f"Bearer {TOKEN}"})
            found = await _scrape(client)
    assert found['ravel_commits{state="shown"}'] == found['ravel_publications_total{result="accepted"}'] > 5
    assert found["ravel_repos"] == 1
    assert found["ravel_intake_seconds_count"] == found['ravel_intake_seconds_bucket{le="+Inf"}'] >= 2
    assert found['ravel_api_requests_total{method="GET",status="4xx"}'] == 1, (
        "what the gate refused is not counted"
    )
    assert found['ravel_store_bytes{part="database"}'] + found['ravel_store_bytes{part="log"}'] > 10_000
    assert found["process_resident_memory_bytes"] > 10_000_000
    assert found["ravel_store_faulty"] == 0


@pytest.mark.slow
async def test_refusals_are_counted_by_their_code(tmp_path: Path) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        topic = writing_topic(alice.replica, branch)
        await alice.hub.intake.ingest(topic, [b"nonsense"], _set(), None)
        async with _client(alice, tmp_path / "alice") as client:
            found = await _scrape(client)
    assert found['ravel_publications_refused_total{reason="bad_publication:bad_shape"}'] == 1


def _set() -> trio.Event:
    event = trio.Event()
    event.set()
    return event


@pytest.mark.slow
@pytest.mark.sqlite
async def test_a_node_is_ready_while_it_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        database = alice.replica.database
        alice.create_repo()
        async with _client(alice, tmp_path / "alice") as client:
            answer = await client.get("/readyz")  # without the token
            assert (answer.status_code, answer.json()["status"]) == (200, "ready")
            with database.write() as connection:
                pages = connection.execute(text("PRAGMA page_count")).scalar_one()
                connection.execute(text(f"PRAGMA max_page_count={pages}"))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            refused = await client.post("/api/v1/repos", json={"name": "x" * 200}, headers=headers)
            while refused.status_code == 200:  # the last pages have room for some
                refused = await client.post(
                    "/api/v1/branches/repo:main/commits", json={"text": "y" * 9000}, headers=headers
                )
            assert (refused.status_code, refused.json()["error"]["code"]) == (507, "storage_failed")
            assert (await client.get("/api/v1/repos", headers=headers)).status_code == 200
            monkeypatch.setattr(database, "probe", lambda: None)  # as long as nothing can be written
            answer = await client.get("/readyz")
            assert answer.status_code == 503
            assert "full" in answer.json()["checks"]["store"]
            assert (await _scrape(client))["ravel_store_faulty"] == 1
            monkeypatch.undo()
            assert (await client.get("/readyz")).status_code == 200, (
                "a write that needs no room succeeds again"
            )
            monkeypatch.setattr(watching, "free_space", lambda _: DISK_FREE_MIN - 1)
            answer = await client.get("/readyz")
            assert (answer.status_code, "free" in answer.json()["checks"]["disk"]) == (503, True)
            status = await client.get("/api/v1/status", headers=headers)
            assert [one.partition(":")[0] for one in status.json()["faults"]] == ["disk"]
            monkeypatch.undo()
            assert (await client.get("/readyz", headers={"Host": "evil.example"})).status_code == 403
            database.path.rename(tmp_path / "elsewhere")  # who writes on writes into what the end throws away
            answer = await client.get("/readyz")
            assert (answer.status_code, "is gone while" in answer.json()["checks"]["store"]) == (503, True)
            database.path.touch()
            assert "was replaced" in (await client.get("/readyz")).json()["checks"]["store"]
            (tmp_path / "elsewhere").rename(database.path)
            assert (await client.get("/readyz")).status_code == 200


def test_histograms_add_up_and_labels_are_escaped() -> None:
    histogram = Histogram()
    for seconds in (0.001, 0.0011, 99.0):
        histogram.observe(seconds)
    family = Family("h", "histogram", 'a "b"\nc', [*histogram.samples(), Sample(1, {"l": 'q"\\\n'})])
    lines = render([family]).splitlines()
    assert lines[0] == '# HELP h a "b"\\nc'
    assert 'h_bucket{le="0.001"} 1' in lines
    assert 'h_bucket{le="0.0025"} 2' in lines
    assert 'h_bucket{le="+Inf"} 3' in lines
    assert "h_count 3" in lines
    assert lines[-1] == 'h{l="q\\"\\\\\\n"} 1'


@pytest.mark.slow
async def test_dashboard_and_docs_name_what_there_is(tmp_path: Path) -> None:
    with fail_after(30), open_nodes(tmp_path, "alice") as (alice,):
        async with _client(alice, tmp_path / "alice") as client:
            await client.get("/api/v1/status", headers={"Authorization": f"Bearer {TOKEN}"})
            answer = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    families = set(re.findall(r"^# TYPE (\S+)", answer.text, re.MULTILINE))
    dashboard = json.loads((ROOT / "configs" / "grafana.json").read_text())
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", []))
    used = {
        re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"\b(?:ravel|process)_\w+", queries)
    }
    assert used <= families
    assert {name for name in families if name.startswith("ravel_")} - used == {"ravel_info"}
    page = (ROOT / "docs/communities/monitoring.md").read_text()
    assert set(re.findall(r"^\| `(ravel_\w+)[`{]", page, re.MULTILINE)) <= families


def test_the_latest_lines_of_the_log_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        logs.configure("info")
        log = structlog.get_logger()
        log.debug("below the level")
        for number in range(LOG_LINE_COUNT_MAX + 1):
            log.info(f"event {number}")  # else those of one kind are limited
        log.info("long", text="x" * LOG_LINE_SIZE_MAX)
        lines = logs.recent_lines()
    finally:
        structlog.reset_defaults()
    assert len(lines) == LOG_LINE_COUNT_MAX
    assert "'event 2'" in lines[0]
    assert len(lines[-1]) == LOG_LINE_SIZE_MAX
    assert "below the level" not in capsys.readouterr().err


async def test_a_relay_tells_its_room(tmp_path: Path) -> None:
    with open_relay(tmp_path) as relay:
        assert relay.hub.relay is not None
        await relay.hub.relay.open([TopicKey(b"t" * 32)], Visitor(PeerId(b"p" * 32)))
        relay.create_repo()
        answer = await service_of(relay, tmp_path).node.storage.show()
        (day,) = answer["days"]
        assert day["day"] == "2023-11-14", "when the clock of these nodes began"
        assert answer["free"] > 0
        assert answer["relay"] == {"topics": 1, "size": 0, "size_max": PLENTY.total}


@pytest.mark.slow
async def test_a_relay_tells_its_operator_for_whom_and_what_not(tmp_path: Path) -> None:
    quotas = replace(PLENTY, peer_topic_count=1)
    with open_relay(tmp_path, quotas) as relay:
        assert relay.hub.relay is not None
        stranger = Visitor(PeerId(b"p" * 32), "10.0.0.0/24")
        topics = [TopicKey(name * 32) for name in (b"t", b"u", b"v")]
        assert (await relay.hub.relay.open(topics, stranger)).reason == "peer_full"
        async with _client(relay, tmp_path) as client:
            token = {"Authorization": f"Bearer {TOKEN}"}
            answer = await client.get("/api/v1/relay", headers=token)
            assert answer.status_code == 200
            told = answer.json()
            status = (await client.get("/api/v1/status", headers=token)).json()
            metrics = await _scrape(client)
        assert (told["topics"], told["size_max"], told["full_in_days"]) == (1, quotas.total, None)
        assert told["circuits"] is None
        assert [one["kind"] for one in told["visitors"]] == ["account", "partner", "known", "stranger"]
        refusal = {"what": "topic", "kind": "stranger", "reason": "peer_full", "count": 2, "last_at": 0}
        assert told["refusals"] == [refusal]
        assert status["relay"] is True
        assert metrics['ravel_relay_refused_total{what="topic",kind="stranger",reason="peer_full"}'] == 2
        assert metrics["ravel_relay_quota_bytes"] == quotas.total
