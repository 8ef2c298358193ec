#!/usr/bin/env python3
"""Whole training steps of GPT-2 in PyTorch on random tokens: scaled_dot_product_attention, cross entropy, AdamW. Any size; the published one without flags."""
import allocator
import serve

if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--window", type=int, default=64, help="tokens of a sample")
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.set_defaults(batch=4, warmup=1, steps=3, optimizer="fused")
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch
    from torch.nn import functional as F

    import training
    from gpt2 import Gpt2

    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Gpt2(args.vocabulary, args.window, args.depth, args.width, args.heads)
    model.initialise()
    model.train()

    def loss_of(tokens, target):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.precision == "bf16"):
            logits = model.logits(tokens)
        return F.cross_entropy(logits.flatten(0, 1), target.flatten())

    called = loss_of if args.compile == "off" else torch.compile(loss_of, mode=args.compile)
    optimizer = training.adamw(args, model)
    batches = [torch.randint(args.vocabulary, (2, args.batch, args.window)) for _ in range(2)]
    turn = 0

    def step():
        global turn
        tokens, target = batches[turn % len(batches)]
        turn += 1
        optimizer.zero_grad(set_to_none=True)
        called(tokens, target).backward()
        optimizer.step()

    about = training.about(args, "gpt2", sum(p.numel() for p in model.parameters()))
    serve.serve(args, step, about, args.batch)
