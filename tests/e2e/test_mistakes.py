"""Mistakes that people make: each is refused with what is wrong and what to do next, and nothing is lost.

The commands run in this process, against two daemons that all of them share.
"""

import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from node.cli import main as main_module
from tests.e2e.cluster import Peer, peers, run_ravel, until, until_equal
from tests.support.processes import run_command

pytestmark = [pytest.mark.slow, pytest.mark.extended]
Words = tuple[str, ...]

# What the mistake is -> words after `ravel`, exit code, a part of the message, a part of the advice. Names in braces are
# values of `_values`. A word that begins with "bob:" is the first one of a command on the second node.
MISTAKES: dict[str, tuple[Words, int, str, str]] = {
    # --- names
    "a repo without a name": (("repo", "create", ""), 3, "name is empty", "give one"),
    "a huge name": (("repo", "create", "x" * 300), 3, "more than 255", "bounds"),
    "a name with a colon": (("repo", "create", "a:b"), 3, "no colon", "another name"),
    "a name of two lines": (("repo", "create", "a\nb"), 3, "U+000A", "another name"),
    "a name that is there": (("repo", "create", "notes"), 6, "there is a repo", "another name"),
    "a branch mistyped": (("write", "mian", "x"), 4, "did you mean 'main'", "branch list"),
    "a repo mistyped": (("write", "nots:main", "x"), 4, "did you mean 'notes'", "repo list"),
    "a default repo mistyped": (("use", "nots"), 4, "did you mean 'notes'", "repo list"),
    "an ambiguous branch": (("write", "main", "x"), 5, "notes:main", "ravel use"),
    "a branch in no repo": (("log", "nosuch:main"), 4, "no repo is called 'nosuch'", "repo list"),
    "a person unknown": (("member", "exclude", "notes", "Zoe", "--yes"), 4, "no member is called 'Zoe'", "member list"),
    "a right for somebody unknown": (("member", "grant", "notes", "Zoe", "admin"), 4, "'Zoe'", "ravel id"),
    "a petname for nobody": (("name", "Zoe", "Zed"), 4, "'Zoe'", "whole id"),
    "a name that rings a bell": (("me", "--name", "a\x07b"), 3, "U+0007", "another name"),
    "a huge name of mine": (("me", "--name", "x" * 500), 3, "more than 256", "bounds"),
    # --- links
    "no link": (("repo", "join", ""), 8, "starts with ravel:", "whole"),
    "an address of the web": (("repo", "join", "https://example.org/x"), 8, "starts with ravel:", "whole"),
    "half a link": (("bob:repo", "join", "{half}"), 8, "missing or altered", "whole"),
    "a letter wrong": (("bob:repo", "join", "{altered}"), 8, "missing or altered", "whole"),
    "an invitation to follow": (("bob:repo", "follow", "{link}"), 8, "a bearer link", "repo join"),
    "a link that asks to follow": (("bob:repo", "follow", "{ask}"), 8, "a link that asks", "repo join"),
    "a capability to join": (("bob:repo", "join", "{capability}"), 8, "a read capability", "repo follow"),
    "a branch's capability to join": (("bob:repo", "join", "{branch}"), 8, "a branch's capability", "repo follow"),
    "an invitation for a device": (("bob:device", "join", "{link}"), 8, "a bearer link", "device join"),
    "asking as a member": (("bob:repo", "join", "{ask}"), 6, "you are a member of notes", "repo list"),
    "a link of no time": (("repo", "invite", "notes", "--expires", "soon"), 3, "not a time", "30m"),
    "a link for this machine": (("repo", "invite", "notes"), 10, "this machine only", "network.listen"),
    "a link that is none": (("member", "uninvite", "notes", "zzzz", "--yes"), 4, "no invitation", "invitations"),
    "a request that is none": (("requests", "accept", "notes", "zzzz"), 4, "no request", "requests list"),
    # --- what is not there
    "a key that is not there": (("dict", "rm", "notes:main", "zz"), 4, "no key 'zz'", "dict list"),
    "an item that is not there": (("set", "rm", "notes:main", "zz", "yy"), 4, "'zz', 'yy'", "set list"),
    "nothing to import": (("import", "jsonl", "/dev/null", "--branch", "notes:main"), 18, "nothing in it", "has something"),
    # --- posts
    "an empty post": (("write", "notes:main", ""), 3, "empty", "quotes"),
    "an empty edit": (("edit", "{post}", " "), 3, "empty", "quotes"),
    "another's post, edited": (("bob:edit", "{post}", "mine"), 7, "only its author", "post hide"),
    "another's post, deleted": (("bob:delete", "{post}", "--yes"), 7, "only its author", "post hide"),
    "a post hidden without the right": (("bob:post", "hide", "{post}"), 7, "needs admin", "ask an admin"),
    "a deleted post, edited": (("edit", "{deleted}", "again"), 3, "final", "write a new post"),
    "a deleted post, deleted": (("delete", "{deleted}", "--yes"), 3, "final", "write a new post"),
    "a reply to nothing": (("reply", "zzzzzzzz", "hm"), 4, "no commit", "ravel log"),
    "what is no post, edited": (("edit", "{set}", "x"), 3, "its kind is 'set'", "ravel log"),
    "why of nothing": (("why", "zzzzzzzz"), 4, "no commit", "ravel log"),
    "a text for an id": (("show", "hello"), 4, "no commit", "ravel log"),
    "a tag on nothing": (("tag", "set", "notes", "v1", "zzzz"), 4, "no commit", "ravel log"),
    "a key that is none": (("dict", "get", "notes:main", "zzz"), 4, "no key 'zzz'", "dict list"),
    # --- rights
    "an owner excluded": (("bob:member", "exclude", "notes", "{ann}", "--yes"), 7, "not senior", "nobody is senior"),
    "oneself excluded": (("member", "exclude", "notes", "{ann}", "--yes"), 3, "that is this computer", "repo leave"),
    "an invitation by a writer": (("bob:repo", "invite", "notes", "--local"), 7, "needs the permission", "ask one"),
    "the only copy forgotten": (("repo", "forget", "work", "--yes"), 34, "no other node", "--accept-loss"),
    # --- settings
    "a key mistyped": (("config", "set", "network.lisen", "a:1"), 10, "did you mean 'listen'", "config show"),
    "a section alone": (("config", "get", "nope"), 10, "SECTION.KEY", "config show"),
    "a level that is none": (("config", "set", "log.level", "loud"), 10, "debug, info", "config get"),
    "the API for everybody": (("config", "set", "api.listen", "0.0.0.0:1"), 10, "loopback", "config get"),
    "a port too large": (("config", "set", "network.listen", "a:99999"), 10, "65535", "config get"),
    "a huge address": (("config", "set", "network.advertise", "x" * 5000), 10, "xxx…", "config get"),
    "a store elsewhere": (("config", "set", "storage.url", "postgresql://a/b"), 10, "without its repos", "backup"),
    "an option mistyped": (("run", "--set", "network.nope=1"), 10, "known: listen", "config show"),
    # --- peers and tokens
    "a peer without a port": (("peer", "add", "127.0.0.1", "{ann}"), 3, "a port is missing", "ravel status"),
    "a peer's id mistyped": (("peer", "add", "127.0.0.1:1", "abc"), 3, "not a peer id", "ravel id"),
    "this node as a peer": (("peer", "add", "127.0.0.1:1", "{node}"), 3, "this node itself", "ravel id"),
    "a peer that is none": (("peer", "remove", "zzzz"), 4, "no peer", "peer list"),
    "an action mistyped": (("token", "create", "--name", "x", "--actions", "raed"), 3, "did you mean 'read'", "manage"),
    "no action": (("token", "create", "--name", "x", "--actions", ""), 3, "an action is missing", "read, write"),
    "a token's name of two words": (("token", "create", "--name", "a b", "--actions", "read"), 3, "'a b'", "letters"),
    "a token for ever": (
        ("token", "create", "--name", "x", "--actions", "read", "--expires", "9999d"), 3, "9999d", "3650d",
    ),
    "a token for no repo": (("token", "create", "--name", "x", "--actions", "read", "--repo", "z"), 4, "'z'", "repo list"),
    "an address for an origin": (
        ("token", "create", "--name", "x", "--actions", "read", "--origin", "http://localhost:1/"),
        3, "not an origin", "path",
    ),
    "an origin in clear": (
        ("token", "create", "--name", "x", "--actions", "read", "--origin", "http://a.example"), 3, "need https", "https://",
    ),
    "a token that is none": (("token", "revoke", "zzz", "--yes"), 4, "no token", "token list"),
    # --- files
    "a file that is not there": (("file", "add", "notes:main", "{folder}/no.jpg"), 18, "No such file", "path"),
    "a file of the branch that is not there": (("file", "get", "notes:main", "no.jpg"), 4, "no file", "file list"),
    "a file over another": (("file", "get", "notes:main", "a.txt", "-o", "{there}"), 6, "is there", "--force"),
    "a file over a folder": (
        ("file", "get", "notes:main", "a.txt", "-o", "{folder}", "--force"), 6, "is a folder", "name the file in it",
    ),
    "a file into no folder": (("file", "get", "notes:main", "a.txt", "-o", "{folder}/no/x"), 19, "No such file", "make the"),
    "a range of letters": (("file", "get", "notes:main", "a.txt", "--range", "x-y"), 3, "not a range", "0-1000"),
    "JSON lines that are none": (("import", "jsonl", "--branch", "notes:main", "{there}"), 18, "line 1", "mend"),
    "a git history of nothing": (("import", "git", "--branch", "notes:main", "{folder}/no"), 18, "not a folder", "git"),
    "a request of no JSON": (("api", "POST", "/repos", "--data", "{{"), 3, "truncated", "JSON object"),
    "an endpoint that is none": (("api", "GET", "/nope"), 4, "no such endpoint", "endpoints.md"),
    # --- folders and daemons
    "two daemons on one folder": (("run",), 12, "process", "ravel down"),
    "a repair beside a daemon": (("fsck", "--repair"), 12, "process", "ravel down"),
    "a restore into a used folder": (("restore", "{folder}"), 18, "not a whole backup", "another backup"),
    "a backup over something": (("backup", "{folder}"), 6, "holds other files", "empty folder"),
    "a file for a folder": (("--home", "{there}", "up", "--clear"), 19, "is a file", "--home"),
    "no node yet": (("--home", "{folder}/none", "status"), 11, "no node", " up"),
}  # fmt: skip
USAGE: tuple[Words, ...] = (
    ("backup", "--check", "--keep", "2", "{folder}"),
    ("repos", "list"),
    ("repo", "lst"),
    ("repo", "create"),
    ("repo", "create", "--nam", "x"),
    ("repo", "invite", "notes", "--uses", "0"),
    ("repo", "invite", "notes", "--permission", "god"),
    ("member", "grant", "notes", "x", "god"),
    ("edit", "notes:main", "x", "y"),
)
"""What the command line itself refuses: exit code 2, and how to see the help."""


@dataclass(frozen=True, slots=True)
class _Place:
    alice: Peer
    bob: Peer
    values: dict[str, str]


@contextmanager
def _placed(folder: Path) -> Iterator[_Place]:
    with peers(folder, "alice", "bob", introduces=False) as (alice, bob):
        alice.client.create_repo("notes")
        link = run_ravel(alice, "repo", "invite", "notes", "--local").stdout.strip()
        # Spaces and line breaks, which chats and mail put into long words.
        run_ravel(bob, "repo", "join", "-", stdin=f"{link[:60]}\n {link[60:]}\n")
        alice.client.create_repo("work")
        until(lambda: bob.client.list_repos()["repos"][0]["permission"] == "write", "bob may write")
        post, deleted = (alice.client.write_post("notes:main", text)["commit"] for text in ("one", "two"))
        alice.client.delete_post(deleted)
        values = {
            "post": post,
            "deleted": deleted,
            "set": alice.client.edit_set("notes:main", add=["tea"])["commits"][0],
            "ann": alice.client.show_status()["user"],
            "node": alice.client.show_status()["node"],
            "link": link,
            "half": link[: len(link) // 2],
            "altered": link[:-9] + ("a" if link[-9] != "a" else "b") + link[-8:],
            "folder": str(folder),
            "there": str(folder / "there"),
        }
        (folder / "there").write_text("not JSON\n")
        alice.client.add_file("notes:main", [b"content"], name="a.txt")
        for name, words in (
            ("ask", ("repo", "invite", "notes", "--ask", "--local")),
            ("capability", ("repo", "capability", "notes", "--local")),
            ("branch", ("branch", "capability", "notes:main", "--local")),
        ):
            values[name] = run_ravel(alice, *words).stdout.strip()
        until_equal(alice, bob, "notes:main")
        yield _Place(alice, bob, values)


def _run(monkeypatch: pytest.MonkeyPatch, home: Path, words: Words) -> int:
    monkeypatch.setattr("sys.argv", ["ravel", *words])
    monkeypatch.setenv("RAVEL_HOME", str(home))
    try:
        with pytest.raises(SystemExit) as caught:
            main_module.main()
    finally:
        structlog.reset_defaults()  # a daemon that did not start has its log written to this test's output
    return int(caught.value.code or 0)


# A command leaves its connection to the end of its process.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_each_mistake_gets_a_message_with_a_next_step_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with _placed(tmp_path) as place:
        _make_mistakes(place, monkeypatch, capsys)
        _write_when_excluded(place)
    gc.collect()


def _make_mistakes(
    place: _Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _state(place)
    poor = []
    for name, (words, code, message, advice) in MISTAKES.items():
        home = place.bob.home if words[0].startswith("bob:") else place.alice.home
        given = tuple(word.removeprefix("bob:").format(**place.values) for word in words)
        got = _run(monkeypatch, home, given)
        said = capsys.readouterr().err
        error, _, step = said.partition("\nnext:  ")
        is_plain = "error: " in error and "Traceback" not in said and len(said) < 2000
        if got != code or not is_plain or message not in error or advice.format(**place.values) not in step:
            poor.append(f"{name}: {got}, expected {code} with {message!r} and {advice!r}\n{said}")
    assert not poor, "\n".join(poor)
    assert _state(place) == before


def _write_when_excluded(place: _Place) -> None:
    bob = place.bob.client.show_status()["user"]
    place.alice.client.remove_member("notes", bob)
    until(lambda: place.bob.client.list_repos()["repos"][0]["permission"] == "former", "bob knows")
    for words in (
        ("write", "notes:main", "still here"),
        ("file", "add", "notes:main", place.values["there"]),
    ):
        refused = json.loads(run_ravel(place.bob, *words, "--json", code=7).stdout)["error"]
        assert "repo list" in refused["next"]


def test_what_the_command_line_does_not_take_says_how_to_see_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in USAGE:
        assert _run(monkeypatch, tmp_path, words) == 2, words
        assert "-h' for help" in capsys.readouterr().err


def _state(place: _Place) -> list[object]:
    return [
        place.alice.client.show_digest("notes:main"),
        [one["name"] for one in place.alice.client.list_repos()["repos"]],
        [one["name"] for one in place.bob.client.list_repos()["repos"]],
        place.alice.client.list_members("notes"),
        place.alice.client.list_tokens(),
        (place.alice.home / "config.toml").read_bytes(),
    ]


def test_a_configuration_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    home = tmp_path / "node"
    run_command(("--home", str(home), "init", "--clear"))
    (home / "config.toml").write_text((home / "config.toml").read_text() + "\n[network]\n")
    done = run_command(("--home", str(home), "up"))
    assert done.returncode == 10
    assert "twice" in done.stderr
    assert "next:  edit" in done.stderr
