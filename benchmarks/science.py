"""Goals 4 to 4e and 4g of `compare`: large networks beside tuned PyTorch, and one large sample on threads and ranks.

A step takes from half a second to a minute, so a run of a side is one step of CosmoFlow and DeepCAM and three of ResNet-50, the peer's settings
are tried with one run each, and a side that says nothing for --limit seconds is ended, which costs its item only.
"""
import dataclasses
import statistics

import sides

PEERS = {"resnet50": ["resnet50.py"], "cosmoflow": ["science.py", "--network", "cosmoflow"], "deepcam": ["science.py", "--network", "deepcam"], "protein-vae": ["protein_vae.py"], "ffn": ["ffn.py"], "dlrm": ["dlrm.py"]}
PEERS["tilt"] = ["resnet50.py", "--tilt"]  # atom microscopy: four numbers of one channel, Huber loss
MODELS = {"dlrm": ["dlrm", "--table-rows", 100000], "tilt": ["resnet50", "--input", "1x224x224", "--task", "regress", "--classes", 4, "--loss", "huber"]}  # others by their names


@dataclasses.dataclass
class Item:
    goal: str
    model: str
    precision: str
    batch: int
    ratio: tuple
    of_peak: tuple = ()
    steps: int = 1
    error: float = 2  # plan.bf16_error of ours: 1 without Winograd, 3 with it in three dimensions, too


ITEMS = [
    Item("4", "resnet50", "fp32", 16, (1.15, 1.35, 1.5), (0.6, 0.80, 0.88), 3),
    Item("4", "cosmoflow", "fp32", 1, (1.15, 1.3, 1.4), (0.6, 0.82, 0.88)),
    Item("4", "cosmoflow", "fp32", 2, (1.15, 1.3, 1.4), (0.6, 0.82, 0.88)),
    Item("4b", "resnet50", "bf16", 16, (1.3, 1.55, 1.8), (), 3),
    Item("4b", "cosmoflow", "bf16", 1, (1.3, 1.4, 1.55)),
    Item("4b", "cosmoflow", "bf16", 2, (1.3, 1.4, 1.55)),
    Item("4c", "deepcam", "fp32", 1, (1.1, 1.4, 1.5), (0.5, 0.75, 0.82)),
    Item("4c", "deepcam", "bf16", 1, (1.1, 1.4, 1.5)),
    Item("4g", "resnet50", "bf16", 16, (1.3, 1.55, 1.8), (), 3, error=1),
    Item("4g", "cosmoflow", "bf16", 1, (1.3, 1.4, 1.55), error=3),
    Item("4g", "deepcam", "bf16", 1, (1.1, 1.4, 1.5), error=1),
    Item("4g", "tilt", "bf16", 16, (1.15, 1.4, 1.5), (), 3, error=1),
    Item("4e", "protein-vae", "fp32", 100, (1.2, 1.5, 1.7), (), 3),
    Item("4e", "protein-vae", "fp32", 1000, (1.2, 1.5, 1.7)),
    Item("4e", "ffn", "fp32", 4, (1.2, 1.5, 1.7), (0.6, 0.75, 0.85)),
    Item("4e", "tilt", "fp32", 16, (1.15, 1.4, 1.5), (), 3),
    Item("4e", "tilt", "bf16", 16, (1.15, 1.4, 1.5), (), 3),
    Item("4e", "dlrm", "fp32", 128, (1.1, 1.3, 1.5), (), 30),
    Item("4e", "dlrm", "fp32", 2048, (1.1, 1.3, 1.5), (), 5),
]


def ours(session, model, precision, batch, threads=2, extra=()):
    command = [session.args.tutti, "bench", "step", "--model", *MODELS.get(model, [model]), "--precision", precision, "--batch", batch]
    return [*command, "--threads", threads, "--warmup", 1, *extra]


def peer(session, item):
    """The peer's command with its fastest setting."""
    script, *extra = PEERS[item.model]
    base = [session.args.python[0], session.peers / script, *extra, "--precision", item.precision, "--batch", item.batch, "--threads", 2]
    compiles = [["--compile", "off"]] + ([["--compile", "default"]] if session.args.compile else [])
    axes = [[["--layout", "channels_last"], ["--layout", "contiguous"]], compiles]
    return [*base, "--warmup", 1, *sides.fastest([*base, "--warmup", 1], axes, print, steps=1, limit=session.args.limit)]


def turns(session, commands, steps):
    """Runs the commands' sides in turns: per side the mean step of each run in ms, what it is, and its peak memory in bytes."""
    memory = [0] * len(commands)
    opened = []
    try:
        for command in commands:
            opened.append(sides.Side(command, limit=session.args.limit))
        figures = [[] for _ in commands]
        for _ in range(session.args.repeats):
            for i, side in enumerate(opened):
                answer = side.run(steps)
                figures[i].append(sides.mean_step_ms(answer))
                memory[i] = answer["peak_rss_bytes"]
        return figures, [side.about for side in opened], memory
    finally:
        for side in opened:
            side.__exit__()


def side_by_side(session, item, target_of):
    what = f"{item.model} {item.precision}{f', bf16_error {item.error}' if item.error != 2 else ''}, batch {item.batch}, 2 threads"
    if session.has(item.goal, f"{what}, ours / PyTorch"):
        return
    extra = ("--set", f"plan.bf16_error={item.error}") if item.error != 2 else ()
    commands = [ours(session, item.model, item.precision, item.batch, extra=extra), peer(session, item)]
    (mine, theirs), (about, other), (memory, their_memory) = turns(session, commands, item.steps)
    step = statistics.median(mine)
    mib = 2.0**20
    spread = session.spread
    note = f"ours {spread(mine)} ms in {memory / mib:.0f} MiB, {other['peer']} {other['layout']} {spread(theirs)} ms in {their_memory / mib:.0f} MiB"
    session.record("13", f"{what}, peak memory ours / PyTorch", memory / their_memory, target_of(0.9, 0.6, 0.45, larger=False), note)
    if item.of_peak:
        rate = about["flop_per_image"] * item.batch / step / 1e6
        peak = session.peak()
        note_of_peak = f"{rate:.0f} GFLOP/s of {peak:.0f}"
        session.record(item.goal, f"{what}, fraction of fp32 peak", rate / peak, target_of(*item.of_peak), note_of_peak)
    session.record(item.goal, f"{what}, ours / PyTorch", statistics.median(theirs) / step, target_of(*item.ratio), note, ours_ms=mine, peer_ms=theirs, peer=other)


def goal(name):
    def measure(session, target_of):
        for item in ITEMS:
            if item.goal == name:
                session.attempt(f"goal {name} {item.model}", lambda item=item: side_by_side(session, item, target_of))

    return measure


def goal4d(session, target_of):
    """CosmoFlow, batch 1: 2 threads, and 2 ranks that share the sample, against one thread."""
    what = "cosmoflow fp32, batch 1"
    if session.has("4d", f"{what}, 2 spatial ranks against 1"):
        return
    one = ours(session, "cosmoflow", "fp32", 1, threads=1)
    two = ours(session, "cosmoflow", "fp32", 1, threads=2)
    parts = ours(session, "cosmoflow", "fp32", 1, threads=1, extra=("--ranks", 2, "--spatial", 2))
    (a, b, c), _, (memory, _, of_part) = turns(session, [one, two, parts], 1)
    alone = statistics.median(a)
    note = f"{session.spread(a)} ms on one thread"
    session.record("4d", f"{what}, peak memory of a part / of 1 rank", of_part / memory, target_of(0.85, 0.75, 0.65, larger=False), "whole processes")
    session.record("4d", f"{what}, 2 threads against 1", alone / statistics.median(b), target_of(1.5, 1.85, 1.92), f"{session.spread(b)} of {note}")
    session.record("4d", f"{what}, 2 spatial ranks against 1", alone / statistics.median(c), target_of(1.5, 1.8, 1.9), f"{session.spread(c)} of {note}")


GOALS = {"goal4": goal("4"), "goal4b": goal("4b"), "goal4c": goal("4c"), "goal4d": goal4d, "goal4e": goal("4e"), "goal4g": goal("4g")}
