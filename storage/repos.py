"""Repos and branches of this node, with the secrets that open them, and the addresses of peers."""

from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, Row, delete, insert, select, update

from protocol import hashing, signing
from storage.database import Database
from storage.schema import branches, imports, peers, repos
from verifier.facts import BranchFacts


@dataclass(frozen=True, slots=True)
class Repo:
    """A repo that this node can open. Secrets never show in its repr."""

    num: int
    repo_id: bytes
    name: str
    init_id: bytes
    init_key: bytes = field(repr=False)
    read_secret: bytes = field(repr=False)
    write_secret: bytes | None = field(repr=False)
    invitation: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch with everything that opens it, derived from the repo's secrets."""

    num: int
    repo_num: int
    name: str
    generation: int
    topic: bytes
    commit_count: int  # accepted ones
    void_count: int  # of these
    is_archived: bool
    facts: BranchFacts
    convergence_secret: bytes = field(repr=False)
    read_key: bytes = field(repr=False)
    topic_seed: bytes | None = field(repr=False)

    @property
    def branch_id(self) -> bytes:
        """The branch's id."""
        return self.facts.branch_id


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer's key and where it was last known to listen; `is_dialed` when this node keeps a connection to it."""

    peer: bytes
    address: str
    is_dialed: bool


def topic_seed(
    repo_id: bytes, read_secret: bytes, write_secret: bytes | None, branch_id: bytes, generation: int
) -> bytes | None:
    """Seed of a branch's topic, or None where only a writer could derive it."""
    if branch_id == repo_id:
        return hashing.root_topic_seed(read_secret, repo_id)
    return None if write_secret is None else hashing.branch_topic_seed(write_secret, branch_id, generation)


def add_repo(database: Database, connection: Connection, repo: Repo) -> Repo:
    """Store a repo and its root branch; gives it with its number. A repo already here gets the secrets it lacked."""
    existing = connection.execute(select(repos).where(repos.c.repo_id == repo.repo_id)).first()
    if existing:
        old = _repo(existing)
        merged = replace(
            old,
            write_secret=old.write_secret or repo.write_secret,
            invitation=repo.invitation or old.invitation,
        )
        connection.execute(
            update(repos)
            .where(repos.c.num == old.num)
            .values(write_secret=merged.write_secret, invitation=merged.invitation)
        )
        return merged
    num = database.next_nums(connection, repos, 1)[0]
    connection.execute(
        insert(repos).values(
            num=num,
            repo_id=repo.repo_id,
            name=repo.name,
            init_id=repo.init_id,
            init_key=repo.init_key,
            read_secret=repo.read_secret,
            write_secret=repo.write_secret,
            invitation=repo.invitation,
        )
    )
    topic = signing.public_key(hashing.root_topic_seed(repo.read_secret, repo.repo_id))
    add_branch(database, connection, num, repo.repo_id, "root", 0, topic, repo.init_id)
    return replace(repo, num=num)


def add_branch(
    database: Database,
    connection: Connection,
    repo_num: int,
    branch_id: bytes,
    name: str,
    generation: int,
    topic: bytes,
    root_id: bytes,
) -> None:
    """Store a branch; one that is there already stays as it is, and nobody takes over a topic that is followed."""
    same = ((branches.c.repo_num == repo_num) & (branches.c.branch_id == branch_id)) | (
        branches.c.topic == topic
    )
    if connection.execute(select(branches.c.num).where(same)).first():
        return
    connection.execute(
        insert(branches).values(
            num=database.next_nums(connection, branches, 1)[0],
            repo_num=repo_num,
            branch_id=branch_id,
            name=name,
            generation=generation,
            topic=topic,
            root_id=root_id,
            commit_count=0,
        )
    )


def name_branch(connection: Connection, branch_num: int, name: str, *, is_archived: bool) -> None:
    """Show a branch under another name, or as archived."""
    connection.execute(
        update(branches).where(branches.c.num == branch_num).values(name=name, is_archived=is_archived)
    )


def rename_repo(connection: Connection, repo_num: int, name: str) -> None:
    """Give a repo the name that its init commit says."""
    connection.execute(update(repos).where(repos.c.num == repo_num).values(name=name))


def keep_write_secret(connection: Connection, repo_num: int, write_secret: bytes) -> None:
    """Keep the write secret of a repo that this node could only read."""
    connection.execute(
        update(repos)
        .where(repos.c.num == repo_num, repos.c.write_secret.is_(None))
        .values(write_secret=write_secret)
    )


def finish_join(connection: Connection, repo_num: int) -> None:
    """Forget the invitation of a repo whose join was accepted."""
    connection.execute(update(repos).where(repos.c.num == repo_num).values(invitation=None))


def load_repos(connection: Connection) -> list[Repo]:
    """All repos, oldest first."""
    return [_repo(row) for row in connection.execute(select(repos).order_by(repos.c.num))]


def load_branches(connection: Connection) -> list[Branch]:
    """All branches of all repos, oldest first, with their secrets derived."""
    by_num = {repo.num: repo for repo in load_repos(connection)}
    rows = connection.execute(select(branches).order_by(branches.c.num))
    return [_branch(row, by_num[row.repo_num]) for row in rows]


def load_peers(connection: Connection) -> list[PeerRow]:
    """All peers whose address is known."""
    return [
        PeerRow(*row) for row in connection.execute(select(peers.c.peer, peers.c.address, peers.c.is_dialed))
    ]


def keep_peer(connection: Connection, peer: bytes, address: str) -> None:
    """Keep a peer to be dialed, with its newest address."""
    connection.execute(delete(peers).where(peers.c.peer == peer))
    connection.execute(insert(peers).values(peer=peer, address=address, is_dialed=True))


def forget_peer(connection: Connection, peer: bytes) -> None:
    """Forget a peer."""
    connection.execute(delete(peers).where(peers.c.peer == peer))


def load_imported(
    connection: Connection, branch_num: int, source: str, source_ids: list[str]
) -> dict[str, bytes]:
    """Commit ids of those of these items that were imported from `source` before."""
    query = select(imports.c.source_id, imports.c.commit_id).where(
        imports.c.branch_num == branch_num, imports.c.source == source, imports.c.source_id.in_(source_ids)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def keep_imported(
    database: Database, connection: Connection, branch_num: int, source: str, items: dict[str, bytes]
) -> None:
    """Remember which commit each imported item became."""
    nums = database.next_nums(connection, imports, len(items))
    rows = [
        {
            "num": num,
            "branch_num": branch_num,
            "source": source,
            "source_id": source_id,
            "commit_id": commit_id,
        }
        for num, (source_id, commit_id) in zip(nums, items.items(), strict=True)
    ]
    if rows:
        connection.execute(insert(imports), rows)


def _repo(row: Row[tuple[object, ...]]) -> Repo:
    return Repo(**row._mapping)


def _branch(row: Row[tuple[object, ...]], repo: Repo) -> Branch:
    facts = BranchFacts(repo.repo_id, repo.init_id, row.branch_id, row.root_id)
    secret = hashing.branch_secret(repo.read_secret, row.branch_id, row.generation)
    seed = topic_seed(repo.repo_id, repo.read_secret, repo.write_secret, row.branch_id, row.generation)
    return Branch(
        num=row.num,
        repo_num=repo.num,
        name=row.name,
        generation=row.generation,
        topic=row.topic,
        commit_count=row.commit_count,
        void_count=row.void_count,
        is_archived=row.is_archived,
        facts=facts,
        convergence_secret=hashing.convergence_secret(repo.read_secret),
        read_key=hashing.branch_read_key(secret),
        topic_seed=seed,
    )
