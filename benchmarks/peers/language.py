#!/usr/bin/env python3
"""Whole training steps of GPT-2 in PyTorch on random tokens: scaled_dot_product_attention, cross entropy, AdamW. Any size; the published one without flags."""
import allocator
import serve


def arguments(description):
    parser = serve.arguments(description)
    parser.add_argument("--window", type=int, default=64, help="tokens of a sample")
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.set_defaults(batch=4, warmup=1, steps=3, optimizer="fused")
    return parser


def make_step(args, wrap=lambda module: module, seed=1):
    """A function that trains on the next batch, and what this program is. `wrap`: what becomes of the module whose forward is the loss; all
    processes begin with the same weights, and each has the tokens of its seed."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    import training
    from gpt2 import Gpt2

    class Loss(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, tokens, target):
            with training.autocast(args):
                logits = self.model.logits(tokens)
            return F.cross_entropy(logits.flatten(0, 1), target.flatten())

    torch.manual_seed(1)
    model = Gpt2(args.vocabulary, args.window, args.depth, args.width, args.heads)
    model.initialise()
    called = training.compiled(args, wrap(Loss(model).train()))
    torch.manual_seed(seed)
    batches = [torch.randint(args.vocabulary, (2, args.batch, args.window)) for _ in range(2)]
    step = training.step_over(batches, training.adamw(args, model), called)
    return step, training.about(args, "gpt2", sum(p.numel() for p in model.parameters()))


def main(args):
    import torch

    serve.use_threads(torch, args.threads)
    step, about = make_step(args)
    serve.serve(args, step, about, args.batch)


if __name__ == "__main__":
    arguments_ = arguments(__doc__).parse_args()
    allocator.ensure(arguments_.allocator)
    main(arguments_)
