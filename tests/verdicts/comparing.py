"""Compares what was concluded from a history with what it expects, and asks the judge in JavaScript."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

JS_JUDGE = Path(__file__).parent / "js" / "judge.mjs"


def differences(meant: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Say in what two conclusions differ. Of codes it is enough that one is in both."""
    said = []
    for one in sorted(meant["commits"].keys() | found["commits"].keys()):
        left, right = meant["commits"].get(one), found["commits"].get(one)
        if left is None or right is None or left["is"] != right["is"]:
            said.append(f"commit {one[:12]}: {left} here {right}")
        elif left["is"] == "rejected" and not set(left["codes"]) & set(right["codes"]):
            said.append(f"codes of {one[:12]}: {left['codes']} here {right['codes']}")
    parts = [("", part) for part in ("dropped", "members", "branches", "checkpoints")]
    parts += [("epochs", part) for part in ("counting", "tips", "clean", "held", "written_in")]
    for whole, part in parts:
        left, right = ((one[whole] if whole else one).get(part) for one in (meant, found))
        if left != right:
            said.append(f"{whole} {part}: {apart(left, right)} here {apart(right, left)}")
    return said


def apart(value: Any, other: Any) -> Any:
    """Those parts of a value that another one does not have."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {key: apart(one, other.get(key)) for key, one in value.items() if one != other.get(key)}
    if isinstance(value, list) and isinstance(other, list):
        return [one for one in value if one not in other] or "another order"
    return value


def differing_in_js(histories: list[dict[str, Any]], orders: int = 3, jobs: int = 1) -> list[str] | None:
    """What the judge in JavaScript says of histories on which it differs, one line each; None without Node.js."""
    node = shutil.which("node")
    if node is None:
        return None
    done = subprocess.run(
        [node, "--max-semi-space-size=64", JS_JUDGE, "-", f"--orders={orders}", f"--jobs={jobs}"],
        input=json.dumps({"histories": histories}),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith(f"{len(histories)} histories"):
        return [f"the judge in JavaScript failed: {done.stderr}"]
    return lines[:-1]
