"""Make histories with what becomes of them, and compare what others make of them.

python -m tests.verdicts --named [--write FILE]                    the named histories
python -m tests.verdicts --count 20000 --seed 1 [--write FILE]     random ones
python -m tests.verdicts --check FILE                              those of a file
python -m tests.verdicts --vectors                                 write tests/vectors/verdicts.json.gz
python -m tests.verdicts --count 1000 --mutants                    leave out one rule after another, and see what shows

Each is judged in Python; with --js also in JavaScript, with --product N every N-th by Ravel itself. The exit status is 1
where anything differs. A random history is named by its number, which tells it again: --seed gives the first million.
"""

import argparse
import gc
import json
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from .comparing import differences, differing_in_js
from .histories import named, random_history, write_vectors
from .judge import judge
from .mutants import table

AT_ONCE = 1000
JUDGES_BESIDE = 2  # in JavaScript, each with a batch: what one of them does takes twice as long as to make it


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--check")
    parser.add_argument("--write")
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--js", action="store_true")
    parser.add_argument("--orders", type=int, default=3, help="of arrival, in JavaScript")
    parser.add_argument(
        "--product", type=int, default=0, help="a multiple of ten, where histories are random"
    )
    asked = parser.parse_args()
    if asked.product % 10:
        parser.error("--product: a multiple of ten; others meet histories that Ravel is not told whole")
    if asked.js and shutil.which("node") is None:
        sys.exit("the judge in JavaScript needs Node.js 20, and `node` is not here")
    if asked.vectors:
        write_vectors()
        return
    # Histories make many small objects and few cycles: collecting now and then is enough.
    gc.disable()
    began, count, said, kept = time.monotonic(), 0, [], []
    histories = map(random_history, range(asked.seed * 1_000_000, asked.seed * 1_000_000 + asked.count))
    if asked.mutants:
        gc.enable()  # each judge leaves graphs behind
        all_named = list(named())
        print(
            f"| rule | of {len(all_named)} named ones the | of {asked.count} random ones the |\n|---|---|---|"
        )
        for rule, *first in table(all_named, list(histories)):
            print(f"| {rule} | {first[0] or 'none'} | {first[1] or 'none'} |", flush=True)
        return
    if asked.named:
        histories = named()
    elif asked.check:
        histories = json.loads(Path(asked.check).read_text())["histories"]
        said += (
            f"{one['name']}: {line}" for one in histories for line in differences(one["expect"], judge(one))
        )
    iterator = iter(histories)
    with ThreadPoolExecutor(JUDGES_BESIDE) as beside:
        answers = []

        def give_to_judges():
            """Make histories and give them to the judge in JavaScript; those for Ravel come out."""
            nonlocal count
            while part := list(islice(iterator, AT_ONCE)):
                count += len(part)
                gc.collect()
                kept.extend(part if asked.write else [])
                if asked.js:
                    answers.append(beside.submit(differing_in_js, part, asked.orders))
                yield from part[:: asked.product] if asked.product else ()
                while len(answers) > 2 * JUDGES_BESIDE:
                    said.extend(answers.pop(0).result())

        said += in_product(give_to_judges())
        for answer in answers:
            said += answer.result()
    if asked.write:
        lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in kept)
        Path(asked.write).write_text(f'{{"histories": [\n{lines}\n]}}\n')
    for line in said:
        print(line)
    print(f"{count} histories, {len(said)} differences, {time.monotonic() - began:.0f} s")
    sys.exit(1 if said else 0)


def in_product(histories):
    """What Ravel says of histories on which it differs. All are asked for one after the other."""
    first = next(histories, None)
    if first is None:
        return []
    # Only here, and where that is asked, since it takes seconds.
    from tests.support.stores import share_compiled_statements, use_memory_for_files
    from tests.support.verdict_replica import differing_in_replica

    use_memory_for_files()
    share_compiled_statements()
    with TemporaryDirectory() as folder:
        return list(differing_in_replica(chain([first], histories), Path(folder)))


if __name__ == "__main__":
    main()
