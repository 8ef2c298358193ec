#!/usr/bin/env python3
"""A CIFAR ResNet under DistributedDataParallel over tutti_torch, beside the same over Gloo and without communication (no_sync: the bound).

All in one run: each rank holds one model for each of the three, and blocks of steps alternate. Prints the median step of each over all rounds,
of rank 0, the processor's time for a step (which other work on the machine lengthens less), and the ratios of rates to Gloo's. tutti_torch must be importable (PYTHONPATH; integrations/torch/README.md).
"""
import argparse
import json
import os
import statistics
import sys
import time

import allocator
from resnet_cifar_ddp import start_ranks


def main(args):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import training
    import tutti_torch  # noqa: F401  registers "tutti"
    from resnet_cifar_model import ResNetCifar

    torch.set_num_threads(args.threads)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if args.pin:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[rank * args.threads % len(allowed) :][: args.threads])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this host
    dist.init_process_group("gloo", rank=rank, world_size=size)
    groups = {"gloo": None, "tutti": dist.new_group(backend="tutti"), "free": None}

    def make_step(name):
        torch.manual_seed(1)
        model = training.prepare(args, ResNetCifar(args.model))
        model = DistributedDataParallel(
            model, process_group=groups[name], gradient_as_bucket_view=True, bucket_cap_mb=args.bucket_mb, broadcast_buffers=False
        )
        step = training.make_step(args, model, training.random_batches(args, (3, 32, 32), 10, seed=1 + rank))
        if name != "free":
            return step

        def free():
            with model.no_sync():
                step()

        return free

    for batch in args.batches:
        args.batch = batch
        steps = {name: make_step(name) for name in groups}
        times = {name: [] for name in groups}
        processor = {name: 0.0 for name in groups}  # all threads of this rank
        names = list(groups)
        for k in range(args.rounds + 1):
            for name in names[k % 3 :] + names[: k % 3]:
                dist.barrier()
                block = []
                worked = time.process_time()
                for _ in range(args.steps):
                    begin = time.perf_counter()
                    steps[name]()
                    block.append((time.perf_counter() - begin) * 1e3)
                if k > 0:  # the first round warms up
                    times[name] += block
                    processor[name] += time.process_time() - worked
        if rank == 0:
            median = {name: statistics.median(times[name]) for name in names}
            ratio = {name: median["gloo"] / median[name] for name in names}
            print(
                json.dumps(
                    {
                        "peer": f"PyTorch {torch.__version__.split('+')[0]}", "model": args.model, "ranks": size, "threads": args.threads,
                        "batch": batch, "steps": len(times["gloo"]),
                        "step_ms": {name: round(value, 2) for name, value in median.items()},
                        "processor_ms": {name: round(processor[name] * 1e3 / len(times[name]), 2) for name in names},
                        "rate_over_gloo": {name: round(value, 3) for name, value in ratio.items()},
                    }
                ),
                flush=True,
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["resnet20", "resnet32", "resnet44", "resnet56"], default="resnet44")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="threads per rank")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16], help="samples per step and rank")
    parser.add_argument("--steps", type=int, default=15, help="steps of a block")
    parser.add_argument("--rounds", type=int, default=8, help="blocks of each kind")
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--pin", action="store_true", help="pin each rank to its own cores")
    parser.set_defaults(precision="fp32", layout="channels_last", compile="off", optimizer="foreach", allocator="tuned")
    args = parser.parse_args()
    allocator.ensure(args.allocator)
    others = start_ranks(args.ranks) if "RANK" not in os.environ else []
    os.environ.setdefault("RANK", "0")
    try:
        main(args)
    finally:
        for other in others:
            if other.wait(timeout=60):
                sys.exit(f"a rank ended with {other.returncode}")
