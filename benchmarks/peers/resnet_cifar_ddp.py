#!/usr/bin/env python3
"""Whole training steps of a CIFAR-10 ResNet under DistributedDataParallel over Gloo: --ranks processes of --threads threads each.

This process starts the ranks and becomes rank 0; the peers follow the number of steps that rank 0 broadcasts before each run.
"""
import ddp
import serve


def main(args):
    import torch
    import torch.distributed as dist

    import training
    from resnet_cifar_model import PARAMETERS

    rank, size = ddp.join(args)
    step = ddp.make_step(args, ddp.make_model(args, static_graph=args.static_graph), rank)
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
    ddp.add_arguments(parser)
    parser.add_argument("--static-graph", action="store_true")
    ddp.run(main, parser.parse_args())
