"""Leaves out one rule after another, and counts how many histories it takes until that shows.

A mutant is the judge with one piece of its text replaced. Histories in which its verdicts are no longer those of the judge
tell that tests of this kind guard the rule.
"""

import importlib
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from . import bodies, codec, crypto
from .comparing import differences

HERE = Path(__file__).parent
# Not mutated, so that what they remember serves all mutants.
SHARED = {"bodies": bodies, "codec": codec, "crypto": crypto}

HEAD = re.compile(r"^== (\w+): (.*)\n", re.MULTILINE)


def mutants():
    """The mutants of `mutants.txt`: module, rule, a piece of the module's text, and what stands there instead.

    Each begins with a line `== module: rule`; a line `--` parts the two pieces.
    """
    _, *parts = HEAD.split((HERE / "mutants.txt").read_text())
    for module, rule, pieces in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        old, new = pieces.split("\n--\n")
        yield module, rule, old, new.removesuffix("\n")


def mutant_judge(folder, name, module, old, new):
    """The judge of a mutant, imported from a copy."""
    shutil.copytree(HERE, folder / name, ignore=shutil.ignore_patterns("js", "__pycache__"))
    path = folder / name / f"{module}.py"
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))
    sys.modules |= {f"{name}.{shared}": module for shared, module in SHARED.items()}
    return importlib.import_module(f"{name}.judge").judge


def shows(judge, history):
    """Whether a judge comes to another result than a history expects, or to none."""
    try:
        return bool(differences(history["expect"], judge(history)))
    except (Exception, RecursionError):  # whatever a judge without a rule runs into
        return True


def table(named, random):
    """Of each mutant, the number of the first named history in which it shows, and of the first random one."""
    with TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for number, (module, rule, old, new) in enumerate(mutants()):
            judge = mutant_judge(Path(folder), f"mutant{number}", module, old, new)
            yield (
                rule,
                *(
                    next((place for place, history in enumerate(histories, 1) if shows(judge, history)), None)
                    for histories in (named, random)
                ),
            )
        sys.path.remove(folder)
