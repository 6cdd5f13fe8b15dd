"""All calls in two classes. Made from the table of endpoints by `make reference`."""

from ravel.calls.branches import AsyncBranchesCalls, BranchesCalls
from ravel.calls.browsers import AsyncBrowsersCalls, BrowsersCalls
from ravel.calls.bundles import AsyncBundlesCalls, BundlesCalls
from ravel.calls.care import AsyncCareCalls, CareCalls
from ravel.calls.commits import AsyncCommitsCalls, CommitsCalls
from ravel.calls.devices import AsyncDevicesCalls, DevicesCalls
from ravel.calls.document_list import AsyncDocumentListCalls, DocumentListCalls
from ravel.calls.document_queries import AsyncDocumentQueriesCalls, DocumentQueriesCalls
from ravel.calls.documents import AsyncDocumentsCalls, DocumentsCalls
from ravel.calls.files import AsyncFilesCalls, FilesCalls
from ravel.calls.inbox import AsyncInboxCalls, InboxCalls
from ravel.calls.json_documents import AsyncJsonDocumentsCalls, JsonDocumentsCalls
from ravel.calls.members import AsyncMembersCalls, MembersCalls
from ravel.calls.node import AsyncNodeCalls, NodeCalls
from ravel.calls.peers import AsyncPeersCalls, PeersCalls
from ravel.calls.people import AsyncPeopleCalls, PeopleCalls
from ravel.calls.posts import AsyncPostsCalls, PostsCalls
from ravel.calls.quorums import AsyncQuorumsCalls, QuorumsCalls
from ravel.calls.relay_accounts import AsyncRelayAccountsCalls, RelayAccountsCalls
from ravel.calls.repos import AsyncReposCalls, ReposCalls
from ravel.calls.requests import AsyncRequestsCalls, RequestsCalls
from ravel.calls.search import AsyncSearchCalls, SearchCalls
from ravel.calls.timelines import AsyncTimelinesCalls, TimelinesCalls
from ravel.calls.tokens import AsyncTokensCalls, TokensCalls
from ravel.calls.unseen import AsyncUnseenCalls, UnseenCalls


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


class AsyncAllCalls(
    AsyncNodeCalls,
    AsyncReposCalls,
    AsyncMembersCalls,
    AsyncRequestsCalls,
    AsyncPeopleCalls,
    AsyncDevicesCalls,
    AsyncQuorumsCalls,
    AsyncBranchesCalls,
    AsyncCommitsCalls,
    AsyncPostsCalls,
    AsyncTimelinesCalls,
    AsyncSearchCalls,
    AsyncUnseenCalls,
    AsyncInboxCalls,
    AsyncDocumentListCalls,
    AsyncDocumentsCalls,
    AsyncJsonDocumentsCalls,
    AsyncDocumentQueriesCalls,
    AsyncFilesCalls,
    AsyncBundlesCalls,
    AsyncPeersCalls,
    AsyncRelayAccountsCalls,
    AsyncTokensCalls,
    AsyncBrowsersCalls,
    AsyncCareCalls,
):
    """All methods to be awaited."""
