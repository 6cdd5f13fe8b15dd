"""Names of people in one repo: petnames first, look-alikes marked, devices as their person; and whom a name means."""

from dataclasses import replace

import pytest

from node.ingest.membership_facts import NO_FACTS, StatedName
from node.ingest.people import People
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import AnyId, RepoId, UserId

REPO = RepoId(bytes(32))


def user(number: int) -> UserId:
    """Ids that differ in their first characters."""
    return UserId(bytes([number * 16]) * 32)


ANN, BEN, CAT, DAN = map(user, range(1, 5))


def short(one: UserId, length: int = 8) -> str:
    """Return the beginning of an id, as it stands beside a name."""
    return id_text(one)[:length]


def people(
    stated: dict[UserId, str | None],
    petnames: dict[UserId, str] | None = None,
    persons: dict[UserId, UserId] | None = None,
) -> People:
    """Make a repo of these."""
    made = People()
    names = {one: StatedName(name, None, 0) for one, name in stated.items()}
    facts = replace(NO_FACTS, stated=names, persons=persons or {})
    made.set_facts({REPO: facts}, [REPO])
    made.set_petnames({AnyId(one): name for one, name in (petnames or {}).items()}, {})
    return made


def test_a_petname_goes_before_what_is_stated() -> None:
    found = people({ANN: "Ann", BEN: "Ben"}, {ANN: "Ann from work"})
    assert [found.name(REPO, one) for one in (ANN, BEN, CAT)] == ["Ann from work", "Ben", ""]


def test_a_person_keeps_its_name_when_its_place_passes_to_a_device() -> None:
    """The earlier name of the device is a name among devices."""
    made = People()
    names = {ANN: StatedName("Ann", None, 1), BEN: StatedName("Pocket", None, 2)}
    facts = replace(NO_FACTS, stated=names, persons={ANN: BEN}, moved={ANN: (BEN, 3)})
    made.set_facts({REPO: facts}, [REPO])
    assert [made.name(REPO, one) for one in (ANN, BEN)] == ["Ann", "Ann"]
    renamed = replace(facts, stated={**names, BEN: StatedName("Anna", None, 4)})
    made.set_facts({REPO: renamed}, [REPO])
    assert [made.name(REPO, one) for one in (ANN, BEN)] == ["Anna", "Anna"]
    made.set_petnames({AnyId(ANN): "my Ann"}, {})
    assert [made.name(REPO, one) for one in (ANN, BEN)] == ["my Ann", "my Ann"]
    assert made.person_petname(REPO, BEN) == "my Ann"


def test_who_states_no_name_any_more_has_none() -> None:
    assert people({ANN: None}).name(REPO, ANN) == ""


def test_who_states_no_name_here_has_the_last_one_that_they_state_elsewhere() -> None:
    offered, here, early, late = (RepoId(bytes([number]) * 32) for number in range(4))
    found = People()
    facts = {
        here: {BEN: StatedName("Ben", None, 1), DAN: StatedName(None, None, 3)},
        early: {
            ANN: StatedName("Annie", None, 1),
            CAT: StatedName("Ben", None, 2),
            DAN: StatedName("Dan", None, 2),
        },
        late: {ANN: StatedName("Ann", None, 2)},
    }
    found.set_facts({one: replace(NO_FACTS, stated=names) for one, names in facts.items()}, facts)
    assert [found.name(offered, one) for one in (ANN, BEN, CAT, user(5))] == [
        "Ann",
        f"Ben [{short(BEN)}]",
        f"Ben [{short(CAT)}]",
        "",
    ]
    names_here = [found.name(here, one) for one in (ANN, BEN, CAT, DAN)]
    assert names_here == ["Ann", "Ben", f"Ben [{short(CAT)}]", ""]
    assert found.find(here, "Ann", [ANN]) is None, "a name in a text means who states it there"


def test_a_name_from_elsewhere_does_not_pass_for_one_of_the_repo() -> None:
    strangers, work = RepoId(bytes([1]) * 32), RepoId(bytes([2]) * 32)
    found = People()
    facts = {
        REPO: {ANN: StatedName("Ann", None, 1)},
        work: {ANN: StatedName("Annie", None, 2)},
        strangers: {BEN: StatedName("\u0410nn", None, 3), CAT: StatedName("Cat", None, 3)},
    }
    made = {one: replace(NO_FACTS, stated=names) for one, names in facts.items()}
    found.set_facts(made, made)
    assert found.name(REPO, BEN) == f"\u0410nn [{short(BEN)}]", "though Ann is called otherwise elsewhere"
    assert [found.name(REPO, ANN), found.name(REPO, CAT)] == ["Ann", "Cat"]
    renamed = {**made, REPO: replace(NO_FACTS, stated={ANN: StatedName("Cat", None, 1)})}
    found.set_facts(renamed, [REPO])
    assert [found.name(REPO, BEN), found.name(REPO, CAT)] == ["\u0410nn", f"Cat [{short(CAT)}]"]
    found.set_facts({**renamed, work: replace(NO_FACTS, stated={}, persons={CAT: ANN})}, [work])
    assert found.name(REPO, CAT) == "Cat", "her own device"
    found.set_petnames({AnyId(ANN): "\u0410nn"}, {})
    assert found.name(REPO, BEN) == f"\u0410nn [{short(BEN)}]"


def test_a_name_elsewhere_is_shown_as_it_is_now() -> None:
    found, other = People(), RepoId(bytes([1]) * 32)
    for at, name in enumerate(("Ann", "Anna")):
        found.set_facts({other: replace(NO_FACTS, stated={ANN: StatedName(name, None, at)})}, [other])
        assert found.name(REPO, ANN) == name
    found.set_petnames({AnyId(ANN): "Ann from work"}, {})
    assert found.name(REPO, ANN) == "Ann from work"


def test_those_who_look_alike_are_marked() -> None:
    found = people({ANN: "Ann", BEN: "\u0410nn", CAT: "Cat"})
    assert [found.name(REPO, one) for one in (ANN, BEN, CAT)] == [
        f"Ann [{short(ANN)}]",
        f"\u0410nn [{short(BEN)}]",
        "Cat",
    ]
    assert [found.of(REPO)[one].is_like_another for one in (ANN, BEN, CAT)] == [True, True, False]


def test_who_looks_like_a_petname_is_marked_wherever_the_other_is() -> None:
    found = people({BEN: "Ann"}, {ANN: "Ann"})
    assert found.name(REPO, BEN) == f"Ann [{short(BEN)}]"


def test_ids_that_begin_alike_are_told_apart() -> None:
    near = UserId(ANN[:20] + bytes([ANN[20] ^ 1]) + ANN[21:])
    found = people({ANN: "Ann", near: "Ann"})
    names = {found.name(REPO, ANN), found.name(REPO, near)}
    assert len(names) == 2


def test_a_name_that_passes_for_an_id_is_marked() -> None:
    pretended = short(BEN, 12)
    assert people({ANN: pretended}).name(REPO, ANN) == f"{pretended} [{short(ANN)}]"


def test_a_device_shows_as_its_person() -> None:
    found = people({ANN: "Ann", BEN: "Ann's phone"}, persons={BEN: ANN})
    assert found.name(REPO, BEN) == "Ann", "and is no look-alike"
    found = people({BEN: "Ann's phone"}, persons={BEN: ANN})
    assert found.name(REPO, ANN) == "Ann's phone", "where the person states none"
    found = people({ANN: "Ann"}, {BEN: "phone"}, persons={BEN: ANN})
    assert found.name(REPO, BEN) == "phone", "a petname of the device itself goes before what is stated"


def test_a_name_means_who_is_called_so() -> None:
    found = people({ANN: "Ann", BEN: "Ben", CAT: "Cat Lee"})
    users = [ANN, BEN, CAT]
    assert found.find(REPO, "Ann", users) == ANN
    assert found.find(REPO, "ben", users) == BEN
    assert found.find(REPO, "catlee", users) == CAT
    assert found.find(REPO, "Dan", users) is None
    assert found.find(REPO, "Ann", [BEN]) is None, "who is not among those asked for"


def test_a_name_that_several_could_mean_lists_them() -> None:
    found = people({ANN: "Ann", BEN: "\u0410nn"})
    with pytest.raises(ServiceError) as caught:
        found.find(REPO, "Ann", [ANN, BEN])
    assert caught.value.code == "ambiguous"
    assert short(ANN) in caught.value.message
    assert short(BEN) in caught.value.message
    assert found.find(REPO, f"Ann [{short(ANN)}]", [ANN, BEN]) == ANN, "as it is shown"


def test_many_candidates_are_not_all_listed() -> None:
    users = [user(number) for number in range(1, 14)]
    found = people(dict.fromkeys(users, "Ann"))
    with pytest.raises(ServiceError, match="and 5 more"):
        found.find(REPO, "Ann", users)


def test_a_petname_means_whom_this_user_named() -> None:
    found = people({BEN: "Ann", CAT: "ann"}, {ANN: "Ann"})
    assert found.find(REPO, "Ann", [ANN, BEN, CAT]) == ANN


def test_devices_of_one_person_are_one() -> None:
    found = people({ANN: "Ann", BEN: "Ann"}, persons={BEN: ANN})
    assert found.find(REPO, "Ann", [ANN, BEN]) == ANN


def test_a_node_is_no_user() -> None:
    found = People()
    found.set_petnames({}, {AnyId(ANN): "laptop"})
    assert (found.peer_name(ANN), found.petname(ANN), found.name(REPO, ANN)) == ("laptop", "", "")
    assert found.find(REPO, "laptop", [ANN]) is None
