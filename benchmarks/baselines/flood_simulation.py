#!/usr/bin/env python3
"""What a training run with moving fields of view must have done, computed by another program in double precision.

Of a run of tests/training/neurons.toml (batches without chance, plain SGD, a checkpoint after every step) this script draws the seeds, orders the moves,
crops the fields of view, runs the network forward and backward, sums the gradients of the replicas, updates, writes the logits back and moves on:
with NumPy alone, and with random numbers of its own making. It reads the volumes, and the first weights from a run whose rate is 0;
everything else is compared:

  place of every seed after every step     equal
  logits of every canvas, weights, losses  up to rounding

    tutti data generate neurons tissue --side 24 --radius 4 --train 2 --test 1 --seed 3
    tutti train tests/training/neurons.toml --data-dir tissue --output-dir run
    tutti train tests/training/neurons.toml --data-dir tissue --max-steps 1 --set optimizer.lr=0 --output-dir run.before
    python3 benchmarks/baselines/flood_simulation.py run tissue
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import argparse
import itertools
import json
import tomllib

import h5py
import numpy as np

MASK = 0xFFFFFFFF
SHUFFLE, SEEDS = 2, 8


class Rng:
    """Philox4x32-10 as tutti/base/numeric/rng.h counts it."""

    def __init__(self, seed, purpose, stream):
        self.key = ((seed & MASK) ^ (purpose * 0x85EBCA6B & MASK), seed >> 32)
        self.stream, self.counter, self.left = stream, 0, []

    def u32(self):
        if not self.left:
            c, k = [self.counter & MASK, self.counter >> 32, self.stream & MASK, self.stream >> 32], list(self.key)
            for _ in range(10):
                a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
                c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
                k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
            self.left, self.counter = c[::-1], self.counter + 1
        return self.left.pop()

    def u64(self):
        high = self.u32()
        return high << 32 | self.u32()

    def below(self, bound):
        return self.u32() * bound >> 32


def shuffled(items, rng):
    items = list(items)
    for i in range(len(items), 1, -1):
        j = rng.below(i)
        items[i - 1], items[j] = items[j], items[i - 1]
    return items


def safetensors(path):
    body = path.read_bytes()
    size = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + size])
    header.pop("__metadata__", None)
    data = body[8 + size :]
    return {n: np.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]).astype(float) for n, t in header.items()}


def windows(x, kernel):
    pad = kernel // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad), (pad, pad)))
    return np.lib.stride_tricks.sliding_window_view(x, (kernel,) * 3, (2, 3, 4))


def convolve(x, w, b):
    return np.einsum("ncdhwijk,ocijk->nodhw", windows(x, w.shape[2]), w, optimize=True) + b[None, :, None, None, None]


class Network:
    def __init__(self, weights):
        self.w = weights
        self.depth = sum(name.endswith("_a.weight") for name in weights)

    def layer(self, name, x):
        return convolve(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def back(self, name, x, dy, gradient):
        w = self.w[name + ".weight"]
        gradient[name + ".weight"] = np.einsum("ncdhwijk,nodhw->ocijk", windows(x, w.shape[2]), dy, optimize=True)
        gradient[name + ".bias"] = dy.sum((0, 2, 3, 4))
        return np.einsum("nodhwijk,ocijk->ncdhw", windows(dy, w.shape[2]), w[:, :, ::-1, ::-1, ::-1], optimize=True)

    def step(self, image, seed, label):
        """Logits, loss and gradients."""
        relu = lambda v: np.maximum(v, 0)
        first = np.concatenate([image, seed], 1)
        hidden = self.layer("conv0_a", first)
        x = [self.layer("conv0_b", relu(hidden))]
        inner = []
        for i in range(1, self.depth):
            inner.append(self.layer(f"conv{i}_a", relu(x[-1])))
            x.append(x[-1] + self.layer(f"conv{i}_b", relu(inner[-1])))
        logits = self.layer("conv_lom", relu(x[-1])) + seed
        loss = np.mean(np.maximum(logits, 0) - logits * label + np.log1p(np.exp(-np.abs(logits))))
        gradient = {}
        dx = self.back("conv_lom", relu(x[-1]), (1 / (1 + np.exp(-logits)) - label) / logits.size, gradient) * (x[-1] > 0)
        for i in range(self.depth - 1, 0, -1):
            dy = self.back(f"conv{i}_b", relu(inner[i - 1]), dx, gradient) * (inner[i - 1] > 0)
            dx = dx + self.back(f"conv{i}_a", relu(x[i - 1]), dy, gradient) * (x[i - 1] > 0)
        dy = self.back("conv0_b", relu(hidden), dx, gradient) * (hidden > 0)
        self.back("conv0_a", first, dy, gradient)
        return logits, loss, gradient


def seed_parts(volumes, wide, tracing):
    """The voxels of each part that is not empty, as (volume, z, y, x)."""
    parts = {}
    half = [w // 2 for w in wide]
    for number, (_, labels) in enumerate(volumes):
        ids, counts = np.unique(labels, return_counts=True)
        large = {int(i) for i, c in zip(ids, counts) if i > 0 and c >= tracing["min_object"]}
        for at in itertools.product(*(range(h, n - h) for h, n in zip(half, labels.shape))):
            own = int(labels[at])
            if own in large:
                box = labels[tuple(slice(a - h, a + h + 1) for a, h in zip(at, half))]
                fraction = float((box == own).sum()) / box.size
                parts.setdefault(sum(b <= fraction for b in tracing["partitions"]), []).append((number, *at))
    return [parts[k] for k in sorted(parts)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=2e-4, help="of logits, weights and losses")
    args = parser.parse_args()
    config = tomllib.loads((args.run / "config.toml").read_text())
    tracing = {"partitions": [0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], "move_threshold": 0.9} | config["tracing"]
    seed, draw = config["run"].get("seed", 1), config["data"].get("split_seed", 1)
    fov, deltas, count = tracing["fov"], tracing["deltas"], tracing["seeds"]
    replicas, places, rate = config["run"]["replicas"], config["batch"]["local"], config["optimizer"]["lr"]
    wide = [f + 2 * d for f, d in zip(fov, deltas)]
    volumes = []
    for path in sorted((args.data / "train").glob("*.h5")):
        with h5py.File(path) as file:
            volumes.append((file["raw"][...], file["labels"][...]))
    parts = seed_parts(volumes, wide, tracing)
    moves = [m for m in itertools.product(*((-d, 0, d) for d in deltas)) if any(m)]
    moves = [(0, 0, 0), *shuffled(moves, Rng(seed, SEEDS, 1 << 63))]
    threshold = np.log(tracing["move_threshold"] / (1 - tracing["move_threshold"]))
    per_epoch = count // replicas

    def canvas_of(replica, k):
        order = shuffled(range(count), Rng(seed, SHUFFLE, k // per_epoch))
        index = order[k % per_epoch * replicas + replica]
        part = parts[index % len(parts)]
        number, *at = part[Rng(draw, SEEDS, index).u64() % len(part)]
        box = tuple(slice(a - w // 2, a - w // 2 + w) for a, w in zip(at, wide))
        raw, labels = volumes[number]
        logits = np.full(wide, np.log(0.05 / 0.95))
        logits[tuple(w // 2 for w in wide)] = np.log(0.95 / 0.05)
        return [(raw[box] - 128.0) / 33, np.where(labels[box] == labels[tuple(at)], 0.95, 0.05), logits]

    taken = [places] * replicas
    flights = [[[k, 0, canvas_of(r, k)] for k in range(places)] for r in range(replicas)]
    steps = sorted((args.run / "checkpoints").glob("step_*[0-9]"))
    losses = [json.loads(line)["loss"] for line in (args.run / "record.jsonl").read_text().splitlines() if '"event":"step"' in line]
    worst = {"logits": 0.0, "weights": 0.0, "losses": 0.0}
    visited, weights = 0, None
    for step, folder in enumerate(steps):
        after = safetensors(folder / "weights.safetensors")
        if weights is None:
            weights = first_weights(args, after)
        network, gradients, mean_loss = Network(weights), [], 0.0
        for r in range(replicas):
            views = [tuple(slice(d + m, d + m + f) for d, m, f in zip(deltas, moves[s[1]], fov)) for s in flights[r]]
            image, label, logits = (np.stack([s[2][i][v][None] for s, v in zip(flights[r], views)]) for i in range(3))
            out, loss, gradient = network.step(image, logits, label)
            gradients.append(gradient)
            mean_loss += loss / replicas
            for s, v, y in zip(flights[r], views, out):
                visited += 1
                canvas = s[2][2]
                canvas[v] = y[0]
                middle = lambda m: tuple(w // 2 + a for w, a in zip(wide, m))
                s[1] = next((m for m in range(s[1] + 1, len(moves)) if canvas[middle(moves[m])] >= threshold), len(moves))
                if s[1] == len(moves):
                    s[0], s[1], s[2] = taken[r], 0, canvas_of(r, taken[r])
                    taken[r] += 1
        weights = {n: w - rate * sum(g[n] for g in gradients) / replicas for n, w in weights.items()}
        row = 0
        for file in sorted((folder / "ranks").glob("*.safetensors"), key=lambda p: int(p.stem)):
            kept = safetensors(file)
            for canvases, place, number in zip(kept["seeds/canvas"], kept["seeds/place"], kept["seeds/taken"]):
                assert number[0] == taken[row], f"step {step + 1}, replica {row}: {number[0]:.0f} seeds taken, not {taken[row]}"
                for s, theirs, at in zip(flights[row], canvases, place):
                    assert (s[0], s[1]) == (at[0], at[3]), f"step {step + 1}, replica {row}: at {at}, not {s[:2]}"
                    worst["logits"] = max(worst["logits"], np.abs(s[2][2].ravel() - theirs).max())
                row += 1
        worst["weights"] = max(worst["weights"], *(np.abs(weights[n] - after[n]).max() for n in weights))
        worst["losses"] = max(worst["losses"], abs(mean_loss - losses[step]))
    print(f"{len(steps)} steps of {replicas} replicas, {visited} fields of view, {sum(taken)} seeds: all places equal; largest differences " + ", ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    return int(max(worst.values()) > args.tolerance)


def first_weights(args, after):
    """The weights before the first step: of a run with optimizer.lr = 0 and the same seed, --output-dir RUN.before."""
    before = pathlib.Path(str(args.run) + ".before") / "checkpoints" / "step_0000001" / "weights.safetensors"
    if not before.exists():
        sys.exit(f"{before} is missing: tutti train tests/training/neurons.toml --data-dir tissue --max-steps 1 --set optimizer.lr=0 --output-dir {args.run}.before")
    weights = safetensors(before)
    assert weights.keys() == after.keys()
    return weights


if __name__ == "__main__":
    sys.exit(main())
