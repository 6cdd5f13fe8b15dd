"""Tokens for apps by commands and a daemon in a process: made, used, shown, revoked, over restarts and a kill."""

import json
import stat
from pathlib import Path

import pytest

from node.home.tokens import TOKENS_NAME
from node.runtime.errors import ERROR_KINDS, ServiceError
from ravel import Client, connect
from tests.e2e.cluster import JsonObject, Peer, peers, run_ravel

pytestmark = pytest.mark.slow


def _tokens(peer: Peer) -> dict[str, JsonObject]:
    listed = json.loads(run_ravel(peer, "token", "list", "--json").stdout)
    return {str(one["name"]): one for one in listed["tokens"]}


def _code(app: Client, repo: str = "notes") -> str:
    """The code with which a write to a repo's `main` is refused; empty where it is done."""
    try:
        app.write_post(f"{repo}:main", "hello")
    except ServiceError as error:
        return error.code
    return ""


def test_an_app_uses_its_token_until_it_is_revoked(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        for repo in ("notes", "diary"):
            alice.client.create_repo(repo)
        made = run_ravel(
            alice,
            "token",
            "create",
            "--name",
            "chat",
            "--repo",
            "notes",
            "--actions",
            "read,write",
            "--expires",
            "90d",
        )
        secret = made.stdout.strip()
        assert secret.startswith("ravel_")
        assert f"apps on this machine reach this node at {alice.client.url}" in made.stderr
        assert stat.S_IMODE((alice.home / TOKENS_NAME).stat().st_mode) == 0o600
        assert _tokens(alice)["chat"]["last_used_at"] is None
        absent = ERROR_KINDS["not_found"].exit_code
        run_ravel(
            alice, "token", "create", "--name", "more", "--actions", "read", "--repo", "no", code=absent
        )

        app = connect(url=alice.client.url, token=secret)
        assert _code(app) == ""
        assert _code(app, "diary") == "insufficient_scope"
        assert [one["name"] for one in app.list_repos()["repos"]] == ["notes"]
        used = _tokens(alice)["chat"]
        assert used["last_used_at"] is not None
        assert [one["name"] for one in used["repos"]] == ["notes"]
        app.close()

        alice.stop()
        alice.start()
        assert _tokens(alice)["chat"]["last_used_at"] == used["last_used_at"], "written when the daemon ends"
        app = connect(url=alice.client.url, token=secret)
        assert _code(app) == ""
        shown = run_ravel(alice, "token", "list").stdout
        assert "chat\tread,write\tnotes\t" in shown
        run_ravel(alice, "token", "revoke", "chat", "--yes")
        assert _code(app) == "unauthorized"
        app.close()

        alice.kill()
        alice.start()
        app = connect(url=alice.client.url, token=secret)
        assert _code(app) == "unauthorized", "a revocation is durable before it is answered"
        app.close()
        assert _tokens(alice) == {}
        folder = [path for path in alice.home.rglob("*") if path.is_file()]
        assert not [path for path in folder if secret.encode() in path.read_bytes()], (
            "kept hashed, and not logged"
        )


@pytest.mark.extended
def test_a_changed_file_of_tokens_stops_the_start_and_says_so(tmp_path: Path) -> None:
    with peers(tmp_path, "alice") as (alice,):
        run_ravel(alice, "token", "create", "--name", "chat", "--actions", "read")
        alice.stop()
        path = alice.home / TOKENS_NAME
        path.write_text(path.read_text().replace('"read"', '"node"'))
        refused = run_ravel(alice, "run", code=ERROR_KINDS["bad_config"].exit_code)
        assert "revokes all tokens" in refused.stderr
        path.unlink()
        alice.start()
        assert _tokens(alice) == {}
