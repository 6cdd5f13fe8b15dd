"""Scopes of tokens: kinds of action, and the repo or branch that is the target of each.

An endpoint states its `scopes`; a token has `actions`, and the repos and branches that are its targets. No action includes
another, so that an app which only writes cannot read.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ravel.types.values import Action

ACTIONS: Final[tuple[Action, ...]] = ("read", "write", "manage", "admin", "node", "metrics")
"""Actions that a token may have. docs/apps/tokens.md says what each allows."""
OF_THE_NODE: Final[frozenset[Action]] = frozenset({"node", "metrics"})
"""Actions whose target is the whole node: a token for some repos or branches has neither."""

TargetKind = Literal[
    "repo",
    "branch",
    "repo of branch",
    "commit",
    "branches",
    "repos",
    "readable",
    "all repos",
    "node",
    "person",
    "home",
]
"""Target of a scope.

- `repo`, `branch`, `commit`: what the request names in a field of that name, or in the scope's own; of a commit, its branch.
- `repo of branch`: the whole repo of the branch that the request names.
- `branches`: a list of branches of the repo that the request names. A token gets those that it is for.
- `repos`: a list of repos. A token gets those that it is for.
- `readable`: branches of any repo. The handler looks at those that a token is for, as if there were no others.
- `all repos`: repos that the request does not name. A token that is for some repos is refused.
- `node`: the node itself. A token with this action is never for some repos only.
- `person`: the node's own token, or that of a page: who has one is the person of this node, and no app. What can give its
  caller more than the token itself, and for longer, is about the person.
- `home`: the node's own token, in its folder. No other token is enough, whatever it may.
"""


@dataclass(frozen=True, slots=True)
class TokenScope:
    """One scope that a token needs to call an endpoint.

    `field`: the part of the path, or the field of the body, that names the target.
    """

    action: Action
    target: TargetKind
    field: str = ""

    def __str__(self) -> str:
        """Return the text of the reference pages: `read` in `source`."""
        where = _WHERE[self.target].format(field=self.field)
        return _WHOSE.get(self.target) or f"`{self.action}`{where}"


_WHERE: Final[dict[TargetKind, str]] = {
    "repo": " in `{field}`",
    "branch": " in `{field}`",
    "repo of branch": " in the repo of `{field}`",
    "commit": " in the branch of `{field}`",
    "branches": " in `{field}`, of which a token for single branches gets those",
    "repos": ", of which a token gets its own repos",
    "readable": ", of which a token gets what is in its own repos and branches",
    "all repos": " in all repos",
    "node": "",
    "person": "",
    "home": "",
}
_WHOSE: Final[dict[TargetKind, str]] = {"person": "the node's own or a page's", "home": "the node's own"}


ANY_TOKEN: Final[tuple[TokenScope, ...]] = ()
"""Scopes of what every valid token may do: nothing of a repo or of the node is shown or changed."""
HOME_ONLY: Final = (TokenScope("node", "home"),)
PERSON: Final = (TokenScope("node", "person"),)
NODE: Final = (TokenScope("node", "node"),)
READ_LISTS: Final = (TokenScope("read", "repos"),)
READ_ANY: Final = (TokenScope("read", "readable"),)
READ_REPO: Final = (TokenScope("read", "repo", "repo"),)
READ_BRANCHES: Final = (TokenScope("read", "branches", "repo"),)
READ_BRANCH: Final = (TokenScope("read", "branch", "branch"),)
READ_COMMIT: Final = (TokenScope("read", "commit", "commit"),)
WRITE_COMMIT: Final = (TokenScope("write", "commit", "commit"),)
WRITE_REPO: Final = (TokenScope("write", "repo", "repo"),)
WRITE_BRANCH: Final = (TokenScope("write", "branch", "branch"),)
MANAGE_REPO: Final = (TokenScope("manage", "repo", "repo"),)
MANAGE_BRANCH: Final = (TokenScope("manage", "branch", "branch"),)
ADMIN_REPO: Final = (TokenScope("admin", "repo", "repo"),)
ADMIN_BRANCH: Final = (TokenScope("admin", "branch", "branch"),)
ADMIN_COMMIT: Final = (TokenScope("admin", "commit", "commit"),)
ADMIN_ALL: Final = (TokenScope("admin", "all repos"),)
