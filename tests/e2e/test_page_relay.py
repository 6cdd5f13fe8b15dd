"""What an operator does about a relay on its page, in a real Chromium, beside a member's node that uses it."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.cluster import Peer, run_ravel, until
from tests.e2e.page_steps import enter, open_panel, picture, says, submit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extended,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt install chromium)"),
]
MIB = 1 << 20


def test_an_operator_invites_sees_use_changes_a_quota_and_revokes(tmp_path: Path, page: Browser) -> None:
    with ExitStack() as stack:
        relay, ann = Peer(tmp_path / "relay"), Peer(tmp_path / "ann")
        for peer in (relay, ann):
            stack.callback(peer.close)
        run_ravel(relay, "config", "set", "relay.enabled", "true")
        run_ravel(relay, "config", "set", "relay.accept", "known")
        relay.start()
        ann.start()
        enter(page, ann)
        open_panel(page, "settings")
        assert page.evaluate("document.querySelector('.set-nav a[href$=\"/relay\"]')") is None, (
            "ann is no relay"
        )

        # An address of before asks nothing that is refused: the browser's console would tell of it.
        open_panel(page, "relay")
        page.until(says("This computer keeps nothing for others"))
        assert page.complaints() == []

        enter(page, relay)
        open_panel(page, "settings")
        page.click(".set-nav a[href$='/relay']")
        page.until("document.querySelector('#invite-account') && !document.querySelector('.panel .skeleton')")
        page.until(says("There are no accounts yet"))
        page.evaluate("document.querySelector('#invite-account [name=unit]').value = 'MiB'")
        submit(page, "#invite-account", name="ann", quota="1")
        page.until("document.getElementById('account-link')?.value.startsWith('ravel:')")
        picture(page, "relay-invited")
        link = page.evaluate("document.getElementById('account-link').value")
        assert page.evaluate("document.querySelector('#invite-account [name=unit]').value") == "GiB", (
            "as before"
        )
        assert "up to 1.0 MiB" in run_ravel(ann, "relay", "join", "-", stdin=link).stdout

        ann.client.create_repo("notes")
        for name, size in (("small", 400_000), ("large", 2 * MIB)):
            (tmp_path / name).write_bytes(bytes(range(250)) * (size // 250))
            run_ravel(ann, "file", "add", "notes:main", str(tmp_path / name))
        until(lambda: relay.client.show_relay()["files_kept"] == 1, "the small file has room")
        until(lambda: relay.client.show_relay()["refusals"] != [], "the large one has none")
        open_panel(page, "health")
        open_panel(page, "relay")
        page.until(says("1 computer, 1 connected", "document.querySelector('[data-account=ann]')"))
        page.until(says("The file alone has more bytes", "document.getElementById('refusals')"))
        page.until(says("Accounts", "document.querySelector('#visitors tbody')"))
        picture(page, "relay")
        told = json.loads(run_ravel(relay, "relay", "status", "--json").stdout)
        (refusal,) = told["refusals"]
        assert (refusal["what"], refusal["kind"], refusal["reason"]) == ("file", "account", "file_too_large")
        shown = run_ravel(relay, "relay", "status").stdout
        assert "file too large" in shown
        assert "1 of 1,024" not in shown, "nobody has a circuit"
        metrics = relay.client.page("/metrics")
        assert 'ravel_relay_refused_total{what="file",kind="account",reason="file_too_large"} 1' in metrics
        assert "ann" not in [word.strip('"') for word in metrics.replace("=", " ").split()]

        account = "document.querySelector('[data-account=ann]')"
        page.evaluate(f"{account}.querySelector('details').open = true")
        page.evaluate(f"{account}.querySelector('[name=unit]').value = 'GiB'")
        submit(page, "[data-account=ann] form", quota="2")
        page.until(says("of 2.0 GiB", account))
        assert relay.client.list_relay_accounts()["accounts"][0]["quota"] == 2048 * MIB

        page.click("button[aria-label='Revoke the account ann']")
        page.click("dialog[open] .danger")
        page.until(says("There are no accounts yet"))
        assert relay.client.list_relay_accounts()["accounts"] == []
        assert page.complaints() == []
