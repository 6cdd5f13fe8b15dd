"""What a refused circle leaves behind: nothing, also where the search for it has lifted others."""

from analytics.study.causes import Causes, Entry, Refusal


def test_a_refused_circle_leaves_all_strata_as_they_were() -> None:
    causes = Causes(pending_max=100)
    names = [number.to_bytes(2, "big") for number in range(40)]
    for number in range(1, 40):
        assert isinstance(causes.add(names[number], [names[number - 1]]), Entry)
    strata = [causes[name].stratum for name in names[1:]]
    # The way back is longer than the few steps that are looked at, so that all are lifted until the circle shows.
    assert causes.add(names[0], [names[39]]) is Refusal.CIRCLE
    assert [causes[name].stratum for name in names[1:]] == strata
    assert causes.missing() == [names[0]]
