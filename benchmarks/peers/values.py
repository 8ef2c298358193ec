"""What cosmoflow.py and deepcam.py share: weights from Tutti's files into a PyTorch network, one pass forward and backward, and how far its
numbers are from Tutti's. With --against, an .npz of another such pass (in double precision, or in another layout), each tensor's distance from that
is printed twice, Tutti's and this pass's own: Tutti should not be more than twice as far. Beside single tensors stand all gradients as one vector:
its distance, and its cosine's from 1.

A file is what Tutti exports (weights.safetensors: tensors by name), or what the test program tutti_network_values writes: in, target, out,
loss, weight.NAME, gradient.NAME. Where a file has no inputs, random ones are taken. All numbers of the pass go to --out, an .npz with out,
loss and gradient.NAME; where the file has Tutti's, the distances (2-norm, relative) are printed.
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import argparse
import json

import numpy as np
import torch

TYPES = {"F32": "<f4", "I32": "<i4", "F64": "<f8", "I64": "<i8", "BF16": "<u2"}


def numbers(raw, dtype):
    """Those of bf16 as f32, whose upper halves they are."""
    array = np.frombuffer(raw, TYPES[dtype])
    return (array.astype("<u4") << 16).view("<f4") if dtype == "BF16" else array.copy()


def safetensors(path):
    """{name: array}"""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    header.pop("__metadata__", None)
    return {
        name: numbers(body[slice(*about["data_offsets"])], about["dtype"]).reshape(about["shape"])
        for name, about in header.items()
    }


def arguments(description):
    parser = argparse.ArgumentParser(description=description + "\n\n" + __doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="safetensors of Tutti")
    parser.add_argument("--out", metavar="FILE.npz")
    parser.add_argument("--double", action="store_true", help="compute in double precision")
    parser.add_argument("--bf16", action="store_true", help="compute under torch.autocast in bf16")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's layout with the channels innermost")
    parser.add_argument("--against", metavar="FILE.npz", help="a pass to measure both from; ends with 1 if Tutti is more than twice as far from it")
    parser.add_argument("--batch", type=int, default=2, help="samples, where the file has no inputs")
    parser.add_argument("--side", type=int, nargs="+", default=[], help="spatial extents, where the file has no inputs")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="end with 1 if a distance is larger")
    return parser.parse_args()


def load(model, tensors):
    """Weights by name. A tensor may have other extents of 1 than the parameter."""
    weights = {name.removeprefix("weight."): array for name, array in tensors.items() if not name.startswith("gradient.")}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(weights[name]).reshape(parameter.shape))


class Surprise(torch.nn.Module):
    """-log p of the target's tokens, 0 where none is known. logits_of() gives the network's logits [N, T, vocabulary]."""

    def __init__(self, network, logits_of, target):
        super().__init__()
        self.network, self.logits_of, self.target = network, logits_of, target

    def forward(self, _):
        self.logits = self.logits_of().transpose(1, 2)
        each = torch.nn.functional.cross_entropy(self.logits, self.target.clamp(min=0), reduction="none")
        return torch.where(self.target >= 0, each, torch.zeros_like(each)).unsqueeze(1)

    def named_parameters(self, *args, **kwargs):
        return self.network.named_parameters(*args, **kwargs)


def distance(ours, theirs, floor=1e-12):
    ours, theirs = np.asarray(ours, "f8").ravel(), np.asarray(theirs, "f8").ravel()
    return float(np.linalg.norm(ours - theirs) / (np.linalg.norm(theirs) + floor))


def whole(tensors, names):
    return np.concatenate([np.asarray(tensors[name], "f8").ravel() for name in names])


def compare_gradients(ours, this, other):
    """All of them as one vector."""
    names = [name for name in this if name.startswith("gradient.") and name in ours]
    if not names:
        return
    exact = whole(other, names)
    for side, gradients in (("Tutti", whole(ours, names)), ("PyTorch", whole(this, names))):
        cosine = gradients @ exact / (np.linalg.norm(gradients) * np.linalg.norm(exact))
        print(f"{side}: the whole gradient is {distance(gradients, exact):.2e} away, its cosine {1 - cosine:.2e} from 1")


def compare(ours, this, other):
    """Prints how far both are from `other`, worst first. Whether Tutti is nowhere more than twice as far."""
    rows = sorted(
        ((distance(ours[name], other[name]), distance(array, other[name]), name) for name, array in this.items() if name in ours),
        key=lambda row: -row[0] / max(row[1], 1e-12),
    )
    print("    Tutti   PyTorch  ratio")
    for tutti, torch_, name in rows[:12]:
        print(f"{tutti:9.2e} {torch_:9.2e} {tutti / max(torch_, 1e-12):6.2f}  {name}")
    tutti, torch_ = np.array([row[:2] for row in rows]).T
    print(f"{len(rows)} tensors, the largest distances are {tutti.max():.2e} and {torch_.max():.2e}, medians {np.median(tutti):.2e} and {np.median(torch_):.2e}")
    beyond = int((tutti > 2 * torch_).sum())
    print(f"median ratio {np.median(tutti / np.maximum(torch_, 1e-12)):.2f}, {beyond} tensors more than twice as far")
    for name in ("out", "loss"):
        print(f"{name}: {distance(ours[name], other[name]):.2e} and {distance(this[name], other[name]):.2e}")
    compare_gradients(ours, this, other)
    return beyond == 0


def run(model, tensors, random_input, random_target, loss_of, args, floor=1e-12):
    """One pass; returns the program's exit status. Tensors that vanish are compared in absolute terms, by `floor`."""
    dtype = torch.float64 if args.double else torch.float32
    model = model.to(dtype).train()
    load(model, tensors)
    x = torch.from_numpy(tensors["in"]) if "in" in tensors else random_input()
    target = torch.from_numpy(tensors["target"]) if "target" in tensors else random_target()
    if args.channels_last:
        layout = torch.channels_last_3d if x.dim() == 5 else torch.channels_last
        model, x = model.to(memory_format=layout), x.to(memory_format=layout)
    with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
        out = model(x.to(dtype))
    if args.bf16:
        out = out.float()  # as those who train in bf16 compute losses
    loss = loss_of(out, target)
    loss.backward()
    got = {"out": out.detach().numpy(), "loss": loss.detach().numpy()}
    got |= {"gradient." + name: p.grad.numpy() for name, p in model.named_parameters()}
    if args.out:
        np.savez(args.out, **got)
    print(f"parameters {sum(p.numel() for p in model.parameters())}, loss {loss.item():.7g}")
    if args.against:
        return int(not compare(tensors, got, np.load(args.against)))
    far = {name: distance(tensors[name], array, floor) for name, array in got.items() if name in tensors}
    for name, d in sorted(far.items(), key=lambda item: -item[1])[:12]:
        print(f"{d:9.2e}  {name}")
    if far:
        print(f"compared {len(far)} tensors, the largest distance is {max(far.values()):.2e}")
    return int(any(not d <= args.tolerance for d in far.values()))
