"""What the holder of a token can become, in as many steps as it likes.

`GIVES` says of each endpoint what its answer, or what it does, gives to who calls it. Roles give further rights. The
closure of both is what the holder of an action can become; docs/understanding/threat-model.md states it.
"""

from pathlib import Path
from typing import Final

import httpx
import pytest

from node.contract.access import ACTIONS
from node.contract.table import ENDPOINTS, AnyEndpoint
from ravel.types.values import Action
from tests.support.served import code_of, holder, served

GIVES: Final[dict[str, set[str]]] = {
    # Links and grants: another key may come in, and stays when the token is gone.
    "create_invitation": {"member"},
    "make_ask_link": {"asker"},
    "answer_request": {"member"},
    "grant_permission": {"member", "owner of repos"},
    "share_repo": {"follower"},
    "share_branch": {"follower"},
    "make_offer": {"follower"},
    "propose_removal": {"judge"},
    "approve_proposal": {"judge"},
    "set_quorum": {"judge"},
    "remove_member": {"judge"},
    "answer_offer": {"judge"},
    "hide_post": {"judge"},
    "adopt_commits": {"judge"},
    "propose_checkpoint": {"judge"},
    "make_checkpoint": {"judge"},
    # The network: who the node speaks to.
    "add_peer": {"carrier"},
    "join_relay": {"carrier"},
    "join_repo": {"address of the node"},
    "follow_repo": {"address of the node"},
    "restore_peer": {"carrier"},
    "invite_to_relay": {"account at the relay"},
    "change_relay_account": {"account at the relay"},
    "allow_peer": {"account at the relay"},
    # The person: what these give has everything.
    "invite_device": {"device"},
    "join_as_device": {"device"},
    "sync_devices": {"device"},
    "promote_device": {"device"},
    "name_friends": {"device"},
    "sign_recovery": {"device of others"},
    "finish_recovery": {"device of others"},
    "create_token": {"person"},
    "make_page_code": {"person"},
    "make_pairing_code": {"browser"},
    "keep_browser": {"browser"},
    "change_setting": {"person"},
    "show_key_words": {"person"},
    "recover_user": {"person"},
    "start_backup": {"person"},
    "make_export_code": {"reader of all repos"},
    "open_report": {"reader of all repos"},
    "state_me": {"name of the user"},
    "set_petname": {"name of others"},
}
"""Endpoint -> what whoever calls it can be afterwards, without the token. The others give nothing that outlives it."""

GIVES_NOTHING: Final = {
    *("export_store", "draw_qr", "restart_node", "fetch_offer", "look_at_link"),
    # Repos of the person: what they are named and hold is the member's, and ends with the member's right.
    *("create_repo", "fork_repo", "forget_repo", "start_epoch", "leave_repo", "cancel_request"),
    *("sign_members", "state_prekey"),
    *("set_tag", "remove_tag", "create_branch", "edit_branch", "point_main", "fork_branch", "compact_branch"),
    # What ends the powers of others.
    *("revoke_invitation", "close_ask_link", "revoke_token", "revoke_browser", "remove_device"),
    *("revoke_relay_account", "deny_peer", "remove_peer", "ban_peer", "unban_peer"),
    # Content, signed by the node's user.
    *(
        "write_post",
        "write_posts",
        "stream_posts",
        "reply_to_post",
        "edit_post",
        "delete_post",
        "merge_branch",
        "merge_offer",
    ),
    *("write_comment", "edit_comment", "delete_comment", "ask_trust"),
    *("edit_set", "snapshot_set", "edit_dict", "snapshot_dict"),
    *("rename_document", "remove_document"),
    *("edit_json", "snapshot_json", "declare_json_index"),
    *("open_text", "import_text", "push_text", "tell_presence"),
    *("add_file", "add_files", "remove_file", "import_commits", "mark_seen"),
    # Upkeep of the relay and of reports.
    *("pin_topic", "unpin_topic", "make_report"),
    "start_with_login",  # the node as its settings have it
    "set_keeping",  # what this node keeps of it
    "read_bundle",  # brings what any peer could bring
}
"""Other endpoints that are no GET: nothing that they do makes anybody more than the token does."""

LEADS_TO: Final[dict[str, set[str]]] = {
    "device": {"owner of repos", "owner of later repos"},
    "person": {"device", "browser", "name of the user", "name of others"},
    "browser": {"owner of repos"},
    "owner of repos": {"member", "judge"},
    "member": {"follower"},
}
"""What a role can make itself."""

BECOMES: Final[dict[Action, set[str]]] = {
    "read": set(),
    "write": set(),
    "manage": set(),
    "admin": {"member", "asker", "owner of repos", "follower", "judge", "address of the node"},
    "node": {"carrier", "account at the relay"},
    "metrics": set(),
}
"""Action -> all that a token which has it alone, for all repos, can make of its holder."""


def _closure(roles: set[str]) -> set[str]:
    found, rest = set[str](), set(roles)
    while rest:
        found |= rest
        rest = {further for role in rest for further in LEADS_TO.get(role, ())} - found
    return found


def _given(actions: set[Action]) -> set[str]:
    """What tokens of apps and paired browsers with these actions can become."""
    return _closure(
        {
            role
            for endpoint in ENDPOINTS
            if {scope.action for scope in endpoint.scopes} <= actions
            and not {scope.target for scope in endpoint.scopes} & {"person", "home"}
            for role in GIVES.get(endpoint.name, ())
        }
    )


def test_each_endpoint_that_does_something_was_looked_at() -> None:
    doing = {one.name for one in ENDPOINTS if one.method != "GET"}
    assert doing == GIVES.keys() | GIVES_NOTHING
    assert not GIVES.keys() & GIVES_NOTHING


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_alone_leads_to_what_is_written_down(action: Action) -> None:
    assert _given({action}) == BECOMES[action]


def test_all_actions_together_make_nobody_the_person() -> None:
    everything = _given(set(ACTIONS))
    assert everything == set[str]().union(*BECOMES.values())
    assert not everything & {"person", "device", "browser", "owner of later repos", "name of others"}


@pytest.mark.parametrize("kind", ["app", "browser"])
async def test_only_the_person_changes_who_is_in_the_repo_of_the_devices(tmp_path: Path, kind: str) -> None:
    """An invitation to that repo is a link for a device, whoever makes it."""
    async with served(tmp_path) as one:
        assert (await one.client.post("/api/v1/devices/invitations", json={})).is_success
        assert (await one.client.post("/api/v1/repos/devices/branches", json={"name": "main"})).is_success
        assert (await one.client.post("/api/v1/repos", json={"name": "notes"})).is_success
        async with holder(one, kind) as held, holder(one, "page") as page:
            for endpoint in ENDPOINTS:
                if not any(
                    scope.action in ("manage", "admin")
                    and scope.target in ("repo", "branch", "repo of branch")
                    for scope in endpoint.scopes
                ):
                    continue
                answer = await _call(held, endpoint, "devices")
                if endpoint.name != "make_offer":  # its `source` is looked at
                    assert code_of(answer) == "insufficient_scope", endpoint.name
                answer = await _call(held, endpoint, "nope")
                assert code_of(answer) in ("not_found", "bad_request"), endpoint.name
            offer = {"source": "devices:main"}
            answer = await held.post("/api/v1/branches/notes:main/offers", json=offer)
            assert code_of(answer) == "insufficient_scope"
            invite = {"reach": "machine"}
            assert (await held.post("/api/v1/repos/notes/invitations", json=invite)).is_success
            assert (await page.post("/api/v1/repos/devices/invitations", json=invite)).is_success


def test_what_lets_others_in_is_written_down_with_the_token() -> None:
    kept = {one.name for one in ENDPOINTS if one.makes is not None}
    admits = {"member", "asker", "follower", "carrier", "account at the relay", "device", "person", "browser"}
    lasting = {name for name, roles in GIVES.items() if roles & admits}
    of_the_machine = {
        *(
            "make_page_code",
            "keep_browser",
            "change_setting",
            "show_key_words",
            "recover_user",
            "start_backup",
        )
    }
    others = {
        "join_as_device",  # the other person's device list has it
        "sync_devices",  # hands on to devices that are there
        "promote_device",  # a device that is there
        "name_friends",  # the list of friends has it
        "make_offer",  # a branch for who answers the offer: `share_branch` states the same link
        "change_relay_account",
    }
    assert kept == lasting - of_the_machine - others


async def _call(client: httpx.AsyncClient, endpoint: AnyEndpoint, repo: str) -> httpx.Response:
    parts = {part.name: "aaaa" for part in endpoint.path_parameters}
    path = endpoint.fill_path(parts | {"repo": repo, "branch": f"{repo}:main"})
    return await client.request(
        endpoint.method, f"/api/v1{path}", content=None if endpoint.request is None else b"{}"
    )


def test_a_token_that_only_reads_changes_nothing_that_is_stored() -> None:
    called = {
        one.name
        for one in ENDPOINTS
        if one.method != "GET" and all(scope.action == "read" for scope in one.scopes)
    }
    assert called == {"draw_qr", "tell_presence"}, "a drawing, and who edits now"
