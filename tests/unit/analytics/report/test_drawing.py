"""The drawing of a tangle: every commit once, every ack an edge or a stub, signs for what is special, and well-formed."""

from xml.etree import ElementTree

from analytics.report.drawing import LANES_MAX, LEGEND, DrawnCommit, draw_tangle
from analytics.report.page import NO_NAMES, Names
from ravel.exports.schema import text_id
from tests.support.exports import id_of


def drawn(
    name: str, rank: int, *acks: str, author: str = "ada", void: bool = False, checkpoint: bool = False
) -> DrawnCommit:
    return DrawnCommit(id_of(name), id_of(author), rank, tuple(map(id_of, acks)), void, checkpoint)


TANGLE = [
    drawn("root", 0),
    drawn("left", 1, "root"),
    drawn("right", 1, "root", author="bob"),
    drawn("lost", 1, "root", author="bob", void=True),
    drawn("merge", 2, "left", "right"),
    drawn("sealed", 3, "merge", "lost", checkpoint=True),
    drawn("late", 7, "merge", "elsewhere", "nowhere"),
]


def picture(commits: list[DrawnCommit]) -> ElementTree.Element:
    return ElementTree.fromstring(draw_tangle(commits, NO_NAMES))  # noqa: S314  # made here


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if name in element.get("class", "").split()]


def test_commits_acks_and_signs_are_all_there() -> None:
    root = picture(TANGLE)
    assert len(of_class(root, "node")) == len(TANGLE)
    assert len(of_class(root, "edge")) == 8 + 1, "acks, and one stub for what is not drawn"
    assert len(of_class(root, "cut")) == 1
    assert len(of_class(root, "strike")) == len(of_class(root, "void")) == 1
    assert len(of_class(root, "checkpoint")) == 1
    assert len([node for node in of_class(root, "node") if "merge" in node.get("class", "")]) == 3
    assert len(of_class(root, "head")) == 2, "sealed and late"
    assert len(of_class(root, "lane")) == 2


def test_no_two_commits_stand_at_one_place_and_causes_stand_left() -> None:
    places = {}
    for node in of_class(picture(TANGLE), "node"):
        shape = node[1]
        title = node[0].text or ""
        x = float(shape.get("cx") or float(shape.get("x", 0)) + float(shape.get("width", 0)) / 2)
        y = float(shape.get("cy") or float(shape.get("y", 0)) + float(shape.get("height", 0)) / 2)
        places[title.partition(",")[0]] = (x, y)
    assert len(set(places.values())) == len(TANGLE)
    by_rank = {commit.rank: None for commit in TANGLE}
    assert len({x for x, _ in places.values()}) == len(by_rank)


def test_many_authors_share_the_last_lane() -> None:
    crowd = [drawn(f"c{n}", 0, author=f"author {n}") for n in range(LANES_MAX + 4)]
    root = picture(crowd)
    assert len(of_class(root, "lane")) == LANES_MAX
    assert "5 more" in (of_class(root, "lane-name")[-1].text or "")
    assert len({(node[1].get("cx"), node[1].get("cy")) for node in of_class(root, "node")}) == len(crowd)


def test_the_legend_is_well_formed() -> None:
    assert len(ElementTree.fromstring(LEGEND)) == 5  # noqa: S314  # made here


def test_lanes_have_names_where_authors_do() -> None:
    names = Names({text_id(id_of("ada")): "Ada <i>", text_id(id_of("bob")): "Bob of the long name"})
    page = draw_tangle(TANGLE, names)
    labels = of_class(ElementTree.fromstring(page), "lane-name")  # noqa: S314  # made here
    assert [label.text for label in labels] == ["Ada <i>", "Bob of the \N{HORIZONTAL ELLIPSIS}"]
    assert [title.text for label in labels for title in label] == ["Ada <i>", "Bob of the long name"]
