"""Accuracies of finished runs, and what many seeds say together."""
import json
import math
import pathlib
import statistics


def of_run(folder):
    """[(epoch, test accuracy)] of a run that came to its end, from its record; None if it did not."""
    record = pathlib.Path(folder) / "record.jsonl"
    if not record.exists():
        return None
    events = []
    for line in record.read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            pass  # the last line of a run that was killed
    if not any(e["event"] == "run_stop" and e["status"] in ("done", "target_missed") for e in events):
        return None
    return [(e["epoch"], e["accuracy"]) for e in events if e["event"] == "eval"]


def mean(values):
    return statistics.fmean(values) if values else math.nan


def deviation(values):
    return statistics.stdev(values) if len(values) > 1 else math.nan


def rank_test(a, b):
    """Two-sided p of Mann and Whitney's rank test (normal approximation with ties): may a and b come from one distribution?"""
    if not a or not b:
        return math.nan
    both = sorted(a + b)
    rank = {x: (2 * both.index(x) + both.count(x) + 1) / 2 for x in set(both)}
    n, m, total = len(a), len(b), len(both)
    u = sum(rank[x] for x in a) - n * (n + 1) / 2
    ties = sum(both.count(x) ** 3 - both.count(x) for x in set(both)) / (total * (total - 1)) if total > 1 else 0
    spread = math.sqrt(n * m / 12 * (total + 1 - ties))
    if spread == 0:
        return 1.0
    return min(1.0, math.erfc(max(0, abs(u - n * m / 2) - 0.5) / spread / math.sqrt(2)))
