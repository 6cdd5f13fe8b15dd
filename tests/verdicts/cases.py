"""The register of named histories: each case is a function that writes into a story."""

from .story import Story

CASES = []


def case(name, *rules, founders=("ann",), found=True, **values):
    """Register a case. What the function returns, if anything, goes to `Story.finish`."""

    def register(teller):
        CASES.append((name, rules, founders, found, teller, values))
        return teller

    return register


def add(name, rules, teller, founders=("ann",), found=True, **values):
    """Register a case that is made in a loop."""
    CASES.append((name, rules, founders, found, teller, values))


def tell(entry):
    """Make the history of a registered case."""
    name, rules, founders, found, teller, values = entry
    story = Story(name, rules, founders, found)
    how = teller(story, **values)
    return story.finish(**(how or {}))
