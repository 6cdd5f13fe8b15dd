"""The reference pages say what the code says."""

import pytest

from benchmarks.peers.workloads import SYSTEMS, UNITS
from tests.proof import zoo
from tests.reference import FOLDER, MADE, pages, research_pages
from tests.support import columns_page, figures_page, js_client, observatory_page, zoo_page
from tests.support.machine_tables import machines_page


@pytest.mark.slow
def test_the_reference_is_what_the_code_makes() -> None:
    made = pages()
    for name, text in made.items():
        assert (FOLDER / name).read_text() == text, f"{name} is out of date: make reference"


@pytest.mark.slow
def test_the_javascript_client_is_what_the_code_makes() -> None:
    for path, text in js_client.files().items():
        assert path.read_text() == text, f"{path.name} is out of date: make reference"


@pytest.mark.parametrize("name", research_pages())
def test_the_pages_of_columns_and_tables_are_those_of_the_schemas(name: str) -> None:
    assert (columns_page.FOLDER / name).read_text() == research_pages()[name], "make reference"


def test_the_page_of_figures_is_that_of_the_data_file() -> None:
    assert figures_page.PAGE.read_text() == figures_page.figures_page(MADE), "make reference"


def test_the_data_file_has_at_most_twenty_figures_of_benchmarks_and_machines_that_exist() -> None:
    data = figures_page.read_figures()
    assert 15 <= len(data["figures"]) <= 20
    for one in data["figures"]:
        assert (figures_page.DATA.parent / f"{one['by'].split()[0]}.py").is_file()
        assert one["machine"] in data["machines"]


def test_the_page_of_other_systems_is_that_of_its_data_file() -> None:
    assert observatory_page.PAGE.read_text() == observatory_page.observatory_page(MADE), "make reference"


def test_each_figure_of_another_system_is_there_or_has_a_reason() -> None:
    run, said = observatory_page.read_run(), observatory_page.read_systems()
    systems = {one["name"]: one for one in said["systems"]}
    assert systems.keys() == SYSTEMS.keys()
    assert [one["name"] for one in said["workloads"]] == list(UNITS)
    for workload in said["workloads"]:
        found = run.figures[workload["name"]]
        missing = [one for one in systems if one not in found]
        assert [one for one in missing if workload["name"] not in systems[one].get("cannot", {})] == []
        assert workload["why"] or observatory_page.is_first("ravel", found)


def test_the_page_of_concurrent_histories_is_that_of_the_zoo_and_of_what_others_say() -> None:
    assert zoo_page.PAGE.read_text() == zoo_page.zoo_page(MADE), "make reference"


def test_each_history_that_a_system_can_be_asked_has_an_answer_and_each_difference_a_reason() -> None:
    titles = [history.title for history in zoo.histories() if zoo.told(history)]
    for asked in zoo_page.read_others()["asked"]:
        answers = zoo_page.read_answers(asked["name"])
        assert titles == list(answers)
        assert not any(one.get("other_orders") for one in answers.values()), "the order of arrival decides"
        assert [one.title for one in zoo_page.differing(asked)] == list(asked["differs"])
        assert set(asked["differs"].values()) == asked["reasons"].keys()


def test_the_comparison_of_a_topic_is_drawn() -> None:
    assert machines_page("").count("stateDiagram-v2") == 1


def test_the_page_of_machines_has_each_cell_that_refuses() -> None:
    assert "| over_more | answering | refuse: `unasked_reconciliation` |  |" in machines_page("")
