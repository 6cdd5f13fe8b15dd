"""What a token needs to call an endpoint: kinds of action, and the repo or branch that each is about.

An entry of the table states its `needs`; a token states what it `may` and where. No action includes another, so that an
app which only writes cannot read.
"""

from dataclasses import dataclass
from typing import Final, Literal

Action = Literal["read", "write", "manage", "admin", "node", "metrics"]
ACTIONS: Final[tuple[Action, ...]] = ("read", "write", "manage", "admin", "node", "metrics")
"""What tokens may be given. docs/apps/tokens.md says what each allows."""
OF_THE_NODE: Final[frozenset[Action]] = frozenset({"node", "metrics"})
"""Actions that are about the whole node: a token for some repos or branches has neither."""

About = Literal[
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
"""What a need is about.

- `repo`, `branch`, `commit`: what the request names in a field of that name, or in the need's own; of a commit, its branch.
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
class Need:
    """One thing that a token needs. `field`: the part of the path, or the field of the body, that names the target."""

    action: Action
    about: About
    field: str = ""

    def __str__(self) -> str:
        """As documents state it: `read` in `source`."""
        where = _WHERE[self.about].format(field=self.field)
        return _WHOSE.get(self.about) or f"`{self.action}`{where}"


_WHERE: Final[dict[About, str]] = {
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
_WHOSE: Final[dict[About, str]] = {"person": "the node's own or a page's", "home": "the node's own"}


ANY_TOKEN: Final[tuple[Need, ...]] = ()
"""Needs of what every valid token may do: nothing of a repo or of the node is shown or changed."""
HOME_ONLY: Final = (Need("node", "home"),)
PERSON: Final = (Need("node", "person"),)
NODE: Final = (Need("node", "node"),)
READ_LISTS: Final = (Need("read", "repos"),)
READ_ANY: Final = (Need("read", "readable"),)
READ_REPO: Final = (Need("read", "repo", "repo"),)
READ_BRANCHES: Final = (Need("read", "branches", "repo"),)
READ_BRANCH: Final = (Need("read", "branch", "branch"),)
READ_COMMIT: Final = (Need("read", "commit", "commit"),)
WRITE_COMMIT: Final = (Need("write", "commit", "commit"),)
WRITE_REPO: Final = (Need("write", "repo", "repo"),)
WRITE_BRANCH: Final = (Need("write", "branch", "branch"),)
MANAGE_REPO: Final = (Need("manage", "repo", "repo"),)
MANAGE_BRANCH: Final = (Need("manage", "branch", "branch"),)
ADMIN_REPO: Final = (Need("admin", "repo", "repo"),)
ADMIN_BRANCH: Final = (Need("admin", "branch", "branch"),)
ADMIN_COMMIT: Final = (Need("admin", "commit", "commit"),)
ADMIN_ALL: Final = (Need("admin", "all repos"),)
