#!/usr/bin/env python3
"""The autoencoder of contact maps against an independent computation in double precision, with numpy alone.

  protein_vae_reference.py [--tutti build/tutti] [--side 9]

It makes weights and maps, lets `tutti eval` predict and `tutti train` take one step of plain SGD, and computes the same by hand: latent numbers,
logits, both losses, and the gradient of every parameter (the step's change of it). z_log_var starts at -40, so that what is drawn, exp(-40) times a
normal number, is nothing in f32. Prints the largest difference of each, as a share of the largest value; exit status 1 where one is above 1e-5.
"""
import one_line  # what is said of inputs
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

STRIDES = (1, 2, 1, 1)
CONFIG = """
[run]
output_dir = "{folder}/run"
max_steps = 1
threads = 1
log_every = 1
eval_every = 0
[data]
dataset = "arrays"
dir = "{folder}"
train_files = ["maps.npy"]
validation_files = ["maps.npy"]
fields = ["map: from array axis 0"]
target = "map"
[model]
name = "protein-vae"
width = {maps}
weights = "{folder}/start.safetensors"
[optimizer]
name = "sgd"
lr = {lr}
momentum = 0.0
nesterov = false
weight_decay = 0.0
[batch]
global = {batch}
"""


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + 4 * x.size]}
        at += 4 * x.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(x.astype("<f4").tobytes() for x in tensors.values()))


def read_safetensors(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, about in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in about["data_offsets"])
            tensors[name] = np.frombuffer(content[begin:end], "<f4").reshape(about["shape"]).astype(float)
    return tensors


def windows(x, a, b, stride, rows):
    return x[:, :, a : a + stride * rows : stride, b : b + stride * rows : stride]


def gathered(x, w, stride):
    """x [N, C, R, R] with its padding, w [O, C, 3, 3] -> [N, O, rows, rows]."""
    rows = (x.shape[2] - 3) // stride + 1
    return sum(np.einsum("nchw,oc->nohw", windows(x, a, b, stride, rows), w[:, :, a, b]) for a in range(3) for b in range(3))


def scattered(y, w, stride, padded):
    """The adjoint of gathered: y [N, O, rows, rows] -> [N, C, padded, padded]."""
    x = np.zeros((len(y), w.shape[1], padded, padded))
    for a in range(3):
        for b in range(3):
            windows(x, a, b, stride, y.shape[2])[:] += np.einsum("nohw,oc->nchw", y, w[:, :, a, b])
    return x


def weight_gradient(x, dy, stride):
    dw = np.zeros((dy.shape[1], x.shape[1], 3, 3))
    for a in range(3):
        for b in range(3):
            dw[:, :, a, b] = np.einsum("nchw,nohw->oc", windows(x, a, b, stride, dy.shape[2]), dy)
    return dw


def low_pad(stride):
    return 1 if stride == 1 else 0


def padded(x, stride):
    return np.pad(x, ((0, 0), (0, 0), (low_pad(stride), 1), (low_pad(stride), 1)))


def cut(x, stride):
    return x[:, :, low_pad(stride) : -1, low_pad(stride) : -1]


def network(w, maps):
    """Latent numbers, logits, the two losses, and the gradient of their sum by each parameter."""
    side, batch, g = maps.shape[-1], len(maps), {}
    odd = side % 2
    x = np.pad(maps, ((0, 0), (0, 0), (0, odd), (0, odd)))
    encoder = []
    for i, s in enumerate(STRIDES):
        before = padded(x, s)
        x = np.maximum(gathered(before, w[f"conv{i + 1}.weight"], s) + w[f"conv{i + 1}.bias"][:, None, None], 0)
        encoder.append((before, x))
    flat = x.reshape(batch, -1)
    h1 = np.maximum(flat @ w["fc1.weight"].T + w["fc1.bias"], 0)
    mean = h1 @ w["z_mean.weight"].T + w["z_mean.bias"]
    logvar = h1 @ w["z_log_var.weight"].T + w["z_log_var.bias"]
    h2 = np.maximum(mean @ w["fc2.weight"].T + w["fc2.bias"], 0)
    h3 = np.maximum(h2 @ w["fc3.weight"].T + w["fc3.bias"], 0)
    y = h3.reshape(x.shape)
    decoder = []
    for k, s in enumerate(reversed(STRIDES)):
        name = f"deconv{k + 1}"
        out = cut(scattered(y, w[name + ".weight"], s, s * y.shape[2] + 1 + low_pad(s)), s) + w[name + ".bias"][:, None, None]
        if k < 3:
            out = np.maximum(out, 0)
        decoder.append((y, out))
        y = out
    logits = y[:, :, :side, :side]
    crossed = (np.maximum(logits, 0) - logits * maps + np.log1p(np.exp(-abs(logits)))).sum() / batch
    divergence = -0.5 * (1 + logvar - mean**2 - np.exp(logvar)).mean()

    dy = np.zeros_like(y)
    dy[:, :, :side, :side] = (1 / (1 + np.exp(-logits)) - maps) / batch
    for k in (3, 2, 1, 0):
        name, s = f"deconv{k + 1}", STRIDES[3 - k]
        before, out = decoder[k]
        if k < 3:
            dy = dy * (out > 0)
        g[name + ".bias"] = dy.sum((0, 2, 3))
        wide = padded(dy, s)
        g[name + ".weight"] = weight_gradient(wide, before, s)
        dy = gathered(wide, w[name + ".weight"], s)

    def dense(name, inputs, dout):
        g[name + ".weight"], g[name + ".bias"] = dout.T @ inputs, dout.sum(0)
        return dout @ w[name + ".weight"]

    dh2 = dense("fc3", h2, dy.reshape(batch, -1) * (h3 > 0))
    dmean = dense("fc2", mean, dh2 * (h2 > 0)) + mean / mean.size
    dlogvar = -0.5 * (1 - np.exp(logvar)) / logvar.size
    dh1 = dense("z_mean", h1, dmean) + dense("z_log_var", h1, dlogvar)
    dx = dense("fc1", flat, dh1 * (h1 > 0)).reshape(x.shape)
    for i in (3, 2, 1, 0):
        name, s = f"conv{i + 1}", STRIDES[i]
        before, out = encoder[i]
        dx = dx * (out > 0)
        g[name + ".bias"] = dx.sum((0, 2, 3))
        g[name + ".weight"] = weight_gradient(before, dx, s)
        dx = cut(scattered(dx, w[name + ".weight"], s, before.shape[2]), s)
    return mean, logvar, logits, crossed, divergence, g


def made_weights(random, side, maps, hidden=128, latent=3):
    flat = maps * ((side + 1) // 2) ** 2
    shapes = {f"conv{i + 1}": (maps, 1 if i == 0 else maps, 3, 3) for i in range(4)}
    shapes |= {"fc1": (hidden, flat), "z_mean": (latent, hidden), "z_log_var": (latent, hidden), "fc2": (hidden, latent), "fc3": (flat, hidden)}
    shapes |= {f"deconv{i + 1}": (maps, 1 if i == 3 else maps, 3, 3) for i in range(4)}
    weights = {}
    for name, shape in shapes.items():
        fan = shape[1] * (9 if len(shape) == 4 else 1)
        weights[name + ".weight"] = random.normal(0, fan**-0.5, shape).astype("f4")
        outputs = shape[1] if name.startswith("deconv") else shape[0]
        weights[name + ".bias"] = random.normal(0, 0.1, outputs).astype("f4")
    weights["z_log_var.bias"][:] = -40
    return weights


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", default="build/tutti")
    parser.add_argument("--side", type=int, default=9)
    parser.add_argument("--maps", type=int, default=4)
    parser.add_argument("--batch", type=int, default=3)
    parser.add_argument("--lr", type=float, default=4.0, help="large, so that the change of a weight keeps the digits of its gradient")
    args = parser.parse_args()
    tutti = str(pathlib.Path(args.tutti).resolve())
    random = np.random.default_rng(5)
    weights = made_weights(random, args.side, args.maps)
    maps = (random.random((args.batch, 1, args.side, args.side)) < 0.3).astype("f4")
    worst = 0

    def compare(what, ours, reference):
        nonlocal worst
        share = abs(ours - reference).max() / abs(reference).max()
        worst = max(worst, share)
        print(f"{what:<20} {share:.1e}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "maps.npy", maps)
        write_safetensors(folder / "start.safetensors", weights)
        config = folder / "run.toml"
        config.write_text(CONFIG.format(folder=name, maps=args.maps, batch=args.batch, lr=args.lr))

        def run(*command):
            done = subprocess.run([tutti, *command], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")

        run("eval", str(config), "--weights", str(folder / "start.safetensors"), "--logits", str(folder / "out.npy"))
        run("train", str(config))
        mean, logvar, logits, crossed, divergence, gradient = network({k: v.astype(float) for k, v in weights.items()}, maps.astype(float))
        compare("z_mean", np.load(folder / "out.z_mean.npy"), mean)
        compare("z_log_var", np.load(folder / "out.z_log_var.npy"), logvar)
        compare("logits", np.load(folder / "out.npy"), logits)
        steps = [json.loads(line) for line in (folder / "run/record.jsonl").read_text().splitlines()]
        loss = next(step["loss"] for step in steps if step.get("event") == "step")
        compare("sum of losses", np.array(loss), np.array(crossed + divergence))
        after = read_safetensors(next(folder.glob("run/checkpoints/step_0000001/weights.safetensors")))
        for parameter, reference in gradient.items():
            compare(parameter, (weights[parameter].astype(float) - after[parameter]) / args.lr, reference)
    sys.exit(1 if worst > 1e-5 else 0)


if __name__ == "__main__":
    main()
