"""Goals 4f and 5f of `compare`: whole training steps of GPT-2 and of a vision transformer beside tuned PyTorch, AdamW on both sides; 5f is GPT-2 on two
ranks of one thread beside DistributedDataParallel over Gloo.

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
    ranks: int = 1  # each has a batch

    @property
    def what(self):
        sizes = f"{self.batch} x {self.window}" if self.window else f"batch {self.batch}"
        return f"{self.model} {self.precision}, {sizes}, {'2 threads' if self.ranks == 1 else f'{self.ranks} ranks x 1 thread'}"


ITEMS = [
    Item(model, precision, batch, window, steps)
    for model, batch, window, steps in (("gpt2", 4, 64, 5), ("gpt2", 4, 256, 2), ("gpt2", 1, 1024, 2), ("gpt2 of characters", 64, 256, 1), ("vit-ti", 64, 0, 1))
    for precision in ("fp32", "bf16")
]
RANKS_ITEMS = [
    Item("gpt2", precision, batch, window, steps, ranks=2)
    for batch, window, steps in ((4, 64, 2), (4, 256, 1), (1, 1024, 1))
    for precision in ("fp32", "bf16")
]


def flags(item):
    flags_ = ["--precision", item.precision, "--batch", item.batch]
    if item.ranks == 1:
        return [*flags_, "--threads", 2, "--warmup", 1]
    return [*flags_, "--threads", 1, "--ranks", item.ranks, "--warmup", 3]  # DistributedDataParallel changes its buckets after the first step


def ours(session, item):
    if item.model not in SIZES:
        return [session.args.tutti, "bench", "step", "--model", item.model, "--optimizer", "adamw", *flags(item)]
    sizes = [word for name, value in SIZES[item.model].items() for word in (f"--{name}", value)]
    return [session.args.tutti, "bench", "step", "--model", "gpt2", "--optimizer", "adamw", "--input", item.window, *sizes, *flags(item)]


def peer(session, item):
    """The peer's command with its fastest setting."""
    script = "language.py" if item.ranks == 1 else "language_ddp.py"
    words = [script, "--window", item.window] if item.model in SIZES else ["vision.py"]
    for name, value in SIZES.get(item.model, {}).items():
        words += ["--vocabulary" if name == "classes" else f"--{name}", value]
    base = [session.args.python[0], session.peers / words[0], *words[1:], *flags(item)]
    axes = [[["--compile", "off"]] + ([["--compile", "default"]] if session.args.compile else [])]
    if item.ranks > 1:
        axes += [[["--pin"], []], [["--bucket-mb", 25], ["--bucket-mb", 100]]]
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


def ranks_side_by_side(session, item, target_of):
    what = f"{item.what}, ours / DDP + Gloo"
    if session.has("5f", what):
        return
    (mine, theirs), (_, other), memory = science.turns(session, [ours(session, item), peer(session, item)], item.steps)
    setting = f"{other['peer']}, compile {other['compile']}, {'pinned, ' if other['pinned'] else ''}buckets of {other['bucket_mb']:g} MB"
    mib = f"{memory[0] / 2.0**20:.0f} and {memory[1] / item.ranks / 2.0**20:.0f} MiB a rank"  # ours is of rank 0, theirs the sum
    note = f"ours {session.spread(mine)} ms, {setting} {session.spread(theirs)} ms; {mib}"
    details = {"ours_ms": mine, "peer_ms": theirs, "peer": other, "bytes": memory}
    session.record("5f", what, statistics.median(theirs) / statistics.median(mine), target_of(1, 1.5, 2), note, **details)


def goal(session, target_of):
    for item in ITEMS:
        session.attempt(f"goal 4f {item.model}", lambda item=item: side_by_side(session, item, target_of))


def goal_of_ranks(session, target_of):
    for item in RANKS_ITEMS:
        session.attempt(f"goal 5f {item.what}", lambda item=item: ranks_side_by_side(session, item, target_of))


GOALS = {"goal4f": goal, "goal5f": goal_of_ranks}
