#!/usr/bin/env python3
"""The twin of examples/lattices_resnet.toml in PyTorch: the same network, images, optimizer and schedule, for comparing accuracies.

The images are read from files that `tutti data generate lattices DIR` wrote. --replicas N gives batch norm the statistics of each N-th
part of the batch, with running averages of each part's own that are averaged for an evaluation, as data-parallel replicas have them.
Prints one line of JSON: the test accuracies after each epoch.
"""
import argparse
import json
import math
import os

import allocator
import serve

HEADER, SIDE, CLASSES = 64, 64, 5
MEAN, DEVIATION = 0.2398, 0.1710  # of tutti/data/open/catalog.cpp


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--batch", type=int, default=64, help="samples of a step, over all replicas")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--train", type=int, default=0, help="use only the first N training images")
    parser.add_argument("--double", action="store_true", help="compute in double precision: the reference for both")
    parser.add_argument("--max-steps", type=int, default=0, help="stop there; the schedule stays")
    parser.add_argument("--weights", metavar="FILE", help="begin with these, a weights.safetensors of Tutti")
    parser.add_argument("--same-order", action="store_true", help="take the images in Tutti's order")
    parser.add_argument("--compare", metavar="FILE", help="with --weights: at the end, how far the weights are from these")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mean", type=float, default=MEAN)
    parser.add_argument("--std", type=float, default=DEVIATION)
    parser.add_argument("--last-only", action="store_true", help="evaluate after the last epoch only")
    parser.add_argument("--allocator", choices=["tuned", "stock"], default="tuned")
    return parser.parse_args()


def one_cycle(step, steps, peak_at=0.3, first=0.04):
    """The factor of tutti/train/network/schedule.cpp with cosine annealing, down to 0 at the last step."""
    peak, last = peak_at * steps - 1, steps - 1

    def anneal(a, b, progress):
        return b + (a - b) / 2 * (1 + math.cos(math.pi * progress))

    if step <= peak:
        return anneal(first, 1, step / peak)
    return anneal(1, 0, (step - peak) / (last - peak))


def safetensors(path):
    """{name: array} of the f32 tensors."""
    import numpy as np

    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    header.pop("__metadata__", None)
    cut = {name: body[slice(*about["data_offsets"])] for name, about in header.items()}
    return {name: np.frombuffer(cut[name], "<f4").reshape(about["shape"]).copy() for name, about in header.items()}


def difference(theirs, initial, model):
    """How far two trainings that began alike have come apart: the distance of their weights over the way that one has gone, all
    weights taken as one vector; and the same for the running averages of batch norm, which begin at 0 and 1."""
    import torch

    apart, gone = {"weights": 0.0, "running averages": 0.0}, {"weights": 0.0, "running averages": 0.0}

    def take(kind, name, ours, start):
        other = torch.from_numpy(theirs[name])
        apart[kind] += float((ours - other).double().square().sum())
        gone[kind] += float((other - start).double().square().sum())

    for name, parameter in model.named_parameters():
        take("weights", name, parameter.data, torch.from_numpy(initial[name]))
    for name, module in model.named_modules():
        if hasattr(module, "mean"):
            take("running averages", f"{name}.running_mean", sum(module.mean) / len(module.mean), 0.0)
            take("running averages", f"{name}.running_var", sum(module.var) / len(module.var), 1.0)
    return {kind: math.sqrt(apart[kind] / gone[kind]) for kind in apart}


def philox_words(seed, purpose, stream, block):
    """Four words of tutti/base/numeric/rng.h's stream of (seed, purpose, stream)."""
    low = 0xFFFFFFFF
    counter, key = [block, 0, stream & low, stream >> 32], [(seed & low) ^ (purpose * 0x85EBCA6B & low), seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & low, (a >> 32) ^ counter[3] ^ key[1], a & low]
        key = [(key[0] + 0x9E3779B9) & low, (key[1] + 0xBB67AE85) & low]
    return counter


def tutti_order(seed, epoch, size):
    """Permutation of tutti/data/pipeline/permutation.cpp: swap-or-not with keys from the Philox stream of (seed, shuffle, epoch)."""
    wide, rounds = 0xFFFFFFFFFFFFFFFF, 48
    words = [philox_words(seed, 2, epoch, block) for block in range(rounds)]
    numbers = [((w[0] << 32 | w[1]) % size, w[2] << 32 | w[3]) for w in words]

    def place(x):
        for pair_sum, salt in numbers:
            partner = (pair_sum - x) % size
            hashed = (max(x, partner) ^ salt) * 0x9E3779B97F4A7C15 & wide
            hashed = (hashed ^ hashed >> 32) * 0xD6E8FEB86659FD93 & wide
            x = partner if hashed >> 63 else x
        return x

    return [place(x) for x in range(size)]


def main(args):
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional as F

    serve.use_threads(torch, args.threads)
    torch.manual_seed(args.seed)
    if args.double:
        torch.set_default_dtype(torch.float64)

    class ReplicaNorm(nn.Module):
        """Batch norm with statistics of each replica's part of the batch."""

        def __init__(self, channels):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
            self.mean = [torch.zeros(channels) for _ in range(args.replicas)]
            self.var = [torch.ones(channels) for _ in range(args.replicas)]

        def forward(self, x):
            if not self.training:
                mean, var = sum(self.mean) / args.replicas, sum(self.var) / args.replicas
                return F.batch_norm(x, mean, var, self.weight, self.bias)
            if args.replicas == 1:
                return F.batch_norm(x, self.mean[0], self.var[0], self.weight, self.bias, training=True)
            parts = x.chunk(args.replicas)
            done = [F.batch_norm(p, m, v, self.weight, self.bias, training=True) for p, m, v in zip(parts, self.mean, self.var)]
            return torch.cat(done).contiguous(memory_format=torch.channels_last)

    def conv(inputs, outputs, kernel, stride):
        layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        return layer

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1, self.bn1 = conv(inputs, outputs, 3, stride), ReplicaNorm(outputs)
            self.conv2, self.bn2 = conv(outputs, outputs, 3, 1), ReplicaNorm(outputs)
            self.downsample = nn.Identity()
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), ReplicaNorm(outputs))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))

    class ResNet18(nn.Module):
        """Modules have torchvision's names, so that checkpoints of Tutti can be read."""

        def __init__(self, width):
            super().__init__()
            self.conv1, self.bn1 = conv(1, width, 7, 2), ReplicaNorm(width)
            for stage in range(4):
                inputs, outputs = width << max(0, stage - 1), width << stage
                blocks = nn.Sequential(Block(inputs, outputs, 2 if stage else 1), Block(outputs, outputs, 1))
                self.add_module(f"layer{stage + 1}", blocks)
            self.fc = nn.Linear(width << 3, CLASSES)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
            return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3)))

    def images(name, limit):
        records = np.fromfile(os.path.join(args.data_dir, name), np.uint8, offset=HEADER).reshape(-1, 1 + SIDE * SIDE)
        records = records[: limit or None]
        x = torch.from_numpy(records[:, 1:].copy()).to(torch.get_default_dtype()).div_(255).sub_(args.mean).div_(args.std)
        return x.reshape(-1, 1, SIDE, SIDE), torch.from_numpy(records[:, 0].astype(np.int64))

    x, labels = images("lattices-train.bin", args.train)
    test_x, test_labels = images("lattices-test.bin", 0)
    model = ResNet18(args.width).to(memory_format=torch.channels_last)
    if args.weights:
        initial = safetensors(args.weights)
        for name, parameter in model.named_parameters():
            parameter.data.copy_(torch.from_numpy(initial[name]))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    per_epoch = len(x) // args.batch
    accuracies, losses, step = [], [], 0
    for epoch in range(args.epochs):
        model.train()
        order = torch.tensor(tutti_order(args.seed, epoch, len(x))) if args.same_order else torch.randperm(len(x))
        for i in range(per_epoch):
            if args.max_steps and step == args.max_steps:
                break
            chosen = order[i * args.batch : (i + 1) * args.batch]
            optimizer.param_groups[0]["lr"] = args.lr * one_cycle(step, args.epochs * per_epoch)
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(x[chosen].contiguous(memory_format=torch.channels_last)), labels[chosen])
            loss.backward()
            losses.append(round(loss.item(), 5))
            optimizer.step()
            step += 1
        done = step == (args.max_steps or args.epochs * per_epoch)
        if args.last_only and not done:
            continue
        model.eval()
        with torch.no_grad():
            right = sum(int((model(a).argmax(1) == b).sum()) for a, b in zip(test_x.split(100), test_labels.split(100)))
        accuracies.append(right / len(test_x))
        if done:
            break
    about = {"peer": f"PyTorch {torch.__version__.split('+')[0]}", "parameters": sum(p.numel() for p in model.parameters())}
    if args.compare:
        about["difference"] = difference(safetensors(args.compare), safetensors(args.weights), model)
    about["losses"] = losses[:20]
    print(json.dumps({**about, "seed": args.seed, "replicas": args.replicas, "accuracies": accuracies}), flush=True)


if __name__ == "__main__":
    arguments_given = arguments()
    allocator.ensure(arguments_given.allocator)
    main(arguments_given)
