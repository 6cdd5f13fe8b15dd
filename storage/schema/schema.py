"""The tables, in SQLAlchemy Core; a test holds that migrations make the same.

Rows are named by integers (`num`), and 32-byte ids are found by their first eight bytes as an integer (`id_key`):
random 32-byte keys make inserts slow as a table grows, narrow ones less so. An `id_key` is an index and never an identity:
every look-up compares the whole id. Entries at random places are what an insert costs in a large store, so a commit has one,
of its own id: what else it has is found by its row.

`commits.num` grows in the order of acceptance, so causes always stand before effects. Reading commits by `num` is reading
the inserts of a branch's timeline; `changes` holds what else happened to it, with numbers of the same sequence.

What opens something (marked "sealed" below) is kept as `column_encryption` makes it: of no use without the store's key.

An epoch has two topics, on which the commits of all branches come. A commit's `topic_num` says on which of them it is, and
its `epoch_num` which keys open it.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    UniqueConstraint,
    column,
    false,
    text,
    true,
)

from storage.schema.columns import NUM, Bytes, metadata

repos = Table(
    "repos",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("repo_id", Bytes(32), nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("init_id", Bytes(32), nullable=False),
    Column("init_key", Bytes(), nullable=False),  # sealed
    Column("epoch_num", NUM, nullable=False),  # of the epoch that this node writes in; 0 where it holds none
    # Whether members have gone on to an epoch whose secrets are not here.
    Column("is_behind", Boolean, nullable=False, server_default=false()),
    Column("invitation", Bytes()),  # the encoded link, until the join is accepted; sealed
    # Whether a branch that is added is kept, with its bodies.
    Column("keeps_all", Boolean, nullable=False, server_default=true()),
    # Days of which posts are kept with their bodies, as this user has chosen; 0: of any age.
    Column("chosen_days", Integer, nullable=False, server_default="0"),
    # The same, as the bound on the store's size has it.
    Column("bound_days", Integer, nullable=False, server_default="0"),
    # Whether contents of files come before they are opened.
    Column("keeps_files", Boolean, nullable=False, server_default=false()),
)

epochs = Table(
    "epochs",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("repo_num", NUM, ForeignKey("repos.num"), nullable=False),
    Column("epoch_id", Bytes(32), nullable=False),
    Column("key", Bytes(), nullable=False),  # sealed
    Column("writers_secret", Bytes()),  # sealed; only where this node may write
    Column("topic_num", NUM, ForeignKey("topics.num"), nullable=False),
    Column("writers_topic_num", NUM, ForeignKey("topics.num")),  # none until the init says it
    # Whose commit says that this is the epoch's key, while its init is not here to tell. None: the key is right.
    Column("claimed_by", Bytes(32)),
    UniqueConstraint("repo_num", "epoch_id", "key", name="epochs_in_repo"),
    Index("epochs_topic", "topic_num"),
    Index("epochs_writers_topic", "writers_topic_num"),
)

prekeys = Table(
    "prekeys",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("repo_num", NUM, ForeignKey("repos.num"), nullable=False),
    Column("prekey", Bytes(32), nullable=False),  # as this user stated it in the root branch
    Column("secret", Bytes(), nullable=False),  # sealed
    UniqueConstraint("repo_num", "prekey", name="prekeys_in_repo"),
)
"""Private halves of this user's prekeys, as long as boxes may need them; see `storage.repos.prekeys`."""

branches = Table(
    "branches",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("repo_num", NUM, ForeignKey("repos.num"), nullable=False),
    Column("branch_id", Bytes(32), nullable=False),
    Column("name", String, nullable=False),
    Column("root_id", Bytes(32), nullable=False),
    Column("commit_count", BigInteger, nullable=False),
    Column("void_count", BigInteger, nullable=False, server_default="0"),  # of the commits that are void
    Column("is_archived", Boolean, nullable=False, server_default=false()),
    Column("is_main", Boolean, nullable=False, server_default=false()),
    Column("changes_from", BigInteger, nullable=False, server_default="0"),  # what changed before may be gone
    # Whether its erasable bodies are kept, or only come when they are opened.
    Column("is_kept", Boolean, nullable=False, server_default=true()),
    UniqueConstraint("repo_num", "branch_id", name="branches_in_repo"),
)

topics = Table(
    "topics",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("topic", Bytes(32), nullable=False, unique=True),
    Column("commit_count", BigInteger, nullable=False),
    # Of a link topic: the branch that it carries, and the epoch; no epoch where a link gave the topic alone.
    Column("branch_num", NUM, ForeignKey("branches.num")),
    Column("epoch_num", NUM),
    Column("channel", Bytes()),  # where a link gave it alone: what opens it, as in the link; sealed
    Index("topics_branch", "branch_num", "epoch_num"),
)
"""Topics of epochs (which `epochs` names, one or two each), and link topics of single branches."""

membership_parts = Table(
    "membership_parts",
    metadata,
    Column("branch_num", NUM, primary_key=True),  # of the repo's root branch
    Column("first", NUM, primary_key=True),  # operations in the parts before it
    Column("content", Bytes(), nullable=False),  # sealed
)
"""Judged operations of root branches, from which a start goes on; see `storage.repos.membership_parts`."""

topic_inits = Table(
    "topic_inits",
    metadata,
    Column("topic_num", NUM, primary_key=True),
    Column("commit_num", NUM, primary_key=True),
)
"""Inits that stand on the topic of the epoch that they start as well as on their own (E6)."""

group_places = Table(
    "group_places",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("key", BigInteger, nullable=False),  # of the ids
    Column(
        "ids", Bytes(), nullable=False
    ),  # root branch commits, 32 bytes each, in the order of the first who named them
    Index("group_places_key", "key"),
)
"""Places in the group tangle that commits name, each list once."""

blocks = Table(
    "blocks",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("id_key", BigInteger, nullable=False),
    # Whether it is looked up by its id: a block of a file, or a large one of commits; see `commits.blocks`.
    Column("is_shared", Boolean, nullable=False),
    Column("encoded", Bytes(), nullable=False),
    # Others stay out of it: an entry at a random place costs more than the row.
    Index("blocks_id_key", "id_key", sqlite_where=column("is_shared", Boolean) == true()),
)

packs = Table(
    "packs",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("size", BigInteger, nullable=False),  # bytes
)
"""Files beside the database that hold large blocks one after another; see `packs`."""

pack_blocks = Table(
    "pack_blocks",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("id_key", BigInteger, nullable=False),
    Column("block_id", Bytes(32), nullable=False),
    Column("pack_num", NUM, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),
    Index("pack_blocks_id_key", "id_key"),
)

authors = Table(
    "authors",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("user", Bytes(32), nullable=False, unique=True),
)

FEED_LINK_SIZE: Final = 16
"""Bytes of an id that tell a commit of a feed from any other: nobody finds two ids that share them."""

commits = Table(
    "commits",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("id_key", BigInteger, nullable=False),
    Column("commit_id", Bytes(32), nullable=False),
    Column("branch_num", NUM, nullable=False),
    Column("topic_num", NUM, nullable=False),
    Column("epoch_num", NUM, nullable=False),  # 0 where a single branch is followed by itself
    Column("place_num", NUM, nullable=False),  # of `group_places`; 0 in the root branch
    Column("author_num", NUM, nullable=False),
    Column("feed_sequence", BigInteger, nullable=False),
    # The first bytes of the id that its author states to come before it in the feed; empty: none, or it is not known here.
    Column("feed_link", Bytes(FEED_LINK_SIZE), nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("acks", Bytes(), nullable=False),  # ids, 32 bytes each, in the commit's order
    Column("commit_key", Bytes(32), nullable=False),  # sealed
    # Of the publication on the topic; empty where that was not seen and cannot be made here.
    Column("signature", Bytes(64), nullable=False),
    # 8 bytes each: the commit's block, then its body's, which is missing where it is not here, then what an init names.
    Column("block_nums", Bytes(), nullable=False),
    Column("body_kind", String, nullable=False),
    Column(
        "size", BigInteger, nullable=False
    ),  # bytes of the publication's blocks, also of those erased since
    Column("timestamp", BigInteger, nullable=False),  # unix milliseconds, asserted
    Column("received_at", BigInteger, nullable=False),  # unix milliseconds, this node's clock
    Column("is_void", Boolean, nullable=False, server_default=false()),
    Column("passed", BigInteger, nullable=False, server_default="0"),  # checkpoints; see `checkpoints`
    Column(
        "display_time", BigInteger, nullable=False, server_default="0"
    ),  # unix milliseconds; see `display`
    Column("arrived_at", BigInteger),  # unix milliseconds: when it came, where it then waited for its causes
    Column("arrival", BigInteger),  # of the sequence of `num`: its turn to come, where it then waited
    # Of a post: "reply", "edit", "delete" or "" (`verifier.posts`); none in a row that a repair made anew (`rebuild_file`).
    # `about` is the post that it is about; of a reply, the first of the thread.
    Column("relation", String),
    Column("about", Bytes(32)),
    # Of a commit of a named document: the name, as its header has it (`protocol.formats.declared_kind`).
    Column("document", String, nullable=False, server_default=""),
    # Whether `signature` was checked, or made here. Else a holder of the topic's key makes it anew when it sends.
    Column("is_proven", Boolean, nullable=False, server_default=false()),
    Index("commits_id_key", "id_key"),
    # With the mark, so that the timeline is read, counted and skipped through without looking at rows.
    Index("commits_order", "branch_num", "passed", "rank", "commit_id", "is_void"),
    Index("commits_display", "branch_num", "passed", "display_time", "num", "is_void"),
    Index("commits_arrival", "topic_num", "num"),
    # With what a repair tells by it of a row whose page is gone (`storage.check.rebuild_file`).
    Index("commits_branch", "branch_num", "num", "epoch_num", "place_num"),
    Index("commits_feed", "branch_num", "author_num", "feed_sequence"),
    # The last edit of a post by one author, without walking over the others; and a thread in order.
    Index(
        "commits_about",
        *("branch_num", "about", "relation", "author_num", "is_void", "passed", "rank", "commit_id"),
        sqlite_where=text("about IS NOT NULL"),
    ),
    Index(
        "commits_threads",
        *("branch_num", "about", "relation", "is_void", "passed", "rank", "commit_id"),
        sqlite_where=text("about IS NOT NULL"),
    ),
    # Whether anything was said of a named document. Posts, of none, stay out of it.
    Index("commits_documents", "branch_num", "document", "body_kind", sqlite_where=text("document <> ''")),
)

erasures = Table(
    "erasures",
    metadata,
    Column("commit_num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("topic_num", NUM, nullable=False),  # on which it is asked for
    Column("body_id", Bytes(32), nullable=False),
    Column("erased_at", BigInteger, nullable=False),  # unix milliseconds, also when the commit came without
    Column(
        "is_missing", Boolean, nullable=False, server_default=false()
    ),  # never was here: taken if it comes
    # Not awaited, for the branch is not kept, or no post of that age. What was erased for all is neither, and stays away.
    Column("is_spared", Boolean, nullable=False, server_default=false()),
    Index("erasures_branch", "branch_num"),
    Index("erasures_missing", "is_missing", "topic_num", "commit_num"),
)
"""Commits whose bodies are not here, with the ids of the bodies' blocks; see `absent_bodies`."""

damaged_commits = Table(
    "damaged_commits",
    metadata,
    Column("commit_num", NUM, primary_key=True),
    Column("topic_num", NUM, nullable=False),  # by which it came, and is asked for
    Index("damaged_commits_topic", "topic_num", "commit_num"),
)
"""Commits whose blocks were damaged, and are asked of peers; see `commits.damaged`."""

damaged_blocks = Table("damaged_blocks", metadata, Column("block_id", Bytes(32), primary_key=True))
"""Blocks of files that were damaged, and are asked of peers."""

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("commit_num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("proposal", Bytes(32), nullable=False),
    Column("merged", Bytes(), nullable=False),  # ids of the heads that it acks, sorted, 32 bytes each
    Index("checkpoints_branch", "branch_num"),
)
"""Commits that are checkpoints, void ones too. Those that merge the same heads count once."""

order_spans = Table(
    "order_spans",
    metadata,
    Column("branch_num", NUM, primary_key=True),
    Column("level", Integer, primary_key=True),
    Column(
        "passed", BigInteger, primary_key=True
    ),  # with the next two: where it begins in the canonical order
    Column("rank", BigInteger, primary_key=True),
    Column("commit_id", Bytes(), primary_key=True),  # empty for the first one of a level
    Column(
        "size", BigInteger, nullable=False
    ),  # commits, void ones too; above level 0: spans of the level below
    Column("shown", BigInteger, nullable=False),  # commits that are not void
    sqlite_with_rowid=False,  # rows lie in the order of the key, and are read in it
)
"""Counts of commits in stretches of each branch's order; see `position_index`."""

seen_marks = Table(
    "seen_marks",
    metadata,
    Column("branch_num", NUM, primary_key=True),
    Column("num", NUM, nullable=False),  # of `commits.num`: all up to it was seen
    Column("seen_at", BigInteger, nullable=False),  # unix milliseconds
)
"""Marks of how far the user has seen branches; see `commits.local_state`. No other node learns them."""

text_sessions = Table(
    "text_sessions",
    metadata,
    Column("branch_num", NUM, primary_key=True),
    Column("session", Integer, primary_key=True),  # the part of a Yjs client id that is free
    Column("given_at", BigInteger, nullable=False),  # unix milliseconds
)
"""Session numbers that were given to editors of branches' texts; see `commits.local_state`."""

changes = Table(
    "changes",
    metadata,
    Column("num", NUM, primary_key=True),  # of the sequence of `commits.num`
    Column("branch_num", NUM, nullable=False),
    Column("commit_num", NUM, nullable=False),
    Column("passed_before", BigInteger),  # checkpoints; null where the commit did not stand in the timeline
    Column("passed_after", BigInteger),
    Index("changes_branch", "branch_num", "num"),
    Index("changes_commit", "commit_num", "num"),
)
"""Places of accepted commits that changed: one came back, left, or moved. See `edits`."""

heads = Table(
    "heads",
    metadata,
    Column("topic_num", NUM, primary_key=True),
    Column("commit_id", Bytes(32), primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("rank", BigInteger, nullable=False),
    Column("is_acked", Boolean, nullable=False),
    Index("heads_branch", "branch_num", "commit_id", "is_acked"),
    Index("heads_rank", "branch_num", "is_acked", "rank", "commit_id"),
)
"""Commits that none of the same topic acks. Those that none at all acks are the branch's heads. There may be very many."""

feed_forks = Table(
    "feed_forks",
    metadata,
    Column("branch_num", NUM, primary_key=True),
    Column("commit_id", Bytes(32), primary_key=True),
    Column("author_num", NUM, nullable=False),
    Column("feed_sequence", BigInteger, nullable=False),
)
"""Evidence: commits whose author had used their feed sequence before."""

files = Table(
    "files",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("commit_num", NUM, nullable=False),  # of the commit that added it
    Column("object_id", Bytes(32), nullable=False),
    Column("object_key", Bytes(), nullable=False),  # sealed; empty where the author gave none
    Column("name", String, nullable=False),  # empty where the commit's body names no files
    Column("size", BigInteger),  # as the author says; null where nobody says
    Index("files_name", "branch_num", "name"),
    Index("files_object", "branch_num", "object_id"),
    Index("files_commit", "commit_num"),
    # A list is read in windows; without this index, each window sorts all files of the branch.
    Index("files_branch", "branch_num", "num"),
)

file_removals = Table(
    "file_removals",
    metadata,
    Column("file_num", NUM, primary_key=True),
    Column("commit_num", NUM, primary_key=True),
)
"""Removals of files by commits: a file is there while none of them counts."""

awaited_adders = Table(
    "awaited_adders",
    metadata,
    Column("id_key", BigInteger, primary_key=True),  # of the commit that is awaited
    Column("commit_num", NUM, primary_key=True),
    Column("adder", Bytes(32), primary_key=True),  # whole: others' words, of which two may begin alike
    sqlite_with_rowid=False,
)
"""Commits that remove files of a commit that is not here. Who added them is the author's word: it may come later."""

late_removals = Table(
    "late_removals",
    metadata,
    Column("commit_num", NUM, primary_key=True),
    Column("objects", Bytes(), nullable=False),  # ids of what is removed, 32 bytes each
)
"""Objects that such commits remove: once each, for a commit may name many files and many commits."""

unfetched_files = Table(
    "unfetched_files",
    metadata,
    Column("file_num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Index("unfetched_files_branch", "branch_num", "file_num"),
)
"""Files of this node's user whose content no other node is known to have fetched from here; see `unfetched`."""

spared_files = Table(
    "spared_files",
    metadata,
    Column("file_num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Index("spared_files_branch", "branch_num"),
)
"""Files of others whose content was given up, and comes again when they are opened; see `spared`."""

pending = Table(
    "pending",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("topic_num", NUM, nullable=False),
    Column("id_key", BigInteger, nullable=False),
    Column("commit_id", Bytes(32), nullable=False),  # one row each, but of those not known here
    Column("author_key", BigInteger, nullable=False),  # the key of its author; 0 where that cannot be read
    # "causes", "ready" once these have come, or "version" for a format that is not known here
    Column("reason", String, nullable=False),
    Column("size", BigInteger, nullable=False),  # bytes of the publication
    Column("cause_count", BigInteger, nullable=False),  # causes that it lacked when it came
    Column("lacking", BigInteger, nullable=False),  # causes that it lacks now
    Column("arrived_at", BigInteger, nullable=False, server_default="0"),  # unix milliseconds; 0: not known
    Column("arrival", BigInteger, nullable=False, server_default="0"),  # of the sequence of `commits.num`
    Index("pending_id_key", "id_key"),
    Index("pending_branch", "branch_num"),
    Index("pending_reason", "reason", "num"),
    # With what is summed, so that no row is looked at to tell what a topic or an author has here.
    Index("pending_room", "topic_num", "author_key", "size", "cause_count"),
)
"""Narrow rows, since the causes that come change them; see `commits.pending` and `commits.pending_release`."""

pending_publications = Table(
    "pending_publications",
    metadata,
    Column("pending_num", NUM, primary_key=True),
    Column("publication", Bytes(), nullable=False),
)

pending_causes = Table(
    "pending_causes",
    metadata,
    # Of the cause's id: the id itself would make a row as large as what was sent to cause it.
    Column("id_key", BigInteger, primary_key=True),
    Column("pending_num", NUM, primary_key=True),
    sqlite_with_rowid=False,
)
"""Causes that pending commits wait for. Rows of one cause lie together, and go together."""

rejections = Table(
    "rejections",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("commit_id", Bytes(32), nullable=False, unique=True),
    Column("code", String, nullable=False),
    Column("detail", String, nullable=False),
    Index("rejections_branch", "branch_num"),
)

rejected_givers = Table(
    "rejected_givers",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("commit_id", Bytes(32), nullable=False, unique=True),
    Column("payer", Bytes(), nullable=False),  # whose share of the room it takes
    Column("size", BigInteger, nullable=False),  # bytes of the publication
    Column("publication", Bytes(), nullable=False),
    Index("rejected_givers_branch", "branch_num"),
)
"""Rejected commits that give keys of epochs; see `commits.rejected_givers`."""

sketches = Table(
    "sketches",
    metadata,
    Column("topic", Bytes(32), primary_key=True),
    # Which row the topic is, of which table, and by what it is compared: no other is it.
    Column("place", String, primary_key=True),
    Column("upto", BigInteger, nullable=False),  # number of the last commit in the digest
    Column("digest", Bytes(), nullable=False),  # lanes, see `protocol.session.reconciliation.set_digest`
    Column("prefix", Bytes(), nullable=False),  # see `protocol.session.reconciliation.riblt`
    Column("prefix_upto", BigInteger, nullable=False, server_default="0"),  # as `upto`, of the prefix
)
"""Sketches of large topics, to compare them; see `storage.topics.sketches`."""

sequences = Table(
    "sequences",
    metadata,
    Column("name", String, primary_key=True),
    Column("last", BigInteger, nullable=False),
)
"""Last number given, of tables whose rows were forgotten: exports and connections count on its growing."""

store_seal = Table(
    "store_seal",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("mark", Bytes(32), nullable=False),  # of the store's key
    # Whether nothing is left on the pages of secrets that lay here before they were sealed.
    Column("is_clean", Boolean, nullable=False),
)
"""One row once the store's secrets are sealed."""

imports = Table(
    "imports",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("branch_num", NUM, nullable=False),
    Column("source", String, nullable=False),
    Column("source_id", String, nullable=False),
    Column("commit_id", Bytes(32), nullable=False),
    UniqueConstraint("branch_num", "source", "source_id", name="imports_source_id"),
)
