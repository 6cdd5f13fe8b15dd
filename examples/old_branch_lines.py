"""Print a branch of a home from before 0.1 as JSON Lines, which `ravel import jsonl` of version 0.1 takes.

Run it by the Python of the old checkout, beside its daemon: docs/communities/backups.md says when.
"""

import json
import sys

import ravel


def main(home: str, branch: str) -> None:
    """Print each commit of a branch, with the parents that were printed before it."""
    client, after, here = ravel.connect(home), -1, set[str]()
    while items := client.show_timeline(branch, after_position=after, limit=1000)["items"]:
        for item in items:
            parents = [one for one in item["acks"] if one in here]
            line = {"id": item["commit"], "parents": parents, "author": item["author_name"] or item["author"]}
            print(json.dumps(line | {"time": item["time"], "text": item["text"] or f"({item['kind']})"}))
            here.add(item["commit"])
        after = items[-1]["position"]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/old_branch_lines.py HOME BRANCH")
    main(*sys.argv[1:])
