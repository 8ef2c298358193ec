#!/usr/bin/env python3
"""Whole training steps of a CIFAR-10 ResNet under DistributedDataParallel over Gloo: --ranks processes of --threads threads each.

This process starts the ranks and becomes rank 0; the peers follow the number of steps that rank 0 broadcasts before each run.
"""
import os
import socket
import subprocess
import sys

import allocator
import serve


def start_ranks(ranks):
    """Starts ranks 1..n-1 as copies of this program. They meet rank 0 at a port chosen here."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(ranks))
    return [
        subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(rank)}, stdin=subprocess.DEVNULL)
        for rank in range(1, ranks)
    ]


def main(args):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import training
    from resnet_cifar_model import PARAMETERS, ResNetCifar

    torch.set_num_threads(args.threads)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if args.pin:
        allowed = sorted(os.sched_getaffinity(0))
        mine = allowed[rank * args.threads % len(allowed) :][: args.threads]
        os.sched_setaffinity(0, mine)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this host
    dist.init_process_group("gloo", rank=rank, world_size=size)

    model = training.prepare(args, ResNetCifar(args.model))
    model = DistributedDataParallel(
        model, gradient_as_bucket_view=True, static_graph=args.static_graph, bucket_cap_mb=args.bucket_mb, broadcast_buffers=False
    )
    step = training.make_step(args, model, training.random_batches(args, (3, 32, 32), 10, seed=1 + rank))
    about = {
        **training.about(args, args.model, PARAMETERS[args.model]),
        "ranks": size,
        "static_graph": args.static_graph,
        "pinned": args.pin,
    }

    def run(steps):
        """One run on all ranks; rank 0's times, the sum of all ranks' memory."""
        dist.broadcast(torch.tensor([steps]), 0)
        result = serve.timed_run(step, steps, args.batch * size)
        memory = torch.tensor([result["peak_rss_bytes"]])
        dist.all_reduce(memory)
        return {**result, "peak_rss_bytes": int(memory[0])}

    for _ in range(args.warmup):
        step()
    if rank == 0:
        if args.serve:
            serve.say({"ready": True, **about})
            for steps in serve.commands():
                serve.say(run(steps))
        else:
            serve.say({**about, **run(args.steps)}, args.json)
        dist.broadcast(torch.tensor([0]), 0)
    else:
        steps = torch.tensor([0])
        while True:
            dist.broadcast(steps, 0)
            if int(steps[0]) == 0:
                break
            result = serve.timed_run(step, int(steps[0]), args.batch * size)
            dist.all_reduce(torch.tensor([result["peak_rss_bytes"]]))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.set_defaults(batch=64, threads=1)
    parser.add_argument("--model", choices=["resnet20", "resnet32", "resnet44", "resnet56"], default="resnet44")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--static-graph", action="store_true")
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--pin", action="store_true", help="pin each rank to its own cores")
    args = parser.parse_args()
    allocator.ensure(args.allocator)
    others = start_ranks(args.ranks) if "RANK" not in os.environ else []
    os.environ.setdefault("RANK", "0")
    try:
        main(args)
    finally:
        for other in others:
            other.wait(timeout=60)
