"""Strongly connected components of a directed graph, without recursion."""

from collections.abc import Mapping, Sequence


def find_components(edges: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """Groups of nodes that reach each other, those that others are reached from first; each group sorted.

    Nodes are the keys; every edge leads to a key. Kosaraju's algorithm (as in Aho, Hopcroft and Ullman 1983).
    """
    reverse: dict[int, list[int]] = {node: [] for node in edges}
    for node, targets in edges.items():
        for target in targets:
            reverse[target].append(node)
    groups: list[list[int]] = []
    placed: set[int] = set()
    for node in reversed(_finished(edges)):
        if node in placed:
            continue
        placed.add(node)
        group = [node]
        for member in group:  # grows while it is read
            for source in reverse[member]:
                if source not in placed:
                    placed.add(source)
                    group.append(source)
        groups.append(sorted(group))
    return groups


def _finished(edges: Mapping[int, Sequence[int]]) -> list[int]:
    """Nodes in the order in which a depth-first search leaves them."""
    order: list[int] = []
    seen: set[int] = set()
    for start in edges:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(edges[start]))]
        while path:
            node, targets = path[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    path.append((target, iter(edges[target])))
                    break
            else:
                order.append(node)
                path.pop()
    return order
