"""`python -m analytics.study.command scuttlesort --out DIR`: replay studies. `ravel study` runs this as a process.

Results go to stdout (JSON with --json), progress and errors to stderr.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from analytics.command import EXIT_OK, add_common_options, add_strict_option, guarded, progress_of, show

COMMITS_MAX: Final = 1 << 22
"""Of a tangle to make: eight times the paper's largest. A run of it may be an hour in one task, and takes 2 GB there."""
WIDTH_MAX: Final = 1 << 14
SEEDS_MAX: Final = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parse(arguments)
    return guarded(options, lambda: _study(options))


def _study(options: argparse.Namespace) -> int:
    from analytics.reading.given_exports import GivenExports
    from analytics.session import runs_here, start_session
    from analytics.study import page as study_page
    from analytics.study import study
    from analytics.study.real_branches import load_real_branches

    began = time.monotonic()
    base = study.QUICK if options.quick else study.FULL
    plan = study.Plan(
        heights=options.heights or base.heights,
        widths=options.widths or base.widths,
        seeds=options.seeds or base.seeds,
    )
    progress = progress_of("study")
    given = GivenExports(progress, strict=options.strict)
    conf = dict(options.conf)
    is_here = runs_here(options.master, conf=conf)
    exports = given.read(options.export_dir, is_here=is_here) if options.export_dir else []
    options.out.mkdir(parents=True, exist_ok=True)
    session = start_session(options.master, log_path=options.out / "spark.log", conf=conf)
    try:
        exports = exports if is_here else given.check(session, exports)
        real = load_real_branches(session, exports) if exports else []
        if exports and not real:
            progress(f"the exports hold no branch of 2 to {study.REAL_COMMITS_MAX:,} commits")
        result = study.run_study(session, plan, options.out, progress, real, resume=options.resume)
    finally:
        session.stop()
    page = options.out / "study.html"
    page.write_text(study_page.render_study(plan, result), encoding="utf-8")
    figures = options.out / "figures"
    figures.mkdir(exist_ok=True)
    for name, picture in study_page.figures_of(plan, result).items():
        (figures / f"{name}.svg").write_text(picture, encoding="utf-8")
    seconds = time.monotonic() - began
    if options.json:
        show(
            json.dumps(
                {
                    "runs": len(result.runs),
                    "heights": list(plan.heights),
                    "widths": list(plan.widths),
                    "seeds": plan.seeds,
                    "report": str(page),
                    "figures": str(figures),
                    "tables": str(options.out / "tables"),
                    "set_aside": [asdict(one) for one in given.set_aside],
                    "seconds": round(seconds, 3),
                }
            )
        )
    else:
        show(
            f"{len(result.runs):,} runs in {seconds:.0f} s: {study_page.scale_of(plan)}\n"
            f"report   {page}\nfigures  {figures}\ntables   {options.out / 'tables'}\n\n"
            f"{study_page.as_text(result)}"
            + "".join(f"\nNOT READ: {one.source}: {one.reason}" for one in given.set_aside)
        )
    return EXIT_OK


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m analytics.study.command", description="Replay tangles and count edits, with Spark."
    )
    parser.add_argument("study", choices=["scuttlesort"], help="which study")
    parser.add_argument("export_dir", nargs="*", help="exports, whose largest branches are replayed too")
    parser.add_argument("--quick", action="store_true", help="small tangles: minutes instead of hours")
    parser.add_argument(
        "--heights", type=_Numbers(2, COMMITS_MAX), help="commits of the tangles, such as 32K,64K"
    )
    parser.add_argument("--widths", type=_Numbers(4, WIDTH_MAX), help="feeds of the tangles, such as 4,64")
    parser.add_argument("--seeds", type=_Number(1, SEEDS_MAX), help="runs of each scenario")
    parser.add_argument("--resume", action="store_true", help="go on with the study that lies in OUT")
    add_common_options(parser, "study.html and tables")
    add_strict_option(parser)
    return parser.parse_args(arguments)


class _Number:
    """Reads a number within bounds; K stands for 1024."""

    def __init__(self, smallest: int, largest: int) -> None:
        self._smallest, self._largest = smallest, largest

    def __call__(self, text: str) -> int:
        match = re.fullmatch(r"(\d{1,9})(K?)", text.strip())
        value = int(match[1]) * (1024 if match[2] else 1) if match else -1
        if not self._smallest <= value <= self._largest:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number from {self._smallest} to {self._largest}"
            )
        return value


class _Numbers:
    """Option type: whole numbers between commas, each within bounds."""

    def __init__(self, smallest: int, largest: int) -> None:
        self._one = _Number(smallest, largest)

    def __call__(self, text: str) -> tuple[int, ...]:
        return tuple(sorted({self._one(part) for part in text.split(",")}))


if __name__ == "__main__":
    sys.exit(main())
