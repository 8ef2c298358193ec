#!/usr/bin/env python3
"""A CIFAR ResNet under DistributedDataParallel over tutti_torch, beside the same over Gloo, and with less communication as bounds.

`wait`: ranks wait for each other once a step, as they must, and exchange 4 bytes. `free`: they do not wait either (no_sync).
All in one run: each rank holds one model for each, and blocks of steps alternate. Prints the median step of each over all rounds, of rank 0,
the processor's time for a step (which other work on the machine lengthens less), and the ratios of rates to Gloo's. tutti_torch must be
importable (PYTHONPATH; integrations/torch/README.md).
"""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import argparse
import json
import statistics
import time

import ddp


def make_steps(args, rank):
    """Name -> a function that makes a step."""
    import torch
    import torch.distributed as dist

    groups = {"gloo": None, "tutti": args.group, "wait": None, "free": None}
    little = torch.zeros(1)

    def only_wait(_, bucket):
        if bucket.is_last():
            dist.all_reduce(little, group=args.group)
        future = torch.futures.Future()
        future.set_result(bucket.buffer().div_(args.ranks))
        return future

    def without_sync(model, step):
        with model.no_sync():
            step()

    steps = {}
    for name, group in groups.items():
        torch.manual_seed(1)
        model = ddp.make_model(args, group)
        if name == "wait":
            model.register_comm_hook(None, only_wait)
        steps[name] = ddp.make_step(args, model, rank)
        if name == "free":
            steps[name] = lambda model=model, step=steps[name]: without_sync(model, step)
    return steps


def measure(args, steps):
    """Name -> milliseconds of each step, and name -> processor time of all of them."""
    import torch.distributed as dist

    names = list(steps)
    times = {name: [] for name in names}
    processor = {name: 0.0 for name in names}  # all threads of this rank
    for k in range(args.rounds + 1):
        first = k % len(names)
        for name in names[first:] + names[:first]:
            dist.barrier()
            block = []
            worked = time.process_time()
            for _ in range(args.steps):
                begin = time.perf_counter()
                steps[name]()
                block.append((time.perf_counter() - begin) * 1e3)
            if k > 0:  # the first round warms up
                times[name] += block
                processor[name] += (time.process_time() - worked) * 1e3
    return times, processor


def main(args):
    import torch
    import torch.distributed as dist

    import tutti_torch  # noqa: F401  registers "tutti"

    rank, size = ddp.join(args)
    args.group = dist.new_group(backend="tutti")
    for args.batch in args.batches:
        times, processor = measure(args, make_steps(args, rank))
        if rank != 0:
            continue
        median = {name: statistics.median(steps) for name, steps in times.items()}
        result = {
            "peer": f"PyTorch {torch.__version__.split('+')[0]}", "model": args.model, "ranks": size, "threads": args.threads,
            "batch": args.batch, "steps": len(times["gloo"]),
            "step_ms": {name: round(value, 2) for name, value in median.items()},
            "processor_ms": {name: round(processor[name] / len(times[name]), 2) for name in times},
            "rate_over_gloo": {name: round(median["gloo"] / value, 3) for name, value in median.items()},
        }
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    ddp.add_arguments(parser)
    parser.add_argument("--threads", type=int, default=1, help="threads per rank")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4, 16], help="samples per step and rank")
    parser.add_argument("--steps", type=int, default=15, help="steps of a block")
    parser.add_argument("--rounds", type=int, default=8, help="blocks of each kind")
    parser.set_defaults(precision="fp32", layout="channels_last", compile="off", optimizer="foreach", allocator="tuned")
    ddp.run(main, parser.parse_args())
