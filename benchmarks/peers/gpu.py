#!/usr/bin/env python3
"""Whole training steps of ResNet-44, ResNet-50 or CosmoFlow in PyTorch on a GPU, on random data in its memory, channels last, SGD with momentum:
eager, and the whole step as a CUDA graph. A line "RESULT PRECISION pytorch-MODE MS" for each has the median of the steps.

fp32 is IEEE (no TF32 in convolutions and products), tf32 allows TF32 in both, bf16 is autocast with weights in fp32. With --ceilings: what PyTorch
reaches in copies, large products and launches. On --device cpu, where there are no graphs, it is a rehearsal.
"""
import argparse
import statistics
import time

import torch
from torch.nn import functional as F

BATCH = {"resnet44": 128, "resnet50": 256, "cosmoflow": 8}
WARMUP = 5  # steps before the first timed one; cuDNN chooses in them


def network(name, small):
    """The model, the extents of a sample, the layout, a maker of targets for a batch, and the loss."""
    if name == "resnet44":
        from resnet_cifar_model import ResNetCifar

        return ResNetCifar("resnet44"), (3, 32, 32), torch.channels_last, lambda n: torch.randint(10, (n,)), F.cross_entropy
    if name == "resnet50":
        from resnet import ResNet50

        model, shape = (ResNet50(3, 10, 4), (3, 32, 32)) if small else (ResNet50(3, 1000), (3, 224, 224))
        return model, shape, torch.channels_last, lambda n: torch.randint(model.fc.out_features, (n,)), F.cross_entropy
    from cosmoflow import CosmoFlow

    side, width = (32, 2) if small else (128, 32)
    channels = [4] + [width << i for i in range(5)]
    shapes = {f"conv{i}.weight": (channels[i], channels[i - 1], 3, 3, 3) for i in range(1, 6)}
    shapes |= {"fc1.weight": (128, channels[5] * (side // 32) ** 3), "fc2.weight": (64, 128), "fc3.weight": (4, 64)}
    return CosmoFlow(shapes), (4, side, side, side), torch.channels_last_3d, lambda n: torch.randn(n, 4), F.mse_loss


def settle(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def median_ms(step, steps, device):
    times = []
    for _ in range(steps):
        settle(device)
        begin = time.perf_counter()
        step()
        settle(device)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def make_step(args, device, precision):
    """A function without arguments that trains on a batch in the device's memory."""
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    model, shape, layout, target_of, loss_of = network(args.model, args.small)
    model = model.to(device, memory_format=layout).train()
    batch = args.batch or (2 if args.small else BATCH[args.model])
    x = torch.randn(batch, *shape).to(device, memory_format=layout)
    target = target_of(batch).to(device)
    fused = {"fused": True} if device.type == "cuda" else {}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, **fused)

    def step():
        # A graph keeps no copies of weights in bf16 from the step before.
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16", cache_enabled=False):
            out = model(x)
        loss_of(out.float(), target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)  # a graph makes gradients in memory of its own

    return step


def as_graph(step):
    """The step as one CUDA graph; it has run before on the stream that it is captured on."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARMUP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def train(args, device):
    for precision in args.precision:
        for mode in ("eager", "graph"):
            if mode == "graph" and device.type != "cuda":
                print(f"not run: {args.model} {precision} as a graph: only on a GPU", flush=True)
                continue
            try:
                step = make_step(args, device, precision)
                if mode == "graph":
                    step = as_graph(step)
                for _ in range(1 if args.small else WARMUP):
                    step()
                print(f"RESULT {precision} pytorch-{mode} {median_ms(step, args.steps, device):.3f}", flush=True)
            except RuntimeError as error:  # no memory, or a graph that cannot be captured: the others go on
                print(f"FAILED {args.model} {precision} {mode}: {str(error).splitlines()[0]}", flush=True)
            step = None
            if device.type == "cuda":
                print(f"{args.model} {precision} {mode}: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB at most", flush=True)
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()


def ceilings(args, device):
    side, count = (256, 1 << 16) if args.small else (8192, 1 << 28)
    a = torch.zeros(count, device=device)
    b = torch.empty_like(a)
    print(f"copy, read and written: {2 * 4 * count / median_ms(lambda: b.copy_(a), 10, device) * 1e-6:.1f} GB/s", flush=True)
    for name, dtype, tf32 in (("bf16", torch.bfloat16, False), ("tf32", torch.float32, True), ("fp32", torch.float32, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        x, y = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
        product = lambda: torch.mm(x, y)  # noqa: B023, E731
        product()
        print(f"product of {side} x {side} matrices, {name}: {2 * side**3 / median_ms(product, 10, device) * 1e-9:.1f} TFLOP/s", flush=True)
    small = torch.zeros(256, device=device)
    ms = median_ms(lambda: [small.add_(1) for _ in range(300)], 10, device)
    print(f"300 small kernels, eager: {ms * 1e3 / 300:.2f} us each", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=BATCH, default="resnet44")
    parser.add_argument("--precision", nargs="+", choices=["bf16", "tf32", "fp32"], default=["bf16", "tf32", "fp32"])
    parser.add_argument("--batch", type=int, help="samples of a step; the network's own otherwise")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="small shapes, for a rehearsal")
    parser.add_argument("--ceilings", action="store_true")
    args = parser.parse_args()
    device = torch.device(args.device)
    torch.backends.cudnn.benchmark = True
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name() if args.device == 'cuda' else 'the processor'}", flush=True)
    (ceilings if args.ceilings else train)(args, device)


if __name__ == "__main__":
    main()
