"""The search index: which commits may have a word. It holds keyed hashes of words, and lists of commits.

A *part* is a stretch of one branch: its rows lie together, its key is its own, and so is the bound of its size. So a new
post changes rows in one place, an erased one is removed by rewriting one part, and a search may begin with the parts whose
posts are newest. Who searches opens what is found, and compares it: the index may say too much. Of commits up to
`IndexState.upto` it leaves out only what is queued, and words beyond the first SEARCH_TEXT_KEYS_MAX keys of a post.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import count
from typing import Final, NewType

from sqlalchemy import Connection, Select, bindparam, delete, func, insert, or_, select, update

from protocol.crypto.hashing import search_part_key, search_word
from protocol.crypto.keys import HashKey
from protocol.ids import CommitId
from protocol.limits.users import SEARCH_PART_COUNT_MAX
from storage.commits.commits import ROWS, TimelineRow, timeline_row
from storage.commits.search_texts import TEXT_KINDS, clear_texts, invalidate_texts
from storage.engine.bulk import change_rows, insert_rows, select_in, select_rows
from storage.engine.column_encryption import BadSecret, cipher_of, search_place
from storage.engine.id_keys import PackedNums, chunks, id_key
from storage.schema.schema import branches, commits, sequences
from storage.schema.search_schema import search_parts, search_queue, search_state, search_words

SEARCHED_KINDS: Final = ("post", "imported", "carried", "files")
"""Kinds of bodies that are indexed."""
PackedPlaces = NewType("PackedPlaces", bytes)
"""Places of commits in a part, 4 bytes each, one after another."""
RULES_UNREADABLE: Final = -1
"""Rules of an index that nobody can read, and that is made anew as one of other rules is."""
_BASE: Final = 1 << 32
"""Numbers that a place can tell apart."""
_STATE: Final = 1
PLACE_SIZE: Final = 4
"""Bytes of a place."""
_LOOKED_THROUGH: Final = 256
"""Commits of any kind among which the next ones are looked for."""
_WORD_COLUMNS: Final = ("part_num", "word", "places")
_FOUND: Final = select(search_words.c.word, search_words.c.places).where(
    search_words.c.part_num == bindparam("part"),
    search_words.c.word.in_(bindparam("keys", expanding=True)),
)
_LONGER: Final = (
    update(search_words)
    .where(search_words.c.part_num == bindparam("part"), search_words.c.word == bindparam("known"))
    .values(places=bindparam("longer"))
)
_PARTS: Final = select(search_parts)
_GROWING: Final = ("first", "last", "oldest", "newest", "size")
"""Columns of a part that change as it grows, in their order."""
_LAST_NUM: Final = select(func.max(search_parts.c.num)).where(search_parts.c.num > 0)
_GROWN: Final = (
    update(search_parts)
    .where(search_parts.c.num == bindparam("number"))
    .values({name: bindparam(f"new_{name}") for name in _GROWING})
)
_BRANCHES: Final = select(branches.c.num).where(branches.c.num.in_(bindparam("keys", expanding=True)))
_LAST_PART: Final = (
    _PARTS.where(search_parts.c.branch_num == bindparam("branch"), search_parts.c.num > 0)
    .order_by(search_parts.c.num.desc())
    .limit(1)
)
_STATES: Final = select(search_state.c.hash_key, search_state.c.upto, search_state.c.rules)
_UPTO: Final = update(search_state).values(upto=bindparam("number"))
_NEXT: Final = (
    select(commits.c.num, commits.c.body_kind, commits.c.branch_num)
    .where(commits.c.num > bindparam("after"))
    .order_by(commits.c.num)
    .limit(bindparam("count"))
)
_QUEUED: Final = select(search_queue.c.commit_num).where(
    search_queue.c.commit_num.between(bindparam("low"), bindparam("high"))
)
_FIRST_QUEUED: Final = (
    select(search_queue.c.commit_num)
    .where(search_queue.c.commit_num <= bindparam("upto"))
    .order_by(search_queue.c.commit_num)
    .limit(bindparam("count"))
)
_ROWS: Final = ROWS.where(commits.c.num.in_(bindparam("keys", expanding=True))).order_by(commits.c.num)
_TIMES: Final = select(commits.c.num, commits.c.display_time).where(
    commits.c.num.in_(bindparam("keys", expanding=True))
)


@dataclass(frozen=True, slots=True)
class IndexState:
    """State of the index. Its key never shows in its repr."""

    key: HashKey = field(repr=False)
    upto: int  # number of the last commit that was looked at
    rules: int


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Part of the index."""

    num: int
    branch_num: int
    base: int
    first: int
    last: int
    oldest: int
    newest: int
    size: int

    @property
    def is_text(self) -> bool:
        """Return True for the part of the branch's text, whose one commit is the text's last."""
        return self.num < 0


@dataclass(frozen=True, slots=True)
class IndexItem:
    """Entry for one commit: its keys, one at least, and the display times at which it may be shown.

    Times are unix milliseconds.
    """

    num: int
    branch_num: int
    oldest: int
    newest: int
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Commit that may have all words of a query."""

    num: int
    shown_at: int  # its display time, unix milliseconds
    relation: str | None
    about: CommitId | None


def load_state(connection: Connection) -> IndexState | None:
    """Load the index's state, or None. If its key cannot be read, its rules are RULES_UNREADABLE."""
    row = select_rows(connection, _STATES).first()
    if row is None:
        return None
    sealed, upto, rules = row
    try:
        key = HashKey(cipher_of(connection).open(search_place(), sealed))
    except BadSecret:
        return IndexState(HashKey(b""), upto, RULES_UNREADABLE)
    return IndexState(key, upto, rules)


def find_index_fault(connection: Connection) -> str:
    """Return what shows at a glance that the index is not of the commits that are here, or ""."""
    row = connection.execute(select(search_state.c.upto)).first()
    if row is None:
        return ""
    given = select(sequences.c.last).where(sequences.c.name == commits.name)  # to commits that are gone
    last = max(
        connection.execute(select(func.max(commits.c.num))).scalar() or 0,
        connection.execute(given).scalar() or 0,
    )
    if row.upto > last:
        return f"it goes up to commit {row.upto}, and the last one is {last}"
    parts = select(search_parts.c.num).where(search_parts.c.num > 0).limit(1)
    words = select(search_words.c.word).limit(1)
    if connection.execute(parts).first() is not None and connection.execute(words).first() is None:
        return "its words are gone"
    return ""


def begin_index(connection: Connection, key: HashKey, rules: int) -> None:
    """Begin an index where there is none."""
    sealed = cipher_of(connection).seal(search_place(), key)
    connection.execute(insert(search_state).values(num=_STATE, hash_key=sealed, upto=0, rules=rules))


def clear_index(connection: Connection) -> bool:
    """Remove the index, one part at a time; return True while anything is left of it. Costs O(part)."""
    connection.execute(delete(search_state))
    connection.execute(delete(search_queue))
    clear_texts(connection)
    part = connection.execute(select(func.min(search_parts.c.num))).scalar()
    if part is None:
        connection.execute(delete(search_words))  # of parts that damage has removed
        return False
    _remove_parts(connection, [part])
    return True


def queue_for_index(connection: Connection, nums: Iterable[int], *, is_gone: bool = False) -> None:
    """Queue commits whose bodies have come or gone, if there is an index. Costs O(nums)."""
    if connection.execute(select(search_state.c.num)).first() is None:
        return
    wanted = sorted(set(nums))
    invalidate_texts(connection, wanted, is_gone=is_gone)
    for some in chunks(wanted):
        connection.execute(delete(search_queue).where(search_queue.c.commit_num.in_(some)))
        connection.execute(insert(search_queue), [{"commit_num": num} for num in some])


@dataclass(frozen=True, slots=True)
class NextCommits:
    """Commits to be indexed: all up to the number `upto`. `queued` are among these, and need no second look."""

    rows: list[TimelineRow]
    upto: int
    queued: list[int]
    is_all: bool
    text_branches: set[int]  # numbers of branches whose texts have grown by these


def load_next(connection: Connection, after: int, limit: int) -> NextCommits:
    """Load the next commits behind a number, at most `limit`."""
    wanted: list[int] = []
    text_branches: set[int] = set()
    upto, seen = after, 0
    for num, kind, branch_num in select_rows(connection, _NEXT, after=after, count=_LOOKED_THROUGH):
        upto, seen = num, seen + 1
        if kind in TEXT_KINDS:
            text_branches.add(branch_num)
        if kind in SEARCHED_KINDS:
            wanted.append(num)
            if len(wanted) == limit:
                break
    is_all = seen < _LOOKED_THROUGH and len(wanted) < limit
    queued = select_rows(connection, _QUEUED, low=after + 1, high=upto).scalars()
    return NextCommits(_load(connection, wanted), upto, queued, is_all, text_branches)


def load_queued(connection: Connection, upto: int, limit: int) -> tuple[list[int], list[TimelineRow]]:
    """Load the first numbers in the queue, all of one branch; and their commits that are here and indexed."""
    nums = select_rows(connection, _FIRST_QUEUED, upto=upto, count=limit).scalars()
    rows = _load(connection, nums)
    others = {row.num for row in rows if row.branch_num != rows[0].branch_num}
    wanted = [row for row in rows if row.num not in others and row.body_kind in SEARCHED_KINDS]
    return [num for num in nums if num not in others], wanted


def load_times(connection: Connection, rows: Sequence[TimelineRow]) -> dict[int, tuple[int, int]]:
    """Load, by number, the lowest and highest display time at which a commit may be shown.

    An edit may be shown at that of its post, too.
    """
    times = dict.fromkeys((row.num for row in rows), (0, 0))
    for some in chunks([row.num for row in rows]):
        found = select_in(connection, _TIMES, some)
        times.update((num, (shown_at, shown_at)) for num, shown_at in found)
    edits = {row.num: row for row in rows if row.relation == "edit" and row.about is not None}
    posts = load_posts(connection, {(row.branch_num, row.about) for row in edits.values() if row.about})
    for num, row in edits.items():
        post = posts.get((row.branch_num, row.about or CommitId(row.commit_id)))
        if post is not None:
            times[num] = (min(times[num][0], post.shown_at), max(times[num][1], post.shown_at))
    return times


@dataclass(frozen=True, slots=True)
class PartChange:
    """Change of one part, to be written."""

    part: IndexPart
    is_new: bool
    longer: list[tuple[PackedPlaces, int, int]]  # the places, the part, the word
    new: list[tuple[int, int, PackedPlaces]]  # the part, the word, its places


def prepare_items(connection: Connection, key: HashKey, items: Sequence[IndexItem]) -> list[PartChange]:
    """Prepare to index commits, each once. Nobody else may write to the index until `write_items`. Costs O(words)."""
    groups: dict[int, list[IndexItem]] = {}
    for item in items:
        groups.setdefault(item.branch_num, []).append(item)
    (last,) = select_rows(connection, _LAST_NUM).scalars()
    numbers = count((last or 0) + 1)
    return [
        change
        for branch_num, of_branch in sorted(groups.items())
        for change in _prepare_branch(connection, key, branch_num, of_branch, numbers)
    ]


def write_items(connection: Connection, changes: Sequence[PartChange]) -> None:
    """Write the prepared changes, without those of deleted branches. Costs O(changes)."""
    here: set[int] = set()
    for some in chunks(sorted({change.part.branch_num for change in changes})):
        here.update(select_in(connection, _BRANCHES, some).scalars())
    for change in changes:
        part = change.part
        if part.branch_num not in here:
            continue
        if change.is_new:
            connection.execute(insert(search_parts).values(asdict(part)))
        else:
            grown = (part.first, part.last, part.oldest, part.newest, part.size)
            change_rows(connection, _GROWN, [(*grown, part.num)])
        change_rows(connection, _LONGER, change.longer)
        insert_rows(connection, search_words, _WORD_COLUMNS, change.new)


def replace_text(connection: Connection, key: HashKey, branch_num: int, item: IndexItem | None) -> None:
    """Index what a branch's text is now, at its last commit; None: it has none. Costs O(words).

    Only words that came or went are written: most changes of a text are small.
    """
    part_num = -branch_num
    query = select(search_words.c.word).where(search_words.c.part_num == part_num)
    known = set(connection.execute(query).scalars())
    part_key = search_part_key(key, part_num)
    words = set() if item is None else {search_word(part_key, word) for word in item.keys}
    for some in chunks(sorted(known - words)):
        gone = (search_words.c.part_num == part_num) & search_words.c.word.in_(some)
        connection.execute(delete(search_words).where(gone))
    place = _pack([0])
    insert_rows(
        connection, search_words, _WORD_COLUMNS, [(part_num, word, place) for word in sorted(words - known)]
    )
    connection.execute(delete(search_parts).where(search_parts.c.num == part_num))
    if item is not None:
        part = IndexPart(
            part_num, branch_num, item.num, item.num, item.num, item.oldest, item.newest, len(words)
        )
        connection.execute(insert(search_parts).values(asdict(part)))


def keep_upto(connection: Connection, upto: int) -> None:
    """Note that all commits up to this number were looked at."""
    change_rows(connection, _UPTO, [(upto,)])


def find_parts(connection: Connection, branch_num: int, nums: Sequence[int]) -> list[IndexPart]:
    """Find parts that may have some of these commits of one branch. Costs O(parts of the branch)."""
    query = _PARTS.where(
        search_parts.c.branch_num == branch_num,
        search_parts.c.num > 0,
        search_parts.c.first <= max(nums),
        search_parts.c.last >= min(nums),
    )
    parts = [IndexPart(*row) for row in connection.execute(query.order_by(search_parts.c.num))]
    return [part for part in parts if any(part.first <= num <= part.last for num in nums)]


def remove_items(connection: Connection, part: IndexPart, nums: Sequence[int]) -> None:
    """Remove commits from a part. Costs O(part), 50 ms: use a transaction for each part."""
    _rewrite(connection, part, {num - part.base for num in nums if part.first <= num <= part.last})


def remove_from_queue(connection: Connection, seen: Mapping[int, PackedNums | None]) -> None:
    """Remove commits from the queue, each with the blocks that it had when looked at, or None.

    One that has changed since stays: it was noted again, and one row stands for both notes.
    """
    for some in chunks(list(seen)):
        query = select(commits.c.num, commits.c.block_nums).where(
            commits.c.num.in_(some), commits.c.body_kind.in_(SEARCHED_KINDS)
        )
        here: dict[int, PackedNums] = {row.num: row.block_nums for row in connection.execute(query)}
        done = [num for num in some if here.get(num) == seen[num]]
        connection.execute(delete(search_queue).where(search_queue.c.commit_num.in_(done)))


def load_parts(
    connection: Connection, branch_nums: Sequence[int], *, since: int, until: int
) -> list[IndexPart]:
    """Load parts of these branches with commits shown between two times (unix ms), newest first.

    Costs O(parts of the branches).
    """
    found: list[IndexPart] = []
    for some in chunks(branch_nums):
        query = _PARTS.where(
            search_parts.c.branch_num.in_(some),
            search_parts.c.newest >= since,
            search_parts.c.oldest <= until,
        )
        found += [IndexPart(*row) for row in connection.execute(query)]
    return sorted(found, key=lambda part: (-part.newest, part.num))


def find_in_parts(
    connection: Connection, key: HashKey, parts: Sequence[IndexPart], words: Collection[str]
) -> list[list[int]]:
    """Find, for each of these parts, the numbers of commits that may have all these words.

    Costs O(parts * words), in one statement.

    One statement for all parts: it takes 0.1 ms, and each word of a part 2 us.
    """
    if not parts:
        return []
    hashes: list[set[int]] = []
    for part in parts:
        part_key = search_part_key(key, part.num)
        hashes.append({search_word(part_key, word) for word in words})
    pairs = [(part.num, word) for part, asked in zip(parts, hashes, strict=True) for word in asked]
    found: dict[int, list[PackedPlaces]] = {part.num: [] for part in parts}
    count = 1 << (len(pairs) - 1).bit_length()  # of few lengths, statements are written once
    values: dict[str, int] = {}
    for number in range(count):
        values[f"part{number}"], values[f"word{number}"] = pairs[min(number, len(pairs) - 1)]
    for part_num, places in select_rows(connection, _pairs_query(count), **values):
        found[part_num].append(places)
    return [_find_all(part, found[part.num], len(asked)) for part, asked in zip(parts, hashes, strict=True)]


@lru_cache(maxsize=16)
def _pairs_query(count: int) -> "Select[tuple[int, PackedPlaces]]":
    """Build the query for so many pairs of part and word. (SQLite reads the whole table for a list of pairs.)"""
    return select(search_words.c.part_num, search_words.c.places).where(
        or_(
            *(
                (search_words.c.part_num == bindparam(f"part{number}"))
                & (search_words.c.word == bindparam(f"word{number}"))
                for number in range(count)
            )
        )
    )


def _find_all(part: IndexPart, lists: list[PackedPlaces], count: int) -> list[int]:
    """Return the numbers of commits that are in all of so many lists."""
    if len(lists) < count:
        return []
    found: set[int] | None = None
    for places in sorted(lists, key=len):
        of_word = _unpack(places)
        found = set(of_word) if found is None else found.intersection(of_word)
        if not found:
            return []
    return [part.base + place for place in found or ()]


def load_candidates(connection: Connection, nums: Sequence[int]) -> list[Candidate]:
    """Load the given commits that are here and not void. Costs O(nums)."""
    found: list[Candidate] = []
    for some in chunks(nums):
        query = _CANDIDATES.where(commits.c.num.in_(some), ~commits.c.is_void)
        found += [Candidate(*row) for row in connection.execute(query)]
    return found


def load_posts(
    connection: Connection, named: Collection[tuple[int, CommitId]]
) -> dict[tuple[int, CommitId], Candidate]:
    """Load commits by branch and id, as far as they are in these branches and not void. Costs O(named)."""
    found: dict[tuple[int, CommitId], Candidate] = {}
    for some in chunks(sorted({id_key(commit_id) for _, commit_id in named})):
        query = _CANDIDATES.add_columns(commits.c.branch_num, commits.c.commit_id)
        for *candidate, branch_num, commit_id in connection.execute(
            query.where(commits.c.id_key.in_(some), ~commits.c.is_void)
        ):
            if (branch_num, commit_id) in named:
                found[branch_num, commit_id] = Candidate(*candidate)
    return found


def measure_progress(connection: Connection, branch_nums: Collection[int] | None = None) -> tuple[int, int]:
    """Return the number up to which commits were looked at, and the highest that there is.

    With `branch_nums`, a few commits of other branches that were not looked at do not count: both are the same then.
    """
    upto = connection.execute(select(search_state.c.upto)).scalar() or 0
    last = connection.execute(select(func.coalesce(func.max(commits.c.num), 0))).scalar_one()
    if branch_nums is not None and upto < last:
        ahead = select(commits.c.branch_num).where(commits.c.num > upto).order_by(commits.c.num)
        some = connection.execute(ahead.limit(_LOOKED_THROUGH)).scalars().all()
        if len(some) < _LOOKED_THROUGH and not set(some).intersection(branch_nums):
            return upto, upto
    return upto, int(last)


# --- steps ---

_CANDIDATES: Final = select(commits.c.num, commits.c.display_time, commits.c.relation, commits.c.about)


def _load(connection: Connection, nums: Sequence[int]) -> list[TimelineRow]:
    """Load the given commits that are stored."""
    cipher = cipher_of(connection)
    return [timeline_row(cipher, row) for some in chunks(nums) for row in select_in(connection, _ROWS, some)]


def _prepare_branch(
    connection: Connection,
    key: HashKey,
    branch_num: int,
    items: Sequence[IndexItem],
    numbers: Iterator[int],
) -> Iterator[PartChange]:
    row = select_rows(connection, _LAST_PART, branch=branch_num).first()
    part = None if row is None else IndexPart(*row)
    is_new = False
    lists: dict[str, list[int]] = {}
    for item in items:
        base = item.num - item.num % _BASE
        if part is None or part.size >= SEARCH_PART_COUNT_MAX or part.base != base:
            if part is not None and lists:
                yield _prepare_part(connection, key, part, lists, is_new=is_new)
            part = IndexPart(next(numbers), branch_num, base, item.num, item.num, item.oldest, item.newest, 0)
            is_new, lists = True, {}
        part = replace(
            part,
            first=min(part.first, item.num),
            last=max(part.last, item.num),
            oldest=min(part.oldest, item.oldest),
            newest=max(part.newest, item.newest),
            size=part.size + len(item.keys),
        )
        place = item.num - base
        for word in item.keys:
            if word in lists:
                lists[word].append(place)
            else:
                lists[word] = [place]
    if part is not None and lists:
        yield _prepare_part(connection, key, part, lists, is_new=is_new)


def _prepare_part(
    connection: Connection, key: HashKey, part: IndexPart, lists: dict[str, list[int]], *, is_new: bool
) -> PartChange:
    part_key = search_part_key(key, part.num)
    hashed: dict[int, list[int]] = {}
    for word, places in lists.items():
        hashed.setdefault(search_word(part_key, word), []).extend(places)  # two words may have one hash
    known: dict[int, PackedPlaces] = {}
    if not is_new:
        for some in chunks(list(hashed)):
            known.update((row[0], row[1]) for row in select_in(connection, _FOUND, some, part=part.num))
    longer = [(PackedPlaces(before + _pack(hashed[word])), part.num, word) for word, before in known.items()]
    # In the order of the key: each lands behind the one before it.
    new = [(part.num, word, _pack(hashed[word])) for word in sorted(hashed.keys() - known.keys())]
    return PartChange(part, is_new, longer, new)


def _rewrite(connection: Connection, part: IndexPart, gone: set[int]) -> None:
    """Take places out of a part; and the part, where nothing is left of it."""
    query = select(search_words.c.word, search_words.c.places).where(search_words.c.part_num == part.num)
    left = 0
    for word, places in connection.execute(query).all():
        before = _unpack(places)
        after = [place for place in before if place not in gone]
        left += len(after)
        row = (search_words.c.part_num == part.num) & (search_words.c.word == word)
        if not after:
            connection.execute(delete(search_words).where(row))
        elif len(after) < len(before):
            connection.execute(update(search_words).where(row).values(places=_pack(after)))
    if left:
        sized = update(search_parts).where(search_parts.c.num == part.num).values(size=left)
        connection.execute(sized)
    else:
        _remove_parts(connection, [part.num])


def _remove_parts(connection: Connection, nums: Sequence[int]) -> None:
    for some in chunks(nums):
        connection.execute(delete(search_words).where(search_words.c.part_num.in_(some)))
        connection.execute(delete(search_parts).where(search_parts.c.num.in_(some)))


def _pack(places: Sequence[int]) -> PackedPlaces:
    return PackedPlaces(struct.pack(f"<{len(places)}I", *places))


def _unpack(packed: PackedPlaces) -> tuple[int, ...]:
    count = len(packed) // PLACE_SIZE  # what damage left of another place is none
    return struct.unpack_from(f"<{count}I", packed)
