"""`python -m tests.promise`."""

import os
import sys

from tests.promise.mutants import MUTANT, install

HASH_SEED = "0"

if os.environ.get("PYTHONHASHSEED") != HASH_SEED:  # orders of sets of ids follow from it
    os.environ["PYTHONHASHSEED"] = HASH_SEED
    os.execv(sys.executable, [sys.executable, "-m", "tests.promise", *sys.argv[1:]])  # noqa: S606  # itself
if MUTANT in os.environ:
    install(os.environ[MUTANT])

from tests.promise.run import main  # noqa: E402  # after the rule is taken out

sys.exit(main())
