"""`python -m tests.promise`."""

import os
import sys

from tests.promise.hash_seed import restart_with_hash_seed
from tests.promise.mutants import MUTANT, install

restart_with_hash_seed()
if MUTANT in os.environ:
    install(os.environ[MUTANT])

from tests.promise.run import main  # noqa: E402  # after the rule is taken out

sys.exit(main())
