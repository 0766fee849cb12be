"""Say of every day of ten years which promises about deprecations, fixtures and waivers are broken; beside judging one day.

    python benchmarks/deprecations_sweep.py

Prints the seconds of each, and how many times a day the sweep is cheaper than asking anew for that day.
"""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

from torch_compat.judging.gathering import gather, uncollected
from torch_compat.judging.judge import judge
from torch_compat.judging.sweep import sweep as sweep_evidence
from torch_compat.policy.timeline import histories, sweep
from torch_compat.workspace import Root

ROOT = Path(__file__).parents[1]
FIRST, LAST = dt.date(2017, 1, 1), dt.date(2026, 12, 31)


def main() -> None:
    place = Root(ROOT)
    started = time.process_time()
    policy = place.policy()
    loaded = time.process_time() - started
    started = time.process_time()
    verdicts = [result for _, result in sweep(histories(policy), FIRST, LAST)]
    timelines = time.process_time() - started
    with uncollected():
        evidence = gather(place, policy, as_of=None)
        started = time.process_time()
        days = [result for _, result in sweep_evidence(evidence, FIRST, LAST)]
        everything = time.process_time() - started
        started = time.process_time()
        judge(evidence)
        once = time.process_time() - started
    print(
        f"{len(policy.deprecations)} deprecations, {len(verdicts)} days, {len({id(day) for day in days})} ranges of days with the same result"
    )
    print(f"loading the policy                           {loaded:8.3f} s")
    print(f"timelines alone, every day                   {timelines:8.3f} s")
    print(f"timelines, fixtures and waivers, every day   {everything:8.3f} s")
    print(f"judging everything once                      {once:8.3f} s")
    print(f"a day of the sweep costs 1/{once / (everything / len(days)):.0f} of judging once")


if __name__ == "__main__":
    main()
