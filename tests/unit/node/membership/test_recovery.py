"""Friends let a person in again whose keys are lost: enough of those named last, in each repo, and nobody else."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from trio.testing import MockClock

from node.authoring.writing import write_commit
from node.membership.recovery import Recovery, find_namings
from node.runtime.errors import ServiceError
from protocol.formats.body import DeviceGrant, Move, Permission, RecoveryFriends
from protocol.formats.links import parse_recovery, recovery_text
from protocol.formats.profiles import Profile
from protocol.formats.text import id_text
from protocol.ids import Signature
from storage.repos.repos import Branch, Repo
from tests.support.devices import held, member_of, persons, repo_of, settle, user
from tests.support.memberships import USERS
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of
from tests.unit.verifier.test_floods import Repo as Repository

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite,  # rules are not about rows
]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "ann", "new", "ben", "cat", "dan") as nodes:
        yield nodes


def root_of(node: Node, repo: Repo) -> Branch:
    """Return a node's root branch of a repo."""
    here = repo_of(node, repo)
    assert here is not None
    return node.replica.root_branch(here)


def recovery(node: Node, folder: Path) -> Recovery:
    """Return what names friends and signs for one node."""
    return service_of(node, folder).people.recovery


async def friends_of_ann(people: list[Node], folder: Path) -> Repo:
    """Make a repo of Ben's with Ann, Cat and Dan, in which Ann names the three, of whom two are enough."""
    ann, _, ben, cat, dan = people
    work = await member_of(ben, ann)
    for one in (cat, dan):
        await one.joiner.begin(ben.invite(repo_of(ben, work) or work, Permission.WRITE))
    await settle(ben, ann, cat, dan)
    for one, name in ((ann, "Ann"), (ben, "Ben"), (cat, "Cat"), (dan, "Dan")):
        await write_commit(one.hub, one.author, root_of(one, work), Profile(name, None))
    await settle(ben, ann, cat, dan)
    done = (await recovery(ann, folder).name_friends(["Ben", "Cat", "Dan"], 2, ""))["repos"]
    assert [(one["name"], one["changed"], one["need"], one["advice"]) for one in done] == [
        ("work", True, 2, "")
    ]
    for repo in ("work", id_text(work.repo_id)[:12]):
        again = (await recovery(ann, folder).name_friends(["Ben", "Cat", "Dan"], None, repo))["repos"]
        assert [one["changed"] for one in again] == [False]
    await settle(ben, ann, cat, dan)
    return work


async def test_who_signs_twice_is_no_two_friends(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, _, ben, cat, _ = people
    await friends_of_ann(people, tmp_path)
    for twice in (["Ben", user(ben)], ["Ben", "Ben", "Cat"]):
        with pytest.raises(ServiceError, match="two of these friends are the same person"):
            await recovery(ann, tmp_path).name_friends(twice, None, "")
    computers = {cat.author.user: ben.author.user}
    monkeypatch.setattr(type(ann.replica), "persons", lambda *_: computers)
    with pytest.raises(ServiceError, match="two of these friends are the same person"):
        await recovery(ann, tmp_path).name_friends(["Ben", "Cat", "Dan"], None, "")
    computers[cat.author.user] = ann.author.user
    with pytest.raises(ServiceError, match="you are no friend of your own"):
        await recovery(ann, tmp_path).name_friends(["Ben", "Cat", "Dan"], None, "")


async def signed(node: Node, folder: Path, new: Node) -> str:
    """Return a friend's text for Ann's new key."""
    answer = await recovery(node, folder).sign("Ann", user(new))
    (text,) = answer["texts"]
    assert [(one["name"], one["permission"]) for one in answer["repos"]] == [("work", "write")]
    return text


async def test_two_of_three_friends_let_a_new_key_in(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    ann, new, ben, cat, dan = people
    work = await friends_of_ann(people, tmp_path)
    shown = await recovery(cat, tmp_path).show()
    assert [(one["user_name"], one["need"], one["friends"]) for one in shown["persons"]] == [("Ann", 2, 3)]
    (own,) = (await recovery(ann, tmp_path).show())["repos"]
    assert sorted(own["friend_names"]) == ["Ben", "Cat", "Dan"]
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]

    (early,) = (await recovery(dan, tmp_path).finish(texts[:1]))["repos"]
    assert (early["let_in"], early["signed"], early["need"]) == (False, 1, 2)
    assert early["advice"].startswith("1 of 2 friends have signed")
    assert held(dan, work, new) is None
    twice = [texts[0], texts[0]]
    assert (await recovery(dan, tmp_path).finish(twice))["repos"][0]["signed"] == 1

    (done,) = (await recovery(dan, tmp_path).finish(texts))["repos"]
    assert (done["let_in"], done["signed"], done["member_name"], done["advice"]) == (True, 2, "Ann", "")
    (again,) = (await recovery(dan, tmp_path).finish(texts))["repos"]
    assert (again["let_in"], again["already"], again["advice"]) == (False, True, "")
    await settle(dan, ben, cat)
    await settle(ben, dan, cat)
    for node in (ben, cat, dan):
        assert held(node, work, new) is Permission.WRITE
        assert persons(node, work) == {new.author.user: ann.author.user}, "it has no other right than Ann's"
    changes = (await service_of(ben, tmp_path).people.member_changes.list_latest("work", 20, 0))["changes"]
    told = {one["kind"]: one for one in changes}
    await settle(ben, ann)
    (let_in,) = (await service_of(ann, tmp_path).people.pairing.list_all())["let_in"]
    assert (let_in["device"], let_in["name"]) == (user(new), "work")
    assert sorted(let_in["friend_names"]) == ["Ben", "Cat"]
    assert not let_in["this"]
    removed = await service_of(ann, tmp_path).people.members.remove("work", user(new), "")
    assert removed["devices"] == [], "what friends gave in its place, it takes back without an admin"
    assert (await service_of(ann, tmp_path).people.pairing.list_all())["let_in"] == []
    assert (told["recovered"]["user"], told["recovered"]["author_name"]) == (user(new), "Ann")
    assert sorted(told["recovered"]["friend_names"]) == ["Ben", "Cat"]
    assert sorted(told["friends_named"]["friend_names"]) == ["Ben", "Cat", "Dan"]
    with pytest.raises(ServiceError, match="named you in no repo in which this key lacks"):
        await recovery(cat, tmp_path).sign("Ann", user(new))


async def test_what_two_friends_publish_beside_each_other_is_told_once(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    ann, new, ben, cat, dan = people
    await friends_of_ann(people, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    for one in (ben, dan):
        (done,) = (await recovery(one, tmp_path).finish(texts))["repos"]
        assert done["let_in"]
    await settle(ben, ann, dan)
    service = service_of(ann, tmp_path).people
    (let_in,) = (await service.pairing.list_all())["let_in"]
    assert (let_in["device"], sorted(let_in["friend_names"])) == (user(new), ["Ben", "Cat"])
    removed = await service.members.remove("work", user(new), "")
    assert removed["other_devices"] == [], "Ann is not told to exclude herself next"


async def test_a_forged_text_of_a_friend_does_not_hide_the_true_one(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    _, new, ben, cat, dan = people
    await friends_of_ann(people, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    true = parse_recovery(texts[0])
    zeros = tuple(structs.replace(one, signature=Signature(bytes(64))) for one in true.signed)
    forged = recovery_text(structs.replace(true, signed=zeros))
    for given in ([forged, texts[0], forged], [texts[0], forged]):
        (short,) = (await recovery(dan, tmp_path).finish(given))["repos"]
        assert (short["signed"], short["let_in"]) == (1, False)
    (done,) = (await recovery(dan, tmp_path).finish([forged, *texts, forged]))["repos"]
    assert (done["signed"], done["let_in"]) == (2, True)


async def test_the_new_home_reads_and_writes_as_the_person(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    _, new, ben, cat, _ = people
    work = await friends_of_ann(people, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    await recovery(ben, tmp_path).finish(texts)
    await new.joiner.follow(ben.capability())
    await settle(ben, new)
    await settle(ben, new)
    main = next(
        one for one in new.replica.branches_in((repo_of(new, work) or work).num) if one.name == "main"
    )
    new.write(main, "it is me")
    await settle(ben, new)
    assert held(new, work, new) is Permission.WRITE
    service = service_of(new, tmp_path).people
    (let_in,) = (await service.pairing.list_all())["let_in"]
    assert let_in["this"], "this computer is no stranger to itself"
    with pytest.raises(ServiceError, match="that is this computer"):
        await service.members.remove("work", user(new), "")
    assert held(new, work, new) is Permission.WRITE
    people_in = (await service_of(ben, tmp_path).people.members.list_all("work"))["members"]
    seen = {one["user"]: one for one in people_in}[user(new)]
    assert (seen["name"], seen["came"] and seen["came"]["kind"]) == ("Ann", "recovered")
    assert sorted(seen["came"]["friend_names"] if seen["came"] else []) == ["Ben", "Cat"]
    assert (await service.recovery.show())["let_in"]
    await service_of(ben, tmp_path).people.members.grant("work", user(new), "write")
    await settle(ben, new)
    assert not (await service.recovery.show())["let_in"]
    assert (await service.pairing.list_all())["let_in"] == [], (
        "it has rights of its own: nothing is left to do"
    )


async def test_friends_who_were_replaced_let_nobody_in(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    ann, new, ben, cat, dan = people
    work = await friends_of_ann(people, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    await recovery(ann, tmp_path).name_friends(["Dan"], None, "")
    await settle(ben, ann, cat, dan)
    (done,) = (await recovery(dan, tmp_path).finish(texts))["repos"]
    assert not done["let_in"]
    assert done["advice"].startswith("Ann has named other friends since")
    with pytest.raises(ServiceError, match="named you in no repo"):
        await recovery(cat, tmp_path).sign("Ann", user(new))
    await recovery(ann, tmp_path).name_friends([], None, "")
    assert (await recovery(ann, tmp_path).show())["repos"] == []
    assert held(dan, work, new) is None


async def test_friends_of_who_was_excluded_let_nobody_in(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    ann, new, ben, cat, dan = people
    work = await friends_of_ann(people, tmp_path)
    texts = [await signed(one, tmp_path, new) for one in (ben, cat)]
    await service_of(dan, tmp_path).people.members.leave("work", force=False)
    await settle(ben, dan, ann)
    (own,) = (await recovery(ann, tmp_path).show())["repos"]
    assert own["advice"] == "of these friends 1 can sign no more; name friends anew"
    await service_of(ben, tmp_path).people.members.remove("work", "Ann", "")
    await settle(ben, cat)
    (done,) = (await recovery(cat, tmp_path).finish(texts))["repos"]
    assert not done["let_in"]
    assert done["advice"] == "Ann is no member any more; have an admin invite the new key"
    with pytest.raises(ServiceError, match="is no member any more"):
        await recovery(cat, tmp_path).sign("Ann", user(new))
    assert held(cat, work, new) is None


async def test_friends_sign_anew_for_who_was_lowered_and_once_for_each_key(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    _, new, ben, cat, _ = people
    work = await friends_of_ann(people, tmp_path)
    ruling = service_of(ben, tmp_path).people.members
    before = [await signed(one, tmp_path, new) for one in (ben, cat)]
    await ruling.remove("work", "Ann", "read")
    await settle(ben, cat)
    (done,) = (await recovery(cat, tmp_path).finish(before))["repos"]
    assert (done["signed"], done["let_in"]) == (2, False)
    assert done["advice"].startswith("Ann may no more than read by now; these sign anew")
    (one,) = (await recovery(ben, tmp_path).sign("Ann", user(new)))["texts"]
    (other,) = (await recovery(cat, tmp_path).sign("Ann", user(new)))["texts"]
    texts = [one, other]
    assert (await recovery(ben, tmp_path).finish(texts))["repos"][0]["let_in"]
    await ruling.remove("work", user(new), "", person=False)
    assert held(ben, work, new) is None
    (done,) = (await recovery(ben, tmp_path).finish(texts))["repos"]
    assert done["advice"].startswith("these friends let this key in before; have an admin invite it")
    with pytest.raises(ServiceError, match="Ann named you in no repo in which this key lacks anything"):
        await recovery(ben, tmp_path).sign("Ann", user(new))


async def test_what_names_no_friends_is_refused(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    ann, _, ben, _, _ = people
    await friends_of_ann(people, tmp_path)
    own = recovery(ann, tmp_path)
    for friends, need, said in (
        (["Ben", "Cat"], 1, "of 2 friends 2 to 2 are needed, not 1"),
        (["Eve"], None, "'Eve' is nobody in your repos"),
        (["Ann", "Ben"], None, "you are no friend of your own"),
    ):
        with pytest.raises(ServiceError, match=said):
            await own.name_friends(friends, need, "")
    with pytest.raises(ServiceError, match="nope"):
        await own.name_friends(["Ben"], None, "nope")
    with pytest.raises(ServiceError, match="incomplete or mistyped"):
        await own.finish(["ravel:recovery:aaaa"])
    signing = recovery(ben, tmp_path)
    with pytest.raises(ServiceError, match="another member's in work: Cat"):
        await signing.sign("Ann", "Cat")
    with pytest.raises(ServiceError) as mistyped:
        await signing.sign("Ann", "abc")
    assert mistyped.value.advice == "the new computer's `ravel id` prints its id"


def test_of_namings_beside_one_another_the_last_ones_are_looked_at() -> None:
    """Each was compared with all others, whenever anybody's friends were shown."""
    repo = Repository()
    body = RecoveryFriends((USERS["cat"],), 1)
    made = [repo.say("ben", body, repo.last) for _ in range(18)]
    found = find_namings(repo.membership, USERS["ben"])
    assert [one.commit_id for one in found] == made[:1:-1]
    repo.say("ben", body, *made)
    assert len(find_namings(repo.membership, USERS["ben"])) == 1


async def test_nobody_signs_for_a_key_that_passed_its_place_on(
    people: list[Node], tmp_path: Path, autojump_clock: MockClock
) -> None:
    ann, new, ben, _, _ = people
    work = await friends_of_ann(people, tmp_path)
    joined = ann.replica.membership(work.repo_id).now().credentials_of(ann.author.user)[0].commit_id
    for body in (DeviceGrant(new.author.user, Permission.WRITE), Move(new.author.user, joined)):
        ann.author.write(root_of(ann, work), body)
    await settle(ann, ben)
    assert held(ben, work, ann) is None
    with pytest.raises(ServiceError, match="this key passed its place in work on"):
        await recovery(ben, tmp_path).sign(user(new), user(ann))
