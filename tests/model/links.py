"""Followers of one branch by a link topic.

The seed of topic L follows from the writers' secret of an epoch and the branch. Once a `link` commit of that epoch names
the branch, who holds the secret publishes there all commits of the branch and the epoch that it accepted, whoever wrote
them, void or not. A follower judges no rights: the signature of the topic stands for them. So the set of L is a function of
what is accepted, and a relay can carry it.
"""

from tests.model.commits import ALL, ROOT, Branch, describe, writers_topic
from tests.model.switches import on
from tests.model.views import View

LinkTopic = tuple[int, int]  # (writers' secret, branch)


def link_sets(seen: View) -> dict[LinkTopic, frozenset[int]]:
    """Return what a node publishes on link topics."""
    found: dict[LinkTopic, frozenset[int]] = {}
    for one in seen.roots:
        body, epoch = ALL[one].body, ALL[one].epoch
        if ALL[one].kind == "link" and isinstance(body, Branch) and writers_topic(epoch) in seen.secrets:
            there = {
                c for c in seen.accepted if ALL[c].branch == body.first != ROOT and ALL[c].epoch == epoch
            }
            if not on("L commits of all authors"):
                there = {c for c in there if ALL[c].author == seen.user}
            if not on("L once the link is accepted, for all that was written"):
                there = {c for c in there if ALL[c].rank and ALL[c].places & {one}}
            topic = writers_topic(epoch), body.first  # of several epochs, if an init states another's secret
            found[topic] = found.get(topic, frozenset()) | there
    return found


def find_fault_of_followers(views: dict[str, View]) -> str | None:
    """Compare what a follower gets, by a relay, with what members accepted; and what the nodes that publish hold there."""
    sets = [link_sets(seen) for seen in views.values()]
    accepted = frozenset().union(*(seen.accepted for seen in views.values()))
    linked = {(ALL[one].epoch, ALL[one].body) for one in accepted if ALL[one].kind == "link"}
    for topic in {topic for found in sets for topic in found}:
        there = [found[topic] for found in sets if topic in found]
        if any(other != there[0] for other in there):
            return f"link: nodes differ on the link topic of branch {topic[1]}"
        whole = {
            c
            for c in accepted
            if ALL[c].branch == topic[1]
            and writers_topic(ALL[c].epoch) == topic[0]
            and (ALL[c].epoch, Branch(topic[1])) in linked
        }
        lacking = whole - there[0]
        if lacking:
            return f"link: a follower lacks {describe(min(lacking))}"
    return None
