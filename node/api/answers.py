"""Table of the methods that answer the endpoints of `node.contract`.

Each row holds an endpoint and a method by reference. The type checker compares the method's answer with the endpoint's;
`check_arguments` compares its parameters when the daemon starts. `node.api.api` has the handlers that take more than the
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
from node.contract.branches import (
    COMPACT_BRANCH,
    CREATE_BRANCH,
    EDIT_BRANCH,
    FORK_BRANCH,
    LIST_BRANCHES,
    MERGE_BRANCH,
    SHARE_BRANCH,
)
from node.contract.browsers import (
    LIST_BROWSERS,
    REVOKE_BROWSER,
)
from node.contract.care import (
    CHANGE_SETTING,
    CHECK_HEALTH,
    LIST_SETTINGS,
    MAKE_REPORT,
    SHOW_BACKUP,
    SHOW_KEY_WORDS,
    SHOW_KEYS,
    SHOW_REPORT,
    START_BACKUP,
)
from node.contract.commits import (
    EXPLAIN_VERDICT,
    LIST_VOIDS,
    SHOW_COMMIT,
    WRITE_POST,
    WRITE_POSTS,
)
from node.contract.devices import (
    INVITE_DEVICE,
    JOIN_AS_DEVICE,
    LIST_DEVICES,
    REMOVE_DEVICE,
    SYNC_DEVICES,
)
from node.contract.documents import (
    EDIT_DICT,
    EDIT_SET,
    IMPORT_TEXT,
    OPEN_TEXT,
    PULL_TEXT,
    PUSH_TEXT,
    SHOW_DICT,
    SHOW_ENTRY,
    SHOW_SET,
    SNAPSHOT_DICT,
    SNAPSHOT_SET,
)
from node.contract.endpoint import Endpoint
from node.contract.files import (
    IMPORT_COMMITS,
    LIST_FILES,
    LIST_IMPORTED,
    REMOVE_FILE,
)
from node.contract.inbox import (
    ANSWER_OFFER,
    LIST_COMMENTS,
    LIST_OFFERS,
    MAKE_OFFER,
    MERGE_OFFER,
    WRITE_COMMENT,
)
from node.contract.members import (
    ADOPT_COMMITS,
    CREATE_INVITATION,
    GRANT_PERMISSION,
    LEAVE_REPO,
    LIST_INVITATIONS,
    LIST_MEMBERS,
    REMOVE_MEMBER,
    REVOKE_INVITATION,
)
from node.contract.node import (
    DRAW_QR,
    EXPORT_STORE,
    SHOW_EXPORT,
    SHOW_LOG,
    SHOW_STATUS,
    SHOW_STORAGE,
)
from node.contract.peers import (
    ADD_PEER,
    ALLOW_PEER,
    BAN_PEER,
    DENY_PEER,
    LIST_PEERS,
    LIST_RELAYED_TOPICS,
    PIN_TOPIC,
    REMOVE_PEER,
    RESTORE_PEER,
    SHOW_PEER,
    SHOW_RELAY,
    UNBAN_PEER,
    UNPIN_TOPIC,
)
from node.contract.people import (
    LIST_PETNAMES,
    SET_PETNAME,
    SHOW_ME,
    STATE_ME,
)
from node.contract.posts import (
    DELETE_POST,
    EDIT_POST,
    HIDE_POST,
    REPLY_TO_POST,
    SHOW_THREAD,
    SHOW_VERSIONS,
)
from node.contract.quorums import (
    APPROVE_PROPOSAL,
    MAKE_CHECKPOINT,
    PROPOSE_CHECKPOINT,
    PROPOSE_REMOVAL,
    SET_QUORUM,
    SHOW_QUORUM,
)
from node.contract.relay_accounts import (
    CHANGE_RELAY_ACCOUNT,
    INVITE_TO_RELAY,
    JOIN_RELAY,
    LIST_RELAY_ACCOUNTS,
    REVOKE_RELAY_ACCOUNT,
)
from node.contract.repos import (
    CREATE_REPO,
    FOLLOW_REPO,
    FORGET_REPO,
    FORK_REPO,
    JOIN_REPO,
    LIST_EPOCHS,
    LIST_REPOS,
    LIST_TAGS,
    REMOVE_TAG,
    SET_TAG,
    SHARE_REPO,
    START_EPOCH,
)
from node.contract.requests import (
    ANSWER_REQUEST,
    CANCEL_REQUEST,
    CLOSE_ASK_LINK,
    LIST_ALL_REQUESTS,
    LIST_ASK_LINKS,
    LIST_REQUESTS,
    MAKE_ASK_LINK,
)
from node.contract.table import AnyEndpoint
from node.contract.timelines import (
    CHECK_FEEDS,
    SHOW_DIGEST,
    SHOW_PAST,
    SHOW_STATE,
    SHOW_TANGLE,
    SHOW_TIMELINE,
)
from node.contract.tokens import (
    CREATE_TOKEN,
    LIST_TOKENS,
    REVOKE_TOKEN,
)
from node.contract.unseen import (
    LIST_UNSEEN,
    MARK_SEEN,
    SHOW_UNSEEN,
)

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


def _branch_answers(branches: BranchService) -> tuple[Answer, ...]:
    return (
        answer(LIST_REPOS, branches.repo_list.list),
        answer(CREATE_REPO, branches.repos.create),
        answer(JOIN_REPO, branches.repos.join),
        answer(FOLLOW_REPO, branches.repos.follow),
        answer(FORK_REPO, branches.repos.fork),
        answer(FORGET_REPO, branches.repos.forget),
        answer(LIST_TAGS, branches.names.list_tags),
        answer(SET_TAG, branches.names.set_tag),
        answer(REMOVE_TAG, branches.names.remove_tag),
        answer(LIST_BRANCHES, branches.list_all),
        answer(CREATE_BRANCH, branches.create),
        answer(EDIT_BRANCH, branches.names.edit_branch),
        answer(FORK_BRANCH, branches.fork),
        answer(MERGE_BRANCH, branches.merging.merge),
        answer(COMPACT_BRANCH, branches.compacting.compact),
        answer(WRITE_POST, branches.posts.write),
        answer(WRITE_POSTS, branches.posts.write_many),
        answer(SHOW_COMMIT, branches.show_commit),
        answer(EXPLAIN_VERDICT, branches.explain_verdict),
        answer(LIST_VOIDS, branches.list_voids),
        answer(REPLY_TO_POST, branches.posts.reply),
        answer(EDIT_POST, branches.posts.edit),
        answer(DELETE_POST, branches.posts.delete),
        answer(HIDE_POST, branches.posts.hide),
        answer(SHOW_VERSIONS, branches.posts.versions),
        answer(SHOW_THREAD, branches.posts.thread),
        answer(SHOW_TIMELINE, branches.timelines.read),
        answer(SHOW_DIGEST, branches.timelines.digest),
        answer(SHOW_STATE, branches.merging.state),
        answer(SHOW_PAST, branches.show_past),
        answer(CHECK_FEEDS, branches.feeds.check),
        answer(SHOW_TANGLE, branches.show_tangle),
        answer(LIST_UNSEEN, branches.unseen.list_all),
        answer(SHOW_UNSEEN, branches.unseen.show),
        answer(MARK_SEEN, branches.unseen.mark),
        answer(LIST_OFFERS, branches.inbox.list_offers),
        answer(MAKE_OFFER, branches.inbox.offer),
        answer(ANSWER_OFFER, branches.inbox.answer),
        answer(MERGE_OFFER, branches.inbox.merge),
        answer(WRITE_COMMENT, branches.inbox.comment),
        answer(LIST_COMMENTS, branches.inbox.comments),
        answer(OPEN_TEXT, branches.texts.open),
        answer(IMPORT_TEXT, branches.texts.import_text),
        answer(PULL_TEXT, branches.texts.pull),
        answer(PUSH_TEXT, branches.texts.push),
        answer(LIST_FILES, branches.files.window),
        answer(REMOVE_FILE, branches.files.remove),
        answer(IMPORT_COMMITS, branches.imports.add),
        answer(LIST_IMPORTED, branches.imports.window),
    )


def _document_answers(documents: Documents) -> tuple[Answer, ...]:
    return (
        answer(SHOW_SET, partial(show_set, documents)),
        answer(EDIT_SET, partial(edit_set, documents)),
        answer(SNAPSHOT_SET, partial(snapshot_set, documents)),
        answer(SHOW_DICT, partial(show_dict, documents)),
        answer(SHOW_ENTRY, partial(show_entry, documents)),
        answer(EDIT_DICT, partial(edit_dict, documents)),
        answer(SNAPSHOT_DICT, partial(snapshot_dict, documents)),
    )


def _people_answers(people: PeopleService) -> tuple[Answer, ...]:
    return (
        answer(SHARE_REPO, people.show_read_link),
        answer(LIST_EPOCHS, people.key_rotation.list_epochs),
        answer(START_EPOCH, people.key_rotation.renew),
        answer(LIST_MEMBERS, people.members.list_all),
        answer(GRANT_PERMISSION, people.members.grant),
        answer(REMOVE_MEMBER, people.members.remove),
        answer(LEAVE_REPO, people.members.leave),
        answer(LIST_INVITATIONS, people.members.invitations),
        answer(CREATE_INVITATION, people.invite),
        answer(REVOKE_INVITATION, people.members.revoke_invitation),
        answer(ADOPT_COMMITS, people.members.adopt),
        answer(MAKE_ASK_LINK, people.requests.make_link),
        answer(LIST_ASK_LINKS, people.requests.list_links),
        answer(CLOSE_ASK_LINK, people.requests.close_link),
        answer(LIST_REQUESTS, people.requests.list_received),
        answer(LIST_ALL_REQUESTS, people.requests.list_all),
        answer(ANSWER_REQUEST, people.requests.answer),
        answer(CANCEL_REQUEST, people.requests.cancel),
        answer(SHOW_ME, people.profiles.show_me),
        answer(STATE_ME, people.profiles.state_me),
        answer(LIST_PETNAMES, people.profiles.list_petnames),
        answer(SET_PETNAME, people.profiles.set_petname),
        answer(LIST_DEVICES, people.pairing.list_all),
        answer(INVITE_DEVICE, people.pairing.add),
        answer(JOIN_AS_DEVICE, people.pairing.join),
        answer(SYNC_DEVICES, people.pairing.sync),
        answer(REMOVE_DEVICE, people.pairing.remove),
        answer(SHOW_QUORUM, people.quorums.show),
        answer(SET_QUORUM, people.quorums.name),
        answer(PROPOSE_REMOVAL, people.quorums.propose_removal),
        answer(PROPOSE_CHECKPOINT, people.quorums.propose_checkpoint),
        answer(APPROVE_PROPOSAL, people.quorums.approve),
        answer(MAKE_CHECKPOINT, people.quorums.finish),
        answer(SHARE_BRANCH, people.show_branch_link),
    )


def _peer_answers(peers: PeerService) -> tuple[Answer, ...]:
    return (
        answer(LIST_PEERS, peers.peers.list_all),
        answer(ADD_PEER, peers.peers.add),
        answer(SHOW_PEER, peers.peers.show),
        answer(RESTORE_PEER, peers.peers.restore),
        answer(REMOVE_PEER, peers.peers.remove),
        answer(BAN_PEER, peers.peers.ban),
        answer(UNBAN_PEER, peers.peers.unban),
        answer(SHOW_RELAY, peers.relay_overview.show),
        answer(LIST_RELAYED_TOPICS, peers.relaying.list_all),
        answer(PIN_TOPIC, peers.relaying.pin),
        answer(UNPIN_TOPIC, peers.relaying.unpin),
        answer(ALLOW_PEER, peers.relaying.allow),
        answer(DENY_PEER, peers.relaying.deny),
        answer(LIST_RELAY_ACCOUNTS, peers.accounts.list_all),
        answer(INVITE_TO_RELAY, peers.accounts.invite),
        answer(CHANGE_RELAY_ACCOUNT, peers.accounts.change),
        answer(REVOKE_RELAY_ACCOUNT, peers.accounts.revoke),
        answer(JOIN_RELAY, peers.relay_joining.join),
    )


def _node_answers(node: NodeService) -> tuple[Answer, ...]:
    return (
        answer(SHOW_STATUS, node.show_status),
        answer(SHOW_STORAGE, node.storage.show),
        answer(SHOW_LOG, node.watching.log),
        answer(EXPORT_STORE, node.exports.write),
        answer(SHOW_EXPORT, node.archives.show),
        answer(DRAW_QR, node.draw_qr),
        answer(CREATE_TOKEN, node.tokens.create),
        answer(LIST_TOKENS, node.tokens.list_all),
        answer(REVOKE_TOKEN, node.revoking.revoke_token),
        answer(LIST_BROWSERS, node.browsers.list_all),
        answer(REVOKE_BROWSER, node.revoking.revoke_browser),
        answer(LIST_SETTINGS, node.settings.list_all),
        answer(CHANGE_SETTING, node.settings.change),
        answer(CHECK_HEALTH, node.health.check),
        answer(SHOW_KEYS, node.own_keys.show),
        answer(SHOW_KEY_WORDS, node.own_keys.words),
        answer(START_BACKUP, node.backups.start),
        answer(SHOW_BACKUP, node.backups.show),
        answer(MAKE_REPORT, node.reports.start),
        answer(SHOW_REPORT, node.reports.show),
    )
