"""All calls in two classes. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ravel.callers import AsyncCaller, awaited, streamed
from ravel.calls.branches import BranchesCalls
from ravel.calls.browsers import BrowsersCalls
from ravel.calls.bundles import READ_BUNDLE, BundlesCalls
from ravel.calls.care import CareCalls
from ravel.calls.commits import CommitsCalls
from ravel.calls.devices import DevicesCalls
from ravel.calls.document_list import DocumentListCalls
from ravel.calls.document_queries import DocumentQueriesCalls
from ravel.calls.documents import DocumentsCalls
from ravel.calls.files import ADD_FILE, ADD_FILES, FilesCalls
from ravel.calls.inbox import InboxCalls
from ravel.calls.json_documents import JsonDocumentsCalls
from ravel.calls.members import MembersCalls
from ravel.calls.node import NodeCalls
from ravel.calls.peers import PeersCalls
from ravel.calls.people import PeopleCalls
from ravel.calls.posts import PostsCalls
from ravel.calls.quorums import QuorumsCalls
from ravel.calls.relay_accounts import RelayAccountsCalls
from ravel.calls.repos import ReposCalls
from ravel.calls.requests import RequestsCalls
from ravel.calls.search import SearchCalls
from ravel.calls.timelines import TimelinesCalls
from ravel.calls.tokens import TokensCalls
from ravel.calls.unseen import UnseenCalls

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable

    from ravel.types.bundles import BundleReading
    from ravel.types.files import AddedFiles, FileView


class AllCalls(
    NodeCalls,
    ReposCalls,
    MembersCalls,
    RequestsCalls,
    PeopleCalls,
    DevicesCalls,
    QuorumsCalls,
    BranchesCalls,
    CommitsCalls,
    PostsCalls,
    TimelinesCalls,
    SearchCalls,
    UnseenCalls,
    InboxCalls,
    DocumentListCalls,
    DocumentsCalls,
    JsonDocumentsCalls,
    DocumentQueriesCalls,
    FilesCalls,
    BundlesCalls,
    PeersCalls,
    RelayAccountsCalls,
    TokensCalls,
    BrowsersCalls,
    CareCalls,
):
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
    list_repos = awaited(ReposCalls.list_repos)
    create_repo = awaited(ReposCalls.create_repo)
    join_repo = awaited(ReposCalls.join_repo)
    follow_repo = awaited(ReposCalls.follow_repo)
    fork_repo = awaited(ReposCalls.fork_repo)
    forget_repo = awaited(ReposCalls.forget_repo)
    share_repo = awaited(ReposCalls.share_repo)
    list_epochs = awaited(ReposCalls.list_epochs)
    start_epoch = awaited(ReposCalls.start_epoch)
    list_tags = awaited(ReposCalls.list_tags)
    set_tag = awaited(ReposCalls.set_tag)
    remove_tag = awaited(ReposCalls.remove_tag)
    list_members = awaited(MembersCalls.list_members)
    list_member_changes = awaited(MembersCalls.list_member_changes)
    grant_permission = awaited(MembersCalls.grant_permission)
    remove_member = awaited(MembersCalls.remove_member)
    leave_repo = awaited(MembersCalls.leave_repo)
    list_invitations = awaited(MembersCalls.list_invitations)
    create_invitation = awaited(MembersCalls.create_invitation)
    revoke_invitation = awaited(MembersCalls.revoke_invitation)
    adopt_commits = awaited(MembersCalls.adopt_commits)
    list_checkpoints = awaited(MembersCalls.list_checkpoints)
    sign_members = awaited(MembersCalls.sign_members)
    make_ask_link = awaited(RequestsCalls.make_ask_link)
    list_ask_links = awaited(RequestsCalls.list_ask_links)
    close_ask_link = awaited(RequestsCalls.close_ask_link)
    list_requests = awaited(RequestsCalls.list_requests)
    list_all_requests = awaited(RequestsCalls.list_all_requests)
    answer_request = awaited(RequestsCalls.answer_request)
    cancel_request = awaited(RequestsCalls.cancel_request)
    show_me = awaited(PeopleCalls.show_me)
    state_me = awaited(PeopleCalls.state_me)
    list_petnames = awaited(PeopleCalls.list_petnames)
    set_petname = awaited(PeopleCalls.set_petname)
    list_devices = awaited(DevicesCalls.list_devices)
    invite_device = awaited(DevicesCalls.invite_device)
    join_as_device = awaited(DevicesCalls.join_as_device)
    sync_devices = awaited(DevicesCalls.sync_devices)
    remove_device = awaited(DevicesCalls.remove_device)
    show_quorum = awaited(QuorumsCalls.show_quorum)
    set_quorum = awaited(QuorumsCalls.set_quorum)
    propose_removal = awaited(QuorumsCalls.propose_removal)
    propose_checkpoint = awaited(QuorumsCalls.propose_checkpoint)
    approve_proposal = awaited(QuorumsCalls.approve_proposal)
    make_checkpoint = awaited(QuorumsCalls.make_checkpoint)
    list_branches = awaited(BranchesCalls.list_branches)
    create_branch = awaited(BranchesCalls.create_branch)
    edit_branch = awaited(BranchesCalls.edit_branch)
    point_main = awaited(BranchesCalls.point_main)
    fork_branch = awaited(BranchesCalls.fork_branch)
    merge_branch = awaited(BranchesCalls.merge_branch)
    share_branch = awaited(BranchesCalls.share_branch)
    compact_branch = awaited(BranchesCalls.compact_branch)
    write_post = awaited(CommitsCalls.write_post)
    write_posts = awaited(CommitsCalls.write_posts)
    show_commit = awaited(CommitsCalls.show_commit)
    explain_verdict = awaited(CommitsCalls.explain_verdict)
    list_voids = awaited(CommitsCalls.list_voids)
    reply_to_post = awaited(PostsCalls.reply_to_post)
    edit_post = awaited(PostsCalls.edit_post)
    delete_post = awaited(PostsCalls.delete_post)
    hide_post = awaited(PostsCalls.hide_post)
    show_versions = awaited(PostsCalls.show_versions)
    show_thread = awaited(PostsCalls.show_thread)
    show_timeline = awaited(TimelinesCalls.show_timeline)
    follow_edits = awaited(TimelinesCalls.follow_edits)
    watch_edits = streamed(TimelinesCalls.watch_edits)
    show_digest = awaited(TimelinesCalls.show_digest)
    show_state = awaited(TimelinesCalls.show_state)
    show_past = awaited(TimelinesCalls.show_past)
    check_feeds = awaited(TimelinesCalls.check_feeds)
    show_tangle = awaited(TimelinesCalls.show_tangle)
    search = awaited(SearchCalls.search)
    list_unseen = awaited(UnseenCalls.list_unseen)
    show_unseen = awaited(UnseenCalls.show_unseen)
    mark_seen = awaited(UnseenCalls.mark_seen)
    list_offers = awaited(InboxCalls.list_offers)
    make_offer = awaited(InboxCalls.make_offer)
    answer_offer = awaited(InboxCalls.answer_offer)
    fetch_offer = awaited(InboxCalls.fetch_offer)
    preview_offer = awaited(InboxCalls.preview_offer)
    merge_offer = awaited(InboxCalls.merge_offer)
    write_comment = awaited(InboxCalls.write_comment)
    edit_comment = awaited(InboxCalls.edit_comment)
    delete_comment = awaited(InboxCalls.delete_comment)
    ask_trust = awaited(InboxCalls.ask_trust)
    list_comments = awaited(InboxCalls.list_comments)
    list_documents = awaited(DocumentListCalls.list_documents)
    rename_document = awaited(DocumentListCalls.rename_document)
    remove_document = awaited(DocumentListCalls.remove_document)
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
    follow_json = awaited(JsonDocumentsCalls.follow_json)
    watch_json = streamed(JsonDocumentsCalls.watch_json)
    edit_json = awaited(JsonDocumentsCalls.edit_json)
    snapshot_json = awaited(JsonDocumentsCalls.snapshot_json)
    follow_json_documents = awaited(DocumentQueriesCalls.follow_json_documents)
    watch_json_documents = streamed(DocumentQueriesCalls.watch_json_documents)
    find_json_documents = awaited(DocumentQueriesCalls.find_json_documents)
    declare_json_index = awaited(DocumentQueriesCalls.declare_json_index)
    list_files = awaited(FilesCalls.list_files)
    remove_file = awaited(FilesCalls.remove_file)
    import_commits = awaited(FilesCalls.import_commits)
    list_imported = awaited(FilesCalls.list_imported)
    list_peers = awaited(PeersCalls.list_peers)
    add_peer = awaited(PeersCalls.add_peer)
    show_peer = awaited(PeersCalls.show_peer)
    restore_peer = awaited(PeersCalls.restore_peer)
    remove_peer = awaited(PeersCalls.remove_peer)
    ban_peer = awaited(PeersCalls.ban_peer)
    unban_peer = awaited(PeersCalls.unban_peer)
    show_relay = awaited(PeersCalls.show_relay)
    list_relayed_topics = awaited(PeersCalls.list_relayed_topics)
    pin_topic = awaited(PeersCalls.pin_topic)
    unpin_topic = awaited(PeersCalls.unpin_topic)
    allow_peer = awaited(PeersCalls.allow_peer)
    deny_peer = awaited(PeersCalls.deny_peer)
    list_relay_accounts = awaited(RelayAccountsCalls.list_relay_accounts)
    invite_to_relay = awaited(RelayAccountsCalls.invite_to_relay)
    change_relay_account = awaited(RelayAccountsCalls.change_relay_account)
    revoke_relay_account = awaited(RelayAccountsCalls.revoke_relay_account)
    join_relay = awaited(RelayAccountsCalls.join_relay)
    create_token = awaited(TokensCalls.create_token)
    list_tokens = awaited(TokensCalls.list_tokens)
    revoke_token = awaited(TokensCalls.revoke_token)
    show_token = awaited(TokensCalls.show_token)
    make_pairing_code = awaited(BrowsersCalls.make_pairing_code)
    keep_browser = awaited(BrowsersCalls.keep_browser)
    list_browsers = awaited(BrowsersCalls.list_browsers)
    revoke_browser = awaited(BrowsersCalls.revoke_browser)
    list_settings = awaited(CareCalls.list_settings)
    change_setting = awaited(CareCalls.change_setting)
    restart_node = awaited(CareCalls.restart_node)
    check_health = awaited(CareCalls.check_health)
    show_keys = awaited(CareCalls.show_keys)
    show_key_words = awaited(CareCalls.show_key_words)
    start_backup = awaited(CareCalls.start_backup)
    show_backup = awaited(CareCalls.show_backup)
    make_report = awaited(CareCalls.make_report)
    show_report = awaited(CareCalls.show_report)
    open_report = awaited(CareCalls.open_report)

    async def add_file(
        self, branch: str, content: bytes | Iterable[bytes] | AsyncIterable[bytes], *, name: str = ""
    ) -> FileView:
        """Add a file to a branch. It is durable when the answer comes."""
        return await self._call(ADD_FILE, {"branch": branch, "name": name}, content)

    async def add_files(
        self, branch: str, content: bytes | Iterable[bytes] | AsyncIterable[bytes]
    ) -> AddedFiles:
        """Add many files to a branch, all or none. They are durable when the answer comes.

        At most 1024 files, no two of one name. A request may be sent again: what the branch has under the same
        name and with the same content is passed over.
        """
        return await self._call(ADD_FILES, {"branch": branch}, content)

    async def read_bundle(self, content: bytes | Iterable[bytes] | AsyncIterable[bytes]) -> BundleReading:
        """Read a bundle: take what it carries of this node's repos.

        Every batch is judged as one that comes from a peer, and is durable before the next but one is read. A
        bundle may be read again: what is here is passed over.
        """
        return await self._call(READ_BUNDLE, {}, content)
