#!/usr/bin/env python3
"""Whole training steps of a CIFAR-10 ResNet under DistributedDataParallel over Gloo: --ranks processes of --threads threads each.

This process starts the ranks and becomes rank 0.
"""
import ddp
import serve


def main(args):
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
    ddp.serve_ranks(args, rank, size, step, about)


if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.set_defaults(batch=64, threads=1)
    ddp.add_arguments(parser)
    parser.add_argument("--static-graph", action="store_true")
    ddp.run(main, parser.parse_args())
