"""All calls in two classes. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ravel.callers import AsyncCaller, awaited, operation_of, streamed
from ravel.calls.branches import BranchesCalls
from ravel.calls.documents import DocumentsCalls
from ravel.calls.node import NodeCalls
from ravel.calls.people import PeopleCalls

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable

    from ravel.types.bundles import BundleReading
    from ravel.types.files import AddedFiles, FileView


class AllCalls(NodeCalls, PeopleCalls, BranchesCalls, DocumentsCalls):
    """All methods that wait."""


class AsyncAllCalls(AsyncCaller):
    """All methods to await."""

    show_status = awaited(NodeCalls.show_status)
    show_storage = awaited(NodeCalls.show_storage)
    show_log = awaited(NodeCalls.show_log)
    follow_node = awaited(NodeCalls.follow_node)
    watch_node = streamed(NodeCalls.watch_node)
    export_store = awaited(NodeCalls.export_store)
    show_export = awaited(NodeCalls.show_export)
    make_export_code = awaited(NodeCalls.make_export_code)
    make_page_code = awaited(NodeCalls.make_page_code)
    draw_qr = awaited(NodeCalls.draw_qr)
    describe_api = awaited(NodeCalls.describe_api)
    list_peers = awaited(NodeCalls.list_peers)
    add_peer = awaited(NodeCalls.add_peer)
    show_peer = awaited(NodeCalls.show_peer)
    restore_peer = awaited(NodeCalls.restore_peer)
    remove_peer = awaited(NodeCalls.remove_peer)
    ban_peer = awaited(NodeCalls.ban_peer)
    unban_peer = awaited(NodeCalls.unban_peer)
    show_relay = awaited(NodeCalls.show_relay)
    list_relayed_topics = awaited(NodeCalls.list_relayed_topics)
    pin_topic = awaited(NodeCalls.pin_topic)
    unpin_topic = awaited(NodeCalls.unpin_topic)
    allow_peer = awaited(NodeCalls.allow_peer)
    deny_peer = awaited(NodeCalls.deny_peer)
    list_relay_accounts = awaited(NodeCalls.list_relay_accounts)
    invite_to_relay = awaited(NodeCalls.invite_to_relay)
    change_relay_account = awaited(NodeCalls.change_relay_account)
    revoke_relay_account = awaited(NodeCalls.revoke_relay_account)
    join_relay = awaited(NodeCalls.join_relay)
    create_token = awaited(NodeCalls.create_token)
    list_tokens = awaited(NodeCalls.list_tokens)
    revoke_token = awaited(NodeCalls.revoke_token)
    show_token = awaited(NodeCalls.show_token)
    make_pairing_code = awaited(NodeCalls.make_pairing_code)
    keep_browser = awaited(NodeCalls.keep_browser)
    list_browsers = awaited(NodeCalls.list_browsers)
    revoke_browser = awaited(NodeCalls.revoke_browser)
    list_settings = awaited(NodeCalls.list_settings)
    change_setting = awaited(NodeCalls.change_setting)
    restart_node = awaited(NodeCalls.restart_node)
    show_start_with_login = awaited(NodeCalls.show_start_with_login)
    start_with_login = awaited(NodeCalls.start_with_login)
    check_health = awaited(NodeCalls.check_health)
    show_keys = awaited(NodeCalls.show_keys)
    show_key_words = awaited(NodeCalls.show_key_words)
    recover_user = awaited(NodeCalls.recover_user)
    start_backup = awaited(NodeCalls.start_backup)
    show_backup = awaited(NodeCalls.show_backup)
    make_report = awaited(NodeCalls.make_report)
    show_report = awaited(NodeCalls.show_report)
    open_report = awaited(NodeCalls.open_report)
    list_repos = awaited(PeopleCalls.list_repos)
    create_repo = awaited(PeopleCalls.create_repo)
    look_at_link = awaited(PeopleCalls.look_at_link)
    join_repo = awaited(PeopleCalls.join_repo)
    follow_repo = awaited(PeopleCalls.follow_repo)
    fork_repo = awaited(PeopleCalls.fork_repo)
    list_holders = awaited(PeopleCalls.list_holders)
    show_keeping = awaited(PeopleCalls.show_keeping)
    set_keeping = awaited(PeopleCalls.set_keeping)
    forget_repo = awaited(PeopleCalls.forget_repo)
    share_repo = awaited(PeopleCalls.share_repo)
    list_epochs = awaited(PeopleCalls.list_epochs)
    start_epoch = awaited(PeopleCalls.start_epoch)
    state_prekey = awaited(PeopleCalls.state_prekey)
    list_tags = awaited(PeopleCalls.list_tags)
    set_tag = awaited(PeopleCalls.set_tag)
    remove_tag = awaited(PeopleCalls.remove_tag)
    list_members = awaited(PeopleCalls.list_members)
    list_member_changes = awaited(PeopleCalls.list_member_changes)
    grant_permission = awaited(PeopleCalls.grant_permission)
    remove_member = awaited(PeopleCalls.remove_member)
    leave_repo = awaited(PeopleCalls.leave_repo)
    list_invitations = awaited(PeopleCalls.list_invitations)
    create_invitation = awaited(PeopleCalls.create_invitation)
    revoke_invitation = awaited(PeopleCalls.revoke_invitation)
    adopt_commits = awaited(PeopleCalls.adopt_commits)
    list_checkpoints = awaited(PeopleCalls.list_checkpoints)
    sign_members = awaited(PeopleCalls.sign_members)
    make_ask_link = awaited(PeopleCalls.make_ask_link)
    list_ask_links = awaited(PeopleCalls.list_ask_links)
    close_ask_link = awaited(PeopleCalls.close_ask_link)
    list_requests = awaited(PeopleCalls.list_requests)
    list_all_requests = awaited(PeopleCalls.list_all_requests)
    answer_request = awaited(PeopleCalls.answer_request)
    cancel_request = awaited(PeopleCalls.cancel_request)
    show_me = awaited(PeopleCalls.show_me)
    state_me = awaited(PeopleCalls.state_me)
    list_petnames = awaited(PeopleCalls.list_petnames)
    set_petname = awaited(PeopleCalls.set_petname)
    list_devices = awaited(PeopleCalls.list_devices)
    invite_device = awaited(PeopleCalls.invite_device)
    join_as_device = awaited(PeopleCalls.join_as_device)
    sync_devices = awaited(PeopleCalls.sync_devices)
    remove_device = awaited(PeopleCalls.remove_device)
    promote_device = awaited(PeopleCalls.promote_device)
    list_friends = awaited(PeopleCalls.list_friends)
    name_friends = awaited(PeopleCalls.name_friends)
    sign_recovery = awaited(PeopleCalls.sign_recovery)
    finish_recovery = awaited(PeopleCalls.finish_recovery)
    show_quorum = awaited(PeopleCalls.show_quorum)
    set_quorum = awaited(PeopleCalls.set_quorum)
    propose_removal = awaited(PeopleCalls.propose_removal)
    propose_checkpoint = awaited(PeopleCalls.propose_checkpoint)
    approve_proposal = awaited(PeopleCalls.approve_proposal)
    make_checkpoint = awaited(PeopleCalls.make_checkpoint)
    list_branches = awaited(BranchesCalls.list_branches)
    create_branch = awaited(BranchesCalls.create_branch)
    edit_branch = awaited(BranchesCalls.edit_branch)
    point_main = awaited(BranchesCalls.point_main)
    fork_branch = awaited(BranchesCalls.fork_branch)
    merge_branch = awaited(BranchesCalls.merge_branch)
    share_branch = awaited(BranchesCalls.share_branch)
    compact_branch = awaited(BranchesCalls.compact_branch)
    write_post = awaited(BranchesCalls.write_post)
    write_posts = awaited(BranchesCalls.write_posts)
    show_commit = awaited(BranchesCalls.show_commit)
    explain_verdict = awaited(BranchesCalls.explain_verdict)
    list_voids = awaited(BranchesCalls.list_voids)
    reply_to_post = awaited(BranchesCalls.reply_to_post)
    edit_post = awaited(BranchesCalls.edit_post)
    delete_post = awaited(BranchesCalls.delete_post)
    hide_post = awaited(BranchesCalls.hide_post)
    show_versions = awaited(BranchesCalls.show_versions)
    show_thread = awaited(BranchesCalls.show_thread)
    show_timeline = awaited(BranchesCalls.show_timeline)
    follow_edits = awaited(BranchesCalls.follow_edits)
    watch_edits = streamed(BranchesCalls.watch_edits)
    show_digest = awaited(BranchesCalls.show_digest)
    show_state = awaited(BranchesCalls.show_state)
    show_past = awaited(BranchesCalls.show_past)
    check_feeds = awaited(BranchesCalls.check_feeds)
    show_tangle = awaited(BranchesCalls.show_tangle)
    search = awaited(BranchesCalls.search)
    list_unseen = awaited(BranchesCalls.list_unseen)
    show_unseen = awaited(BranchesCalls.show_unseen)
    mark_seen = awaited(BranchesCalls.mark_seen)
    list_offers = awaited(BranchesCalls.list_offers)
    make_offer = awaited(BranchesCalls.make_offer)
    answer_offer = awaited(BranchesCalls.answer_offer)
    fetch_offer = awaited(BranchesCalls.fetch_offer)
    preview_offer = awaited(BranchesCalls.preview_offer)
    merge_offer = awaited(BranchesCalls.merge_offer)
    write_comment = awaited(BranchesCalls.write_comment)
    edit_comment = awaited(BranchesCalls.edit_comment)
    delete_comment = awaited(BranchesCalls.delete_comment)
    ask_trust = awaited(BranchesCalls.ask_trust)
    list_comments = awaited(BranchesCalls.list_comments)
    list_documents = awaited(DocumentsCalls.list_documents)
    rename_document = awaited(DocumentsCalls.rename_document)
    remove_document = awaited(DocumentsCalls.remove_document)
    show_set = awaited(DocumentsCalls.show_set)
    edit_set = awaited(DocumentsCalls.edit_set)
    snapshot_set = awaited(DocumentsCalls.snapshot_set)
    show_dict = awaited(DocumentsCalls.show_dict)
    show_entry = awaited(DocumentsCalls.show_entry)
    edit_dict = awaited(DocumentsCalls.edit_dict)
    snapshot_dict = awaited(DocumentsCalls.snapshot_dict)
    open_text = awaited(DocumentsCalls.open_text)
    import_text = awaited(DocumentsCalls.import_text)
    pull_text = awaited(DocumentsCalls.pull_text)
    push_text = awaited(DocumentsCalls.push_text)
    follow_text = awaited(DocumentsCalls.follow_text)
    watch_text = streamed(DocumentsCalls.watch_text)
    tell_presence = awaited(DocumentsCalls.tell_presence)
    follow_json = awaited(DocumentsCalls.follow_json)
    watch_json = streamed(DocumentsCalls.watch_json)
    edit_json = awaited(DocumentsCalls.edit_json)
    snapshot_json = awaited(DocumentsCalls.snapshot_json)
    follow_json_documents = awaited(DocumentsCalls.follow_json_documents)
    watch_json_documents = streamed(DocumentsCalls.watch_json_documents)
    follow_json_anywhere = awaited(DocumentsCalls.follow_json_anywhere)
    watch_json_anywhere = streamed(DocumentsCalls.watch_json_anywhere)
    declare_json_index = awaited(DocumentsCalls.declare_json_index)
    list_files = awaited(DocumentsCalls.list_files)
    remove_file = awaited(DocumentsCalls.remove_file)
    import_commits = awaited(DocumentsCalls.import_commits)
    list_imported = awaited(DocumentsCalls.list_imported)

    async def read_bundle(self, content: bytes | Iterable[bytes] | AsyncIterable[bytes]) -> BundleReading:
        """Read a bundle: take what it carries of this node's repos.

        Every batch is judged as one that comes from a peer, and is durable before the next but one is read. A
        bundle may be read again: what is here is passed over.
        """
        return await self._call(operation_of(NodeCalls.read_bundle), {}, content)

    async def add_file(
        self, branch: str, content: bytes | Iterable[bytes] | AsyncIterable[bytes], *, name: str = ""
    ) -> FileView:
        """Add a file to a branch. It is durable when the answer comes."""
        return await self._call(
            operation_of(DocumentsCalls.add_file), {"branch": branch, "name": name}, content
        )

    async def add_files(
        self, branch: str, content: bytes | Iterable[bytes] | AsyncIterable[bytes]
    ) -> AddedFiles:
        """Add many files to a branch, all or none. They are durable when the answer comes.

        At most 1024 files, no two of one name. A request may be sent again: what the branch has under the same
        name and with the same content is passed over.
        """
        return await self._call(operation_of(DocumentsCalls.add_files), {"branch": branch}, content)
