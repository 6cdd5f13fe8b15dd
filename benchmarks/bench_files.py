"""Files added and read back, against a bare loop of the same libraries: hash, cipher and hash, storage included.

python benchmarks/bench_files.py [MiB of the large file] [number of small files] [rounds]

The bare loop does for each leaf what a block needs and nothing else: keyed BLAKE3 (the key), ChaCha20, BLAKE3 of the
ciphertext; when adding it writes the ciphertexts into one file and fsyncs it, when getting it reads them from there.

- *Large*: `FileService.add` and `FileService.open`/`read` as the daemon's API calls them, on a store on disk, in threads;
  content comes in chunks as from a socket, and the add ends when its commit is durable. What is left out is HTTP.
- *Small, together*: what an add of many files at once costs below the API: an object each into one pack, named by commits
  of as many files as one may name, in one transaction; the get lists the branch in windows and reads a window's files in
  one transaction. The bare loop has one file and one fsync.
- *Small, by one request*: `FileService.add_many` takes as many files as a request may have, from chunks as of a socket; then
  the next request follows. Get and bare loop are as above. HTTP is left out here, too: `bench_writes` has it.
- *Small, one by one*: `FileService.add` for each, so a commit and a wait for the disk each; the bare loop has a file and an
  fsync for each.

A virtual machine's disk, and pages that its host has taken back, make single runs up to three times slower. So a file of
the size is written and removed before each run, Ravel and the bare loop take turns, and the best of the rounds counts for
both. What is read was just written: the page cache has it. Memory is what the process needed at most on top of what it had
before the large file's add and get, in the worst round, which is the first.
"""

import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trio
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from sqlalchemy import Connection

from benchmarks.common import STORE_KEY, clock_ms, figure, note, timed
from benchmarks.memory import peak_growth
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.content.files import FileService
from node.ingest.replica import Replica
from node.runtime.blocking import threads, tune_interpreter
from node.sync.hub import Hub
from protocol.crypto.keys import ConvergenceSecret, UserSeed
from protocol.formats.block import Reference
from protocol.formats.content import FileEntry, Files
from protocol.formats.object import ObjectBuilder, ObjectReader
from protocol.ids import BlockId
from protocol.limits.formats import FILE_COUNT_MAX, KIB, LEAF_SIZE, MIB
from protocol.limits.users import FILE_BATCH_COUNT_MAX, FILE_WINDOW_MAX
from ravel.files import encode_head
from storage.blobs.files import load_files
from storage.repos.repos import Branch

_CHUNK_SIZE = 64 * KIB
_SMALL_SIZE = 10 * KIB
_NOISE = os.urandom(MIB)
_SECRET = ConvergenceSecret(os.urandom(32))
_Best = dict[str, float]


def _content(number: int, size: int) -> bytes:
    """Bytes that no other number has."""
    return number.to_bytes(8, "little") + _NOISE[8:size]


def _leaf_sizes(size: int) -> list[int]:
    return [min(LEAF_SIZE, size - start) for start in range(0, size, LEAF_SIZE)]


async def _chunks(size: int) -> AsyncGenerator[bytes]:
    for start in range(0, size, _CHUNK_SIZE):
        yield _content(start, min(_CHUNK_SIZE, size - start))


class _Node:
    """A node without a network, and a branch."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.replica = Replica(folder, STORE_KEY)
        self.author = Author(self.replica, UserSeed(b"b" * 32), clock_ms)
        repo, _ = self.author.founding.create_repo("bench")
        self.branch, _ = self.author.founding.create_branch(repo, "main")
        self.secret = self.replica.writing_epoch(repo).convergence_secret

    def files(self) -> FileService:
        """Return what the API calls; to be made inside trio."""
        return FileService(Hub(self.replica, threads(), clock_ms), self.author, self._find_branch)

    def _find_branch(self, _text: str) -> Branch:
        return self.branch


@contextmanager
def _node(folder: Path) -> Iterator[_Node]:
    node = _Node(folder / "node")
    try:
        yield node
    finally:
        node.replica.close()


# --- the bare loop ---


def _cipher(key: bytes, data: bytes) -> bytes:
    return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(data)


def _encrypt(plaintext: bytes) -> tuple[bytes, bytes, bytes]:
    key = blake3(plaintext, key=_SECRET).digest()
    ciphertext = _cipher(key, plaintext)
    return key, ciphertext, blake3(ciphertext).digest()


def _decrypt(key: bytes, ciphertext: bytes, block_id: BlockId) -> None:
    assert blake3(ciphertext).digest() == block_id
    assert blake3(_cipher(key, ciphertext), key=_SECRET).digest() == key


def _write_bare(path: Path, leaves: Iterator[bytes]) -> list[tuple[bytes, bytes, int]]:
    """Everything into one file, durable; gives key, id and size of each."""
    sealed = []
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for leaf in leaves:
        key, ciphertext, block_id = _encrypt(leaf)
        os.write(handle, ciphertext)
        sealed.append((key, block_id, len(ciphertext)))
    os.fsync(handle)
    os.close(handle)
    return sealed


def _read_bare(path: Path, sealed: list[tuple[bytes, bytes, int]]) -> None:
    handle = os.open(path, os.O_RDONLY)
    for key, block_id, size in sealed:
        _decrypt(key, os.read(handle, size), BlockId(block_id))
    os.close(handle)


def _measure_bare(folder: Path, best: _Best, sizes: list[int]) -> None:
    """One round of the bare loop over leaves of these sizes, and of its cryptography alone."""
    path = folder / "bare"
    _touch(folder, sum(sizes))
    began = time.perf_counter()
    sealed = _write_bare(path, (_content(number, size) for number, size in enumerate(sizes)))
    _keep(best, "bare add", time.perf_counter() - began)
    _keep(best, "bare get", timed(lambda: _read_bare(path, sealed)))
    path.unlink()
    leaves = [_content(0, size) for size in sizes[:1]] * len(sizes)
    began = time.perf_counter()
    for leaf in leaves:
        _encrypt(leaf)
    _keep(best, "crypto", time.perf_counter() - began)


def _measure_bare_singles(folder: Path, best: _Best, count: int) -> None:
    """One round of a file and an fsync for each."""
    place = folder / "bare"
    place.mkdir()
    began = time.perf_counter()
    sealed = [
        _write_bare(place / str(number), iter((_content(number, _SMALL_SIZE),))) for number in range(count)
    ]
    _keep(best, "bare add", time.perf_counter() - began)
    began = time.perf_counter()
    for number, one in enumerate(sealed):
        _read_bare(place / str(number), one)
    _keep(best, "bare get", time.perf_counter() - began)


# --- Ravel ---


async def _add_large(node: _Node, size: int) -> None:
    await node.files().add("main", "large", _chunks(size))


async def _get(node: _Node, name: str, size: int) -> None:
    files = node.files()
    file = await files.open("main", name)
    got = 0
    async for part in files.read(file, 0, file.size):
        got += len(part)
    assert got == size


def _measure_large(folder: Path, best: _Best, size: int) -> None:
    _touch(folder, size)
    with _node(folder) as node, peak_growth() as grown:
        _keep(best, "add", timed(lambda: trio.run(_add_large, node, size)))
        _keep(best, "get", timed(lambda: trio.run(_get, node, "large", size)))
    _keep(best, "memory", grown[0], max)


def _add_together(node: _Node, count: int) -> None:
    added: list[tuple[FileEntry, Reference]] = []
    with node.replica.packs.draft() as draft:
        for number in range(count):
            builder = ObjectBuilder(node.secret, draft.put)
            builder.add(_content(number, _SMALL_SIZE))
            added.append((FileEntry(f"file {number}", builder.size), builder.finish()))
        draft.finish()
        groups = [added[start : start + FILE_COUNT_MAX] for start in range(0, count, FILE_COUNT_MAX)]
        commits = [
            Draft(Files(tuple(entry for entry, _ in group)), files=tuple(file for _, file in group))
            for group in groups
        ]

        def keep(connection: Connection, _written: object) -> None:
            draft.keep(connection)

        node.author.write_many(node.branch, lambda _connection: commits, keep)
        draft.is_kept = True


def _get_together(node: _Node, count: int) -> None:
    got = after = 0
    while got < count:
        with node.replica.database.read() as connection:
            rows = load_files(connection, node.branch.num, after, FILE_WINDOW_MAX)
            after = rows[-1].num
            find = partial(node.replica.packs.find, connection)
            for row in rows:
                assert row.reference is not None
                reader = ObjectReader(row.reference, find, node.secret)
                assert sum(map(len, reader.read(0, reader.size))) == _SMALL_SIZE
        got += len(rows)


def _measure_together(folder: Path, best: _Best, count: int) -> None:
    _touch(folder, count * _SMALL_SIZE)
    with _node(folder) as node:
        _keep(best, "add", timed(lambda: _add_together(node, count)))
        _keep(best, "get", timed(lambda: _get_together(node, count)))


async def _add_singles(node: _Node, count: int) -> None:
    files = node.files()

    async def content(number: int) -> AsyncGenerator[bytes]:
        yield _content(number, _SMALL_SIZE)

    for number in range(count):
        await files.add("main", str(number), content(number))


async def _get_singles(node: _Node, count: int) -> None:
    for number in range(count):
        await _get(node, str(number), _SMALL_SIZE)


async def _add_batches(node: _Node, count: int) -> None:
    files = node.files()
    for start in range(0, count, FILE_BATCH_COUNT_MAX):
        numbers = range(start, min(start + FILE_BATCH_COUNT_MAX, count))
        await files.add_many("main", _body_of(numbers))


async def _body_of(numbers: range) -> AsyncGenerator[bytes]:
    waiting = bytearray()
    for number in numbers:
        waiting += encode_head(f"file {number}", _SMALL_SIZE) + _content(number, _SMALL_SIZE)
        while len(waiting) >= _CHUNK_SIZE:
            yield bytes(waiting[:_CHUNK_SIZE])
            del waiting[:_CHUNK_SIZE]
    yield bytes(waiting)


def _measure_batches(folder: Path, best: _Best, count: int) -> None:
    _touch(folder, count * _SMALL_SIZE)
    with _node(folder) as node:
        _keep(best, "add", timed(lambda: trio.run(_add_batches, node, count)))
        _keep(best, "get", timed(lambda: _get_together(node, count)))


def _measure_singles(folder: Path, best: _Best, count: int) -> None:
    with _node(folder) as node:
        _keep(best, "add", timed(lambda: trio.run(_add_singles, node, count)))
        _keep(best, "get", timed(lambda: trio.run(_get_singles, node, count)))


# --- rounds and figures ---


def _touch(folder: Path, size: int) -> None:
    """Have the machine hold as many pages as the run will need, for Ravel and for the bare loop alike."""
    path = folder / "pages"
    with path.open("wb") as file:
        for leaf_size in _leaf_sizes(size):
            file.write(_NOISE[:leaf_size])
    path.unlink()


def _keep(best: _Best, name: str, value: float, better: Callable[[float, float], float] = min) -> None:
    note(f"{name}: {value:.3f}")
    best[name] = better(best.get(name, value), value)


def _measure(rounds: int, *runs: Callable[[Path, _Best], None]) -> _Best:
    """Return the best of the rounds, in seconds, of runs that take turns; each has an empty folder."""
    best: _Best = {}
    for number in range(rounds):
        for run in runs:
            with tempfile.TemporaryDirectory() as name:
                run(Path(name), best)
        note(f"round {number + 1} of {rounds}")
    return best


def _show(kind: str, best: _Best, amount: float, unit: str, goal: float | None, **more: object) -> None:
    for verb in ("add", "get"):
        name = f"file_{verb}_{kind}"
        figure(name, amount / best[verb], unit, **more)
        extra = {} if goal is None else {"goal": goal}
        figure(f"{name}_to_bare", best[f"bare {verb}"] / best[verb], "ratio", **extra)
        if "crypto" in best:
            figure(f"{name}_to_crypto", best["crypto"] / best[verb], "ratio")
    if "memory" in best:
        figure(f"file_{kind}_memory", best["memory"], "MiB", goal=64)


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    given = [int(text) for text in sys.argv[1:]]
    large, count, rounds = [*given, *(1024, 10_000, 5)[len(given) :]]
    size, single_count = large * MIB, max(count // 20, 1)
    best = _measure(
        rounds,
        lambda folder, best: _measure_large(folder, best, size),
        lambda folder, best: _measure_bare(folder, best, _leaf_sizes(size)),
    )
    _show("large", best, large / KIB, "GiB/s", 0.5, mebibytes=large)
    best = _measure(
        rounds,
        lambda folder, best: _measure_together(folder, best, count),
        lambda folder, best: _measure_bare(folder, best, [_SMALL_SIZE] * count),
    )
    _show("small_together", best, count, "files/s", 0.25, files=count)
    best = _measure(
        rounds,
        lambda folder, best: _measure_batches(folder, best, count),
        lambda folder, best: _measure_bare(folder, best, [_SMALL_SIZE] * count),
    )
    _show("small_batch", best, count, "files/s", 0.25, files=count)
    best = _measure(
        rounds,
        lambda folder, best: _measure_singles(folder, best, single_count),
        lambda folder, best: _measure_bare_singles(folder, best, single_count),
    )
    _show("small_single", best, single_count, "files/s", None, files=single_count)


if __name__ == "__main__":
    main()
