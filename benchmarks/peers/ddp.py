"""What the programs with DistributedDataParallel share: they start their ranks themselves, all on this host, and most train a CIFAR ResNet."""
import pathlib
import sys
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
import one_line  # what is said of inputs
import os
import socket
import subprocess

import allocator
import serve


def add_arguments(parser):
    parser.add_argument("--model", choices=["resnet20", "resnet32", "resnet44", "resnet56"], default="resnet44")
    add_rank_arguments(parser)


def add_rank_arguments(parser):
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--pin", action="store_true", help="pin each rank to its own cores")


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


def run(main, args):
    """main(args) on every rank, this process as rank 0."""
    allocator.ensure(args.allocator)
    others = start_ranks(args.ranks) if "RANK" not in os.environ else []
    os.environ.setdefault("RANK", "0")
    try:
        main(args)
    finally:
        for other in others:
            if other.wait(timeout=60):
                sys.exit(f"a rank ended with {other.returncode}")


def join(args):
    """Takes this rank's threads and cores, and joins the others over Gloo. Returns the rank and how many there are."""
    import torch
    import torch.distributed as dist

    serve.use_threads(torch, args.threads)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if args.pin:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[rank * args.threads % len(allowed) :][: args.threads])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    return rank, size


def make_model(args, group=None, **more):
    """The network, wrapped; more: for DistributedDataParallel."""
    import training
    from resnet_cifar_model import ResNetCifar

    return wrap(args, training.prepare(args, ResNetCifar(args.model)), group, **more)


def wrap(args, model, group=None, **more):
    import inspect

    from torch.nn.parallel import DistributedDataParallel

    known = inspect.signature(DistributedDataParallel.__init__).parameters
    more["forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"] = False  # PyTorch 2.15 renamed it
    return DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True, bucket_cap_mb=args.bucket_mb, **more)


def serve_ranks(args, rank, size, step, about):
    """serve.serve on all ranks: those behind rank 0 follow the number of steps that it broadcasts before each run."""
    import torch
    import torch.distributed as dist

    def run(steps):
        """Rank 0's times, the sum of all ranks' memory."""
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


def make_step(args, model, rank):
    import training

    return training.make_step(args, model, training.random_batches(args, (3, 32, 32), 10, seed=1 + rank))
