#!/usr/bin/env python3
"""Whole training steps of GPT-2 as language.py has them, under DistributedDataParallel over Gloo: --ranks processes of --threads threads each, which
this process starts; it becomes rank 0. --batch samples on each rank."""
import ddp
import language


def main(args):
    rank, size = ddp.join(args)
    step, about = language.make_step(args, lambda module: ddp.wrap(args, module), seed=1 + rank)
    about |= {"ranks": size, "pinned": args.pin, "bucket_mb": args.bucket_mb}
    ddp.serve_ranks(args, rank, size, step, about)


if __name__ == "__main__":
    parser = language.arguments(__doc__)
    parser.set_defaults(threads=1)
    ddp.add_rank_arguments(parser)
    ddp.run(main, parser.parse_args())
