"""Table of the methods that answer the endpoints of `node.contract`.

Each row holds an endpoint and a method by reference. The type checker compares the method's answer with the endpoint's;
a test compares its parameters. `node.api.api` has the handlers that take more than the
values of a request.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from node.api.branch_service import BranchService
from node.api.node_service import NodeService
from node.api.peer_service import PeerService
from node.api.people_service import PeopleService
from node.api.services import Services
from node.api.value_documents import (
    edit_dict,
    edit_set,
    show_dict,
    show_entry,
    show_set,
    snapshot_dict,
    snapshot_set,
)
from node.content.documents import Documents
from node.contract import (
    branches,
    browsers,
    care,
    commits,
    devices,
    document_list,
    document_queries,
    documents,
    files,
    inbox,
    json_documents,
    members,
    node,
    peers,
    people,
    posts,
    quorums,
    recovery,
    relay_accounts,
    repos,
    requests,
    timelines,
    tokens,
    unseen,
)
from node.contract.endpoint import Endpoint
from node.contract.table import AnyEndpoint

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Answer:
    """An endpoint and the method that answers it."""

    endpoint: AnyEndpoint
    method: Callable[..., Awaitable[Any]]


def answer(endpoint: Endpoint[A], method: Callable[..., Awaitable[A]]) -> Answer:
    """Return a row: the method is called with the path's parts, the query's values and the body's fields by name."""
    return Answer(endpoint, method)


def list_answers(services: Services) -> tuple[Answer, ...]:
    """Return the rows of all endpoints that a method answers."""
    return (
        *_branch_answers(services.branches),
        *_document_answers(services.branches.documents),
        *_people_answers(services.people),
        *_peer_answers(services.peers),
        *_node_answers(services.node),
    )


def _branch_answers(service: BranchService) -> tuple[Answer, ...]:
    return (
        answer(repos.LIST_REPOS, service.repo_list.list),
        answer(repos.CREATE_REPO, service.repos.create),
        answer(repos.LOOK_AT_LINK, service.link_looks.look),
        answer(repos.JOIN_REPO, service.repos.join),
        answer(repos.FOLLOW_REPO, service.repos.follow),
        answer(repos.FORK_REPO, service.repos.fork),
        answer(repos.FORGET_REPO, service.repos.forget),
        answer(repos.LIST_HOLDERS, service.repos.list_holders),
        answer(repos.SHOW_KEEPING, service.repos.show_keeping),
        answer(repos.SET_KEEPING, service.repos.set_keeping),
        answer(repos.LIST_TAGS, service.names.list_tags),
        answer(repos.SET_TAG, service.names.set_tag),
        answer(repos.REMOVE_TAG, service.names.remove_tag),
        answer(branches.LIST_BRANCHES, service.list_all),
        answer(branches.CREATE_BRANCH, service.create),
        answer(branches.EDIT_BRANCH, service.names.edit_branch),
        answer(branches.POINT_MAIN, service.names.point_main),
        answer(branches.FORK_BRANCH, service.fork),
        answer(branches.MERGE_BRANCH, service.merging.merge),
        answer(branches.COMPACT_BRANCH, service.compacting.compact),
        answer(commits.WRITE_POST, service.posts.write),
        answer(commits.WRITE_POSTS, service.posts.write_many),
        answer(commits.SHOW_COMMIT, service.show_commit),
        answer(commits.EXPLAIN_VERDICT, service.explain_verdict),
        answer(commits.LIST_VOIDS, service.list_voids),
        answer(posts.REPLY_TO_POST, service.posts.reply),
        answer(posts.EDIT_POST, service.posts.edit),
        answer(posts.DELETE_POST, service.posts.delete),
        answer(posts.HIDE_POST, service.posts.hide),
        answer(posts.SHOW_VERSIONS, service.posts.versions),
        answer(posts.SHOW_THREAD, service.posts.thread),
        answer(timelines.SHOW_TIMELINE, service.timelines.read),
        answer(timelines.SHOW_DIGEST, service.timelines.digest),
        answer(timelines.SHOW_STATE, service.merging.state),
        answer(timelines.SHOW_PAST, service.show_past),
        answer(timelines.CHECK_FEEDS, service.feeds.check),
        answer(timelines.SHOW_TANGLE, service.show_tangle),
        answer(unseen.LIST_UNSEEN, service.unseen.list_all),
        answer(unseen.SHOW_UNSEEN, service.unseen.show),
        answer(unseen.MARK_SEEN, service.unseen.mark),
        answer(inbox.LIST_OFFERS, service.inbox.list_offers),
        answer(inbox.MAKE_OFFER, service.inbox.offer),
        answer(inbox.ANSWER_OFFER, service.inbox.answer),
        answer(inbox.FETCH_OFFER, service.inbox.fetch),
        answer(inbox.PREVIEW_OFFER, service.inbox.preview),
        answer(inbox.MERGE_OFFER, service.inbox.merge),
        answer(inbox.WRITE_COMMENT, service.comments.write),
        answer(inbox.EDIT_COMMENT, service.comments.edit),
        answer(inbox.DELETE_COMMENT, service.comments.delete),
        answer(inbox.ASK_TRUST, service.comments.ask_trust),
        answer(inbox.LIST_COMMENTS, service.comments.show),
        answer(document_list.LIST_DOCUMENTS, service.listed_documents.list_all),
        answer(document_list.RENAME_DOCUMENT, service.listed_documents.rename),
        answer(document_list.REMOVE_DOCUMENT, service.listed_documents.remove),
        answer(documents.OPEN_TEXT, service.texts.open),
        answer(documents.IMPORT_TEXT, service.texts.import_text),
        answer(documents.PULL_TEXT, service.texts.pull),
        answer(documents.PUSH_TEXT, service.texts.push),
        answer(json_documents.EDIT_JSON, service.json_documents.edit),
        answer(json_documents.SNAPSHOT_JSON, service.json_documents.snapshot),
        answer(document_queries.DECLARE_JSON_INDEX, service.document_indexes.declare),
        answer(files.LIST_FILES, service.files.window),
        answer(files.REMOVE_FILE, service.files.remove),
        answer(files.IMPORT_COMMITS, service.imports.add),
        answer(files.LIST_IMPORTED, service.imports.window),
    )


def _document_answers(service: Documents) -> tuple[Answer, ...]:
    return (
        answer(documents.SHOW_SET, partial(show_set, service)),
        answer(documents.EDIT_SET, partial(edit_set, service)),
        answer(documents.SNAPSHOT_SET, partial(snapshot_set, service)),
        answer(documents.SHOW_DICT, partial(show_dict, service)),
        answer(documents.SHOW_ENTRY, partial(show_entry, service)),
        answer(documents.EDIT_DICT, partial(edit_dict, service)),
        answer(documents.SNAPSHOT_DICT, partial(snapshot_dict, service)),
    )


def _people_answers(service: PeopleService) -> tuple[Answer, ...]:
    return (
        answer(repos.SHARE_REPO, service.show_read_link),
        answer(repos.LIST_EPOCHS, service.key_rotation.list_epochs),
        answer(repos.START_EPOCH, service.key_rotation.renew),
        answer(repos.STATE_PREKEY, service.key_rotation.refresh),
        answer(members.LIST_MEMBERS, service.members.list_all),
        answer(members.LIST_MEMBER_CHANGES, service.member_changes.list_latest),
        answer(members.GRANT_PERMISSION, service.members.grant),
        answer(members.REMOVE_MEMBER, service.members.remove),
        answer(members.LEAVE_REPO, service.members.leave),
        answer(members.LIST_INVITATIONS, service.members.invitations),
        answer(members.CREATE_INVITATION, service.invite),
        answer(members.REVOKE_INVITATION, service.members.revoke_invitation),
        answer(members.LIST_CHECKPOINTS, service.member_checkpoints.list_all),
        answer(members.SIGN_MEMBERS, service.member_checkpoints.sign),
        answer(members.ADOPT_COMMITS, service.members.adopt),
        answer(requests.MAKE_ASK_LINK, service.requests.make_link),
        answer(requests.LIST_ASK_LINKS, service.requests.list_links),
        answer(requests.CLOSE_ASK_LINK, service.requests.close_link),
        answer(requests.LIST_REQUESTS, service.requests.list_received),
        answer(requests.LIST_ALL_REQUESTS, service.requests.list_all),
        answer(requests.ANSWER_REQUEST, service.requests.answer),
        answer(requests.CANCEL_REQUEST, service.requests.cancel),
        answer(people.SHOW_ME, service.profiles.show_me),
        answer(people.STATE_ME, service.profiles.state_me),
        answer(people.LIST_PETNAMES, service.profiles.list_petnames),
        answer(people.SET_PETNAME, service.profiles.set_petname),
        answer(devices.LIST_DEVICES, service.pairing.list_all),
        answer(devices.INVITE_DEVICE, service.pairing.add),
        answer(devices.JOIN_AS_DEVICE, service.pairing.join),
        answer(devices.SYNC_DEVICES, service.pairing.sync),
        answer(devices.REMOVE_DEVICE, service.pairing.remove),
        answer(devices.PROMOTE_DEVICE, service.pairing.promote),
        answer(recovery.LIST_FRIENDS, service.recovery.show),
        answer(recovery.NAME_FRIENDS, service.recovery.name_friends),
        answer(recovery.SIGN_RECOVERY, service.recovery.sign),
        answer(recovery.FINISH_RECOVERY, service.recovery.finish),
        answer(quorums.SHOW_QUORUM, service.quorums.show),
        answer(quorums.SET_QUORUM, service.quorums.name),
        answer(quorums.PROPOSE_REMOVAL, service.quorums.propose_removal),
        answer(quorums.PROPOSE_CHECKPOINT, service.quorums.propose_checkpoint),
        answer(quorums.APPROVE_PROPOSAL, service.quorums.approve),
        answer(quorums.MAKE_CHECKPOINT, service.quorums.finish),
        answer(branches.SHARE_BRANCH, service.show_branch_link),
    )


def _peer_answers(service: PeerService) -> tuple[Answer, ...]:
    return (
        answer(peers.LIST_PEERS, service.peers.list_all),
        answer(peers.ADD_PEER, service.peers.add),
        answer(peers.SHOW_PEER, service.peers.show),
        answer(peers.RESTORE_PEER, service.peers.restore),
        answer(peers.REMOVE_PEER, service.peers.remove),
        answer(peers.BAN_PEER, service.peers.ban),
        answer(peers.UNBAN_PEER, service.peers.unban),
        answer(peers.SHOW_RELAY, service.relay_overview.show),
        answer(peers.LIST_RELAYED_TOPICS, service.relaying.list_all),
        answer(peers.PIN_TOPIC, service.relaying.pin),
        answer(peers.UNPIN_TOPIC, service.relaying.unpin),
        answer(peers.ALLOW_PEER, service.relaying.allow),
        answer(peers.DENY_PEER, service.relaying.deny),
        answer(relay_accounts.LIST_RELAY_ACCOUNTS, service.accounts.list_all),
        answer(relay_accounts.INVITE_TO_RELAY, service.accounts.invite),
        answer(relay_accounts.CHANGE_RELAY_ACCOUNT, service.accounts.change),
        answer(relay_accounts.REVOKE_RELAY_ACCOUNT, service.accounts.revoke),
        answer(relay_accounts.JOIN_RELAY, service.relay_joining.join),
    )


def _node_answers(service: NodeService) -> tuple[Answer, ...]:
    return (
        answer(node.SHOW_STATUS, service.show_status),
        answer(node.SHOW_STORAGE, service.storage.show),
        answer(node.SHOW_LOG, service.watching.log),
        answer(node.EXPORT_STORE, service.exports.write),
        answer(node.SHOW_EXPORT, service.archives.show),
        answer(node.DRAW_QR, service.draw_qr),
        answer(tokens.CREATE_TOKEN, service.tokens.create),
        answer(tokens.LIST_TOKENS, service.tokens.list_all),
        answer(tokens.REVOKE_TOKEN, service.revoking.revoke_token),
        answer(browsers.LIST_BROWSERS, service.browsers.list_all),
        answer(browsers.REVOKE_BROWSER, service.revoking.revoke_browser),
        answer(care.LIST_SETTINGS, service.settings.list_all),
        answer(care.CHANGE_SETTING, service.settings.change),
        answer(care.RESTART_NODE, service.settings.restart),
        answer(care.SHOW_START_WITH_LOGIN, service.settings.show_start),
        answer(care.START_WITH_LOGIN, service.settings.start_with_login),
        answer(care.CHECK_HEALTH, service.health.check),
        answer(care.SHOW_KEYS, service.own_keys.show),
        answer(care.SHOW_KEY_WORDS, service.own_keys.words),
        answer(care.RECOVER_USER, service.own_keys.recover),
        answer(care.START_BACKUP, service.backups.start),
        answer(care.SHOW_BACKUP, service.backups.show),
        answer(care.MAKE_REPORT, service.reports.start),
        answer(care.SHOW_REPORT, service.reports.show),
    )
