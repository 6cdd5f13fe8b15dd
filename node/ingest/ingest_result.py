"""`IngestResult`: what became of a batch of received commits (accepted, pending, rejected, dropped)."""

from collections import Counter
from dataclasses import dataclass, field

from node.ingest.publication_parsing import Opened
from protocol.formats.publication import Publication
from protocol.ids import CommitId, TopicKey
from verifier.verify import Rejected


@dataclass(slots=True)
class IngestResult:
    """Result of a batch: for subscribers, peers and logs."""

    accepted: dict[TopicKey, list[int]] = field(default_factory=dict)
    """Numbers of commits by the topic that they say."""
    also_on: dict[TopicKey, list[int]] = field(default_factory=dict)
    """Numbers of accepted commits by further topics: inits by those of their epochs, others by link topics."""
    branches: set[int] = field(default_factory=set)
    """Numbers of the branches that got any, or bodies or blocks that had been absent."""
    unread: dict[TopicKey, list[int]] = field(default_factory=dict)
    """Numbers of newly kept commits that this version cannot read, by topic."""
    voided: int = 0
    """Count of commits that have become void or ceased to be."""
    rejected: list[Rejected] = field(default_factory=list)
    unproven: list[Opened] = field(default_factory=list)
    """Commits to be kept once their topics' signatures are checked."""
    dropped: Counter[str] = field(default_factory=Counter)
    already: int = 0
    filled: set[CommitId] = field(default_factory=set)
    """Commits whose bodies were absent, and came."""
    shown: set[CommitId] = field(default_factory=set)
    """Commits that are here, and came again with their bodies."""
    has_bare: bool = False
    """True if a commit was accepted without its body."""
    waiting: int = 0
    waited: set[CommitId] = field(default_factory=set)
    """Commits of this batch that wait for causes."""
    wanted: dict[TopicKey, dict[CommitId, None]] = field(default_factory=dict)
    """Causes to ask for, by topic."""
    released: dict[int, CommitId] = field(default_factory=dict)
    """Commits that had waited and are accepted: ids by numbers."""
    inits: dict[int, CommitId] = field(default_factory=dict)
    """Accepted inits, ids by numbers: one may have waited that came on its epoch's own topic before."""
    own_publications: dict[TopicKey, dict[int, Publication]] = field(default_factory=dict)
    """Publications of this node's own commits, by topic and number."""
    restored: int = 0
    """Count of damaged commits whose blocks are back."""
    left: list[Opened] = field(default_factory=list)
    """Commits that were not judged yet: the slice was over."""
    is_unfinished: bool = False
    """True if waiting commits are left for `acceptance.release_more`."""
    is_about_repos: bool = False
    """True if a root branch got a commit, even one that waits."""

    def count_on(self, topic: TopicKey) -> int:
        """Commits that were accepted and stand on a topic."""
        return len(self.accepted.get(topic, ())) + len(self.also_on.get(topic, ()))

    def count_useful(self) -> int:
        """Count the commits that were new, or are more complete than before."""
        kept = sum(map(len, self.accepted.values())) + sum(map(len, self.unread.values()))
        return kept + len(self.filled) + self.restored

    def add(self, more: "IngestResult") -> None:
        """Add the result of a later transaction, except for its `left`."""
        self.rejected += more.rejected
        self.unproven += more.unproven
        self.dropped += more.dropped
        self.already += more.already
        self.filled |= more.filled
        self.shown |= more.shown
        self.has_bare |= more.has_bare
        self.waiting += more.waiting
        self.waited |= more.waited
        self.released |= more.released
        self.inits |= more.inits
        self.is_unfinished = more.is_unfinished
        self.restored += more.restored
        self.is_about_repos |= more.is_about_repos
        self.voided += more.voided
        self.branches |= more.branches
        for own, theirs in (
            (self.accepted, more.accepted),
            (self.also_on, more.also_on),
            (self.unread, more.unread),
        ):
            for topic, nums in theirs.items():
                own.setdefault(topic, []).extend(nums)
        for topic, publications in more.own_publications.items():
            self.own_publications.setdefault(topic, {}).update(publications)
        for topic, ids in more.wanted.items():
            self.wanted.setdefault(topic, {}).update(ids)
