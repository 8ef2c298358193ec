"""Goal 4f of `compare`: whole training steps of GPT-2 and of a vision transformer beside tuned PyTorch, AdamW on both sides.

The bound of a step is its arithmetic at the machine's peak (bf16: twice that of fp32) and, after it, its update at the memory's bandwidth, 28 bytes a
parameter (weight, gradient and two states read, all but the gradient written). The goal is a ratio, or 0.80 of the bound where that asks less.
"""
import dataclasses
import json
import statistics
import subprocess

import science
import sides

SIZES = {  # of language models; others have their own
    "gpt2": {"classes": 50257, "depth": 12, "width": 768, "heads": 12},
    "gpt2 of characters": {"classes": 65, "depth": 6, "width": 384, "heads": 6},
}
GOAL = {"fp32": 1.3, "bf16": 1.4}
KEPT_BYTES = 16  # of a parameter: itself, its gradient, two states
UPDATE_BYTES = 28


@dataclasses.dataclass
class Item:
    model: str
    precision: str
    batch: int
    window: int  # tokens of a sample; 0: the network's own sample
    steps: int

    @property
    def what(self):
        sizes = f"{self.batch} x {self.window}" if self.window else f"batch {self.batch}"
        return f"{self.model} {self.precision}, {sizes}, 2 threads"


ITEMS = [
    Item(model, precision, batch, window, steps)
    for model, batch, window, steps in (("gpt2", 4, 64, 5), ("gpt2", 4, 256, 2), ("gpt2", 1, 1024, 2), ("gpt2 of characters", 64, 256, 1), ("vit-ti", 64, 0, 1))
    for precision in ("fp32", "bf16")
]


def flags(item):
    return ["--precision", item.precision, "--batch", item.batch, "--threads", 2, "--warmup", 1]


def ours(session, item):
    if item.model not in SIZES:
        return [session.args.tutti, "bench", "step", "--model", item.model, "--optimizer", "adamw", *flags(item)]
    sizes = [word for name, value in SIZES[item.model].items() for word in (f"--{name}", value)]
    return [session.args.tutti, "bench", "step", "--model", "gpt2", "--optimizer", "adamw", "--input", item.window, *sizes, *flags(item)]


def peer(session, item):
    """The peer's command with its fastest setting."""
    words = ["language.py", "--window", item.window] if item.model in SIZES else ["vision.py"]
    for name, value in SIZES.get(item.model, {}).items():
        words += ["--vocabulary" if name == "classes" else f"--{name}", value]
    base = [session.args.python[0], session.peers / words[0], *words[1:], *flags(item)]
    axes = [[["--compile", "off"]] + ([["--compile", "default"]] if session.args.compile else [])]
    return [*base, *sides.fastest(base, axes, print, steps=item.steps, limit=session.args.limit)]


def bandwidth(session):
    """Bytes a second, as `tutti doctor` measures it."""
    answer = subprocess.run([session.args.tutti, "doctor", "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(answer)["memory_bandwidth"]


def side_by_side(session, item, target_of):
    what = item.what
    if session.has("4f", f"{what}, ours / PyTorch"):
        return
    (mine, theirs), (about, other), memory = science.turns(session, [ours(session, item), peer(session, item)], item.steps)
    step, their_step = statistics.median(mine), statistics.median(theirs)
    flop, parameters = about["flop_per_image"] * item.batch, about["parameters"]
    rate = session.peak() * (2 if item.precision == "bf16" else 1)
    bound = flop / rate / 1e6 + UPDATE_BYTES * parameters / bandwidth(session) * 1e3
    note = f"ours {session.spread(mine)} ms, {other['peer']} compile {other['compile']} {session.spread(theirs)} ms, bound {bound:.0f} ms"
    asked = min(GOAL[item.precision], 0.8 * their_step / bound)
    details = {"ours_ms": mine, "peer_ms": theirs, "peer": other}
    session.record("4f", f"{what}, fraction of the bound", bound / step, target_of(0.5, 0.8, 0.9), note)
    session.record("4f", f"{what}, ours / PyTorch", their_step / step, target_of(1, asked, 1.25 * asked), note, **details)
    beyond = [(bytes_ - KEPT_BYTES * parameters) / 2.0**20 for bytes_ in memory]
    note = f"ours {beyond[0]:.0f} MiB, PyTorch {beyond[1]:.0f} MiB beyond {KEPT_BYTES} bytes a parameter"
    session.record("4f", f"{what}, memory beyond the parameters', ours / PyTorch", beyond[0] / beyond[1], target_of(0.9, 0.6, 0.45, larger=False), note)


def goal(session, target_of):
    for item in ITEMS:
        session.attempt(f"goal 4f {item.model}", lambda item=item: side_by_side(session, item, target_of))


GOALS = {"goal4f": goal}
