#!/usr/bin/env python3
"""Whole training steps of ViT-Ti/16 at 224 x 224 in PyTorch on random images: scaled_dot_product_attention, cross entropy, AdamW."""
import allocator
import serve

if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.set_defaults(batch=64, warmup=1, steps=3, optimizer="fused")
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch

    import training
    from vit import Vit

    serve.use_threads(torch, args.threads)
    model = Vit(1000, 3, 16, 196, 12, 192, 3)
    about = training.about(args, "vit-ti", sum(p.numel() for p in model.parameters()))
    batches = training.random_batches(args, (3, 224, 224), 1000, count=2)
    step = training.make_step(args, training.prepare(args, model), batches, optimizer_of=training.adamw)
    serve.serve(args, step, about, args.batch)
