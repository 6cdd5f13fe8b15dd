"""Sentences of the commands, and the commands that people need next: one table, in English.

{names} are fields of the answer and arguments of the command (`node.cli.printing.Says`). States have their sentences in
`node.observe.sentences`.
"""

from collections.abc import Mapping
from typing import Any, Final

from node.cli.printing import Says, calendar_text, id_text_shown, is_terminal
from node.observe.sentences import standing_sentence
from node.runtime.language import in_language
from node.runtime.wording import counted, date_text, size_text

_Values = Mapping[str, Any]

_MAY: Final = {
    "none": "You may read what was shared with you.",
    "read": "You may read.",
    "write": "You may write.",
    "manage": "You may write, and manage branches.",
    "admin": "You are an admin.",
    "owner": "You own it.",
}
"""Permission in a repo -> what it lets its holder do."""
_MAY_OF: Final = {
    "none": "nothing",
    "read": "read",
    "write": "write",
    "manage": "manage branches",
    "admin": "let others in and exclude them",
    "owner": "do everything: owner",
}

# --- repos
REPO_CREATED: Final = Says(
    "Created {name}, with a branch called main. You own it.",
    "write {name}:main 'hello'",
    "repo invite {name}",
)


NO_REPOS: Final = Says(
    "There is no repo yet.",
    ("repo create NAME", "begin something"),
    ("repo join -", "paste a link that you were given"),
)


def _joined(values: _Values) -> str:
    name = values["name"] or id_text_shown(values["repo"])
    # Said in the language before its first letter changes, by which it would not be found in the table.
    standing = in_language(
        standing_sentence(values["standing"], calendar_text if is_terminal() else date_text)
    )
    codes = {one["code"] for one in values["standing"]["parts"]}
    if values["permission"] == "joining":
        asked = f"Asked to be let into {name}. The daemon goes on by itself when an admin has answered."
        joining = f"Joining {name}. The daemon goes on by itself when a computer of the link has answered."
        if "vouched" in codes:
            joining = f"Joining {name}. Its newest posts can be read, and the daemon gets the rest by itself."
        return f"{asked if values['asks'] else joining}\n{standing[0].upper()}{standing[1:]}."
    if codes & {"reading", "join_refused", "link_ended"}:
        return f"Following {name}: {standing}."
    coming = " It is coming." if values["standing"]["state"] == "syncing" else ""
    return f"Joined {name}. {_MAY.get(values['permission'], '')}{coming}"


REPO_JOINED: Final = Says(
    _joined, ("repo sync {called}", "wait until all is here"), ("status", "see how it stands")
)


def _following(values: _Values) -> str:
    name = values["name"] or id_text_shown(values["repo"])
    codes = {one["code"] for one in values["standing"]["parts"]}
    if values["commits"] and "reading_branches" in codes:
        return f"Following {name}. You may read it, and are no member."
    if values["commits"] and "reading" in codes:  # the members are known once the root branch is here
        return f"Following {name}. You may read it. A key that was let in is a member once all has come."
    if values["commits"]:
        return f"Following {name}. {_MAY.get(values['permission'], '')}".rstrip()
    return f"Following {name}: no computer of the link has answered yet. The daemon goes on trying."


REPO_FOLLOWED: Final = Says(
    _following, ("repo sync {called}", "wait until all is here"), ("status", "see how it stands")
)


def _forked(values: _Values) -> str:
    carried = sum(one["carried"] for one in values["branches"])
    branches = counted(len(values["branches"]), "branch", "branches")
    said = f"Created {values['name']} from {values['repo_given']}: {branches}, {counted(carried, 'commit')}. You own it."
    if values["files_left"]:
        said += f"\nFiles are not copied: {', '.join(values['files_left'])}."
    return said


REPO_FORKED: Final = Says(
    _forked, ("log {name}:main", "read it"), ("inbox offer BRANCH TARGET", "offer what you write back")
)
NO_MEMBERSHIP: Final = Says("You are a member of no repo here.")
REPO_FORGOTTEN: Final = Says(
    "Deleted {repo_given} from this computer. What others have stays with them, and a member stays one.",
    ("gc", "free the space, once the daemon is stopped"),
)
REPO_RENEWED: Final = Says("Renewed {repo_given}: earlier links open its past, and nothing new.")
MEMBERS_SIGNED: Final = Says(
    "Signed who the members of {repo_given} are, for others to compare.",
    ("repo checkpoints {repo_given}", "see who signed what"),
)
NO_CHECKPOINTS: Final = Says(
    "Nobody has signed who the members are.", ("repo checkpoint REPO", "sign it, as an admin")
)
REPO_LEFT: Final = Says(
    lambda values: f"Left {values['repo_given']}.{_along(values)} What is here stays here.{_staying(values)}",
    ("repo forget {repo_given}", "delete it from this computer"),
)

# --- branches and commits
BRANCH_CREATED: Final = Says("Created the branch {name}.", "write {name} 'hello'")
BRANCH_RENAMED: Final = Says("Renamed {branch_given} to {name}, for all members.")
MAIN_POINTED: Final = Says("`main` means {branch_given} now, for all members.")
BRANCH_FORKED: Final = Says(
    "Created the branch {name}, which continues {branch_given}.", ("log {name} --whole", "read both")
)
BRANCH_ARCHIVED: Final = Says(
    lambda values: (
        f"{values['branch_given']} is listed again, for all members."
        if values["undo"]
        else f"Archived {values['branch_given']} for all members: lists omit it, and it stays writable."
    )
)
BRANCH_ADOPTED: Final = Says(
    lambda values: (
        f"{counted(values['voided'], 'commit')} {'counts' if values['voided'] == 1 else 'count'} again."
    )
)


def _compacted(values: _Values) -> str:
    bodies = f"{counted(values['bodies'], 'body', 'bodies')} ({size_text(values['size'])})"
    if values["dry_run"]:
        return f"Would release {bodies} on all computers. Nothing was written."
    return (
        f"Released {bodies} of {values['branch_given']}. Each computer erases them when it likes: `ravel gc`."
    )


BRANCH_COMPACTED: Final = Says(_compacted)
CHECKPOINT_PROPOSED: Final = Says(
    "Proposed a checkpoint.  {proposal:id}", ("quorum show {repo_short}", "who has to approve of it")
)
TAG_SET: Final = Says("Tagged {commit_given} as {name}.")
TAG_REMOVED: Final = Says("Deleted the tag {name}. Its commit stays.")


def _written(values: _Values) -> str:
    if "posts" in values:
        return f"Written to {values['branch_given']}: {counted(values['posts'], 'post')}."
    where = f"   {values['where']}" if values.get("where") else ""
    return f"Written to {values['branch_given']}.  {id_text_shown(values['commit'])}{where}"


WRITTEN: Final = Says(_written)
REPLIED: Final = Says("Replied.  {commit:id}")
EDITED: Final = Says("Edited.  {commit:id}")
DELETED: Final = Says(
    "Deleted, for good. Members can read it in its history until the branch is compacted.  {commit:id}"
)
HIDDEN: Final = Says("Hidden from all members' timelines. Its history stays readable.")
SHOWN: Final = Says("Shown again.")


def _text_edited(values: _Values) -> str:
    if values["commit"] is None:
        return "Nothing was changed."
    meanwhile = " Others wrote meanwhile: both are in it." if values["merged"] else ""
    return f"Wrote your changes to {values['root']} in {values['branch_given']}.{meanwhile}"


def _pushed(values: _Values) -> str:
    if values["commit"] is None:
        return "Nothing to write: the text has all of it."
    return f"Written to the text of {values['branch_given']}.  {id_text_shown(values['commit'])}"


def _json_put(values: _Values) -> str:
    if not values["commits"]:
        return "Nothing to write: it has that value."
    return f"Put {values['path']}." if values["path"] else "Put the whole document."


TEXT_EDITED: Final = Says(_text_edited)
TEXT_PUSHED: Final = Says(_pushed)
JSON_PUT: Final = Says(_json_put)
JSON_REMOVED: Final = Says("Deleted {path}.")
DOCUMENT_RENAMED: Final = Says(
    lambda values: f"Its title is {values['title']} now." if values["title"] else "It has no title any more."
)
DOCUMENT_HIDDEN: Final = Says("Hidden from the list. Its next write shows it again.")
DOCUMENT_COMPACTED: Final = Says(
    lambda values: (
        f"Wrote its content again, in {counted(len(values['commits']), 'commit')}."
        if values["commits"]
        else "Nothing to write: it is compacted already."
    )
)
MERGED: Final = Says("Merged {carried:commit} into {target}.  {commit:id}")


def _imported(values: _Values) -> str:
    said = f"Imported {counted(values['imported'], 'commit')} into {values['branch_given']}."
    if already := values["already"]:
        said += f" {counted(already, 'commit')} {'was' if already == 1 else 'were'} there already."
    if values.get("cut_parents"):
        said += f"\nLeft out: {counted(values['cut_parents'], 'parent')}, which a shallow clone lacks."
    return said


IMPORTED: Final = Says(_imported, ("log {branch_given}", "read it"))

# --- members
GRANTED: Final = Says(
    lambda values: (
        f"{values['user_given']} may {_MAY_OF[_word(values['permission'])]} in {values['repo_given']} now."
    )
)


def _lowered(values: _Values) -> str:
    may = (
        f"{values['user_given']} may {_MAY_OF[_word(values['keeps'])]} in {values['repo_given']} from now on."
    )
    return f"{may}{_along(values)}{_void_text(values)}{_staying(values)}"


REVOKED: Final = Says(_lowered)


def _excluded(values: _Values) -> str:
    said = f"Excluded {values['user_given']} from {values['repo_given']}."
    return f"{said}{_along(values)}{_void_text(values)}{_staying(values)}"


def _along(values: _Values) -> str:
    count = len(values["devices"])
    return f" {counted(count, 'device')} of the same person went along." if count else ""


def _staying(values: _Values) -> str:
    others = values["other_devices"]
    if not others:
        return ""
    rest = f"ravel member exclude {values['repo_given']} {id_text_shown(others[0])}"
    return f"\nThat person has {counted(len(others), 'other device')}, still a member: {rest}"


EXCLUDED: Final = Says(_excluded)
UNINVITED: Final = Says("Revoked the invitation: nobody joins by it any more.")


def _void_text(values: _Values) -> str:
    count = values["voided"]
    return f" {counted(count, 'commit')} became void or counts again." if count else ""


def _word(value: object) -> str:
    return str(getattr(value, "value", value))


QUORUM_SET: Final = Says(
    lambda values: (
        f"{values['threshold']} of {len(values['signers'])} must approve of checkpoints"
        f"{' and removals' if values['removals'] else ''} in {values['repo_given']}."
    ),
    "quorum show {repo_short}",
)
PROPOSED: Final = Says(
    lambda values: f"Proposed{_for_devices(values['devices'])}.  {id_text_shown(values['proposal'])}",
    ("quorum show {repo_short}", "who has approved"),
)


def _for_devices(devices: list[str]) -> str:
    return f", and the same of {counted(len(devices), 'device')} of that person" if devices else ""


APPROVED: Final = Says(
    lambda values: "Approved: the checkpoint is made." if values["checkpoint"] else "Approved.",
    "quorum show {repo_short}",
)
FINISHED: Final = Says("The checkpoint is made.")

# --- inbox and requests
COMMENTED: Final = Says("Offered your comment. Others see it once an admin has accepted it.  {offer:id}")
COMMENT_EDITED: Final = Says("Offered its new text. Others see it once an admin has accepted it.  {offer:id}")
COMMENT_DELETED: Final = Says("Deleted, for good.")
TRUST_ASKED: Final = Says("Asked. Once an admin accepts, your comments are shown at once.  {offer:id}")
OFFERED: Final = Says(
    "Offered. Members may read the branch from now on; their nodes fetch it once an admin accepts.  {offer:id}"
)
OFFER_ACCEPTED: Final = Says(
    "Accepted: all computers that follow the repo follow the offered branch.",
    "inbox merge {repo_given} {offer_short}",
)
COMMENT_ACCEPTED: Final = Says("Accepted: others see the comment beside the document now.")
TRUST_ACCEPTED: Final = Says("Accepted: comments of this author are shown at once from now on.")
OFFER_REFUSED: Final = Says("Refused.")
_ANSWERS: Final = {"accepted": "is let into", "refused": "was refused in"}
REQUEST_ANSWERED: Final = Says(
    lambda values: (
        f"{values['name'] or id_text_shown(values['user'])} "
        f"{_ANSWERS.get(values['status'], values['status'] + ':')} {values['repo_name']}."
    )
)

# --- people and peers


_ROLES: Final = {
    "": "",
    "yes": " As a relay it keeps what this node follows.",
    "no": " It is no relay, and keeps nothing for this node.",
    "to be asked": " It is to be asked, once connected, to keep what this node follows.",
}


def _peer_added(values: _Values) -> str:
    name = values["name"] or id_text_shown(values["peer"])
    state = "connected" if values["state"] == "connected" else "not connected yet"
    return f"Added {name} at {values['address_given']}: {state}.{_ROLES[values['role']]}"


PETNAME_SET: Final = Says(
    lambda values: (
        f"You call {id_text_shown(values['user'])} {values['name']} now; nobody else sees that."
        if values["name"]
        else f"You have no name of your own for {id_text_shown(values['user'])} any more."
    )
)
PEER_ADDED: Final = Says(_peer_added, ("peer list", "see whether it answers"))
PEER_REMOVED: Final = Says("Removed: this node does not dial it any more.")
PEER_BANNED: Final = Says(
    "Banned {called}: this node neither dials nor serves it.", "peer unban {peer_short}"
)
PEER_UNBANNED: Final = Says("{called} may connect again. `ravel peer add` dials it.")

# --- relays
RELAY_JOINED: Final = Says(
    "{address} keeps for you what this node follows: up to {quota:size}, of which {used:size} are used.",
    ("status", "see when all is there"),
)
TOPIC_PINNED: Final = Says("Pinned: it is never deleted to make room.")
TOPIC_UNPINNED: Final = Says("Unpinned: it may be deleted to make room.")
PEER_ALLOWED: Final = Says("{called} is trusted: its topics are taken.")
PEER_DENIED: Final = Says("{called} is trusted no more. `ravel peer ban` blocks it.")
ACCOUNT_CHANGED: Final = Says("{name} may bring {quota:size} now; {used:size} are used.")
ACCOUNT_REVOKED: Final = Says(
    "Deleted the account {account}. What its nodes brought stays until there is no room."
)


# --- files
def _file_added(values: _Values) -> str:
    if "skipped" in values:
        already = values["already"]
        said = f"Added {counted(values['added'], 'file')}, {size_text(values['bytes'])}."
        if already:  # whose bytes are among those
            said = f"Added {counted(values['added'], 'file')}." if values["added"] else "Nothing is new."
            said += f" {counted(already, 'file')} {'was' if already == 1 else 'were'} there already."
        for one in values["first_skipped"]:
            path = one["path"].replace("\n", "\N{REPLACEMENT CHARACTER}")
            said += f"\nskipped  {path}  ({one['reason']})"
        more = values["skipped"] - len(values["first_skipped"])
        return f"{said}\nskipped  {more} more" if more else said
    size = "" if values["size"] is None else f", {size_text(values['size'])}"
    if values.get("is_new") is False:
        return f"{values['name']}{size}, is in {values['branch_given']} already.  {id_text_shown(values['file'])}"
    return f"Added {values['name']}{size}, to {values['branch_given']}.  {id_text_shown(values['file'])}"


FILE_ADDED: Final = Says(_file_added)
FILE_GOT: Final = Says(
    lambda values: (
        f"{values['path']}, {size_text(values['size'])}"
        + (f" in {counted(values['files'], 'file')}" if "files" in values else "")
    )
)
FILE_REMOVED: Final = Says(
    lambda values: f"Removed {', '.join(values['names'])} from {values['branch_given']} for all members."
)

# --- exports, backups, keys
EXPORTED: Final = Says(
    lambda values: (
        f"Exported {counted(values['added'], 'new commit')}; {counted(values['commits'], 'commit')} in all."
        f"\n{values['path']}"
        + (
            f"\n{counted(values['unjudged_repos'], 'repo')} could not be judged: who is a member cannot be told there."
            if values["unjudged_repos"]
            else ""
        )
    ),
    ("analyze --engine local", "statistics and a report"),
)


def _bundle_written(values: _Values) -> str:
    said = f"Wrote {counted(values['commits'], 'commit')} to {values['path']}, {size_text(values['size'])}."
    if values["left_out"]:
        said += (
            f"\n{counted(values['left_out'], 'commit')} could not be written: damaged here. The daemon asks peers for them; "
            "`ravel status` counts what is left."
        )
    return said


def _bundle_read(values: _Values) -> str:
    lines = [f"Took {counted(values['taken'], 'new commit')} from {values['file_given']}."]
    if values["refused"]:
        lines.append(f"Refused {counted(values['refused'], 'publication')}: the daemon's log says why.")
    if values["left_out"]:
        lines.append(f"Not in it: {counted(values['left_out'], 'commit')}, damaged where it was written.")
    if values["missing"] and values["since"] is not None:
        lines.append(
            f"It needs what came before {date_text(values['since'])}: {counted(values['waiting'], 'commit')} wait. "
            "Read an earlier bundle, or meet a peer."
        )
    elif values["waiting"]:
        lines.append(
            f"{counted(values['waiting'], 'commit')} wait for others, or for keys. Read a bundle with them, or meet a peer."
        )
    if values["unopened"]:
        lines.append(
            f"{counted(values['unopened'], 'commit')} cannot be opened with the keys that are here. Join their repo, or "
            "meet a member who hands you its newest keys; then read the bundle again."
        )
    return "\n".join(lines)


BUNDLE_WRITTEN: Final = Says(_bundle_written, ("bundle read FILE", "what a member does with it"))
BUNDLE_READ: Final = Says(_bundle_read)
BACKED_UP: Final = Says(
    lambda values: (
        f"Backed up to {values['path']}: {size_text(values['size'])}, of which {size_text(values['written'])} are new.\n"
        "Its keys are kept as in the node's folder."
    ),
    ("--home NEW restore {path}", "make the node again"),
)
KEYS_SEALED: Final = Says(
    lambda values: (
        "The keys are sealed "
        + (
            "with a key in the system's keyring."
            if values["protection"] == "keyring"
            else "with the passphrase. If it is lost, only the 24 words help."
        )
        + "".join(f"\nRemoved {one}" for one in values["removed"])
    ),
    ("key words", "the 24 words, to be written on paper"),
)
KEYS_UNSEALED: Final = Says(
    "The keys are kept in the clear: a machine can start the node by itself.", "key seal"
)
KEY_EXPORTED: Final = Says(
    "Wrote your key to {path}.", ("--home NEW init --from-file {path}", "use it on another computer")
)
BUNDLED: Final = Says("Wrote {path}. It holds no secrets.")


def _collected(values: _Values) -> str:
    would = "Would free" if values["dry_run"] else "Freed"
    size = values["erased_size"] + values["block_size"] + values["pack_size"]
    said = f"{would} {size_text(size)}: {counted(values['blocks'], 'block')} and {counted(values['packs'], 'pack')}"
    said += f", and {counted(values['erased'], 'erased body', 'erased bodies')}." if values["erased"] else "."
    if values["shrunk_size"]:
        said += f" The database {'would be' if values['dry_run'] else 'is'} {size_text(values['shrunk_size'])} smaller."
    if values["quarantine_size"] and not values["quarantine_deleted"]:
        said += f"\n{size_text(values['quarantine_size'])} lie in quarantine: `ravel gc --quarantine` deletes them."
    return said


COLLECTED: Final = Says(_collected)


def of_kept_keys(values: _Values) -> str:
    """Say who the node and its user are, and how their keys are kept."""
    kept = {
        "passphrase": "sealed with a passphrase",
        "keyring": "sealed with a key in the system's keyring",
        "none": "kept in the clear",
    }
    return f"The keys are {kept[values['protection']]}.\nuser  {values['user']}\nnode  {values['node']}"


KEYS_SHOWN: Final = Says(of_kept_keys)
