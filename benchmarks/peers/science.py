#!/usr/bin/env python3
"""Whole training steps of CosmoFlow (4 x 128^3) or DeepCAM (16 x 768 x 1152), both of MLPerf HPC, in PyTorch on random data."""
import allocator
import serve

if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--network", choices=["cosmoflow", "deepcam"], default="cosmoflow")
    parser.add_argument("--side", type=int, nargs="+", help="spatial extents, where not the full ones")
    parser.set_defaults(batch=1, warmup=1, steps=2)
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch
    from torch.nn import functional as F

    import training

    serve.use_threads(torch, args.threads)
    torch.manual_seed(1)
    if args.network == "cosmoflow":
        from cosmoflow import CosmoFlow

        side = (args.side or [128])[0]
        channels = [4, 32, 64, 128, 256, 512]
        shapes = {f"conv{i}.weight": (channels[i], channels[i - 1], 3, 3, 3) for i in range(1, 6)}
        shapes |= {"fc1.weight": (128, 512 * (side // 32) ** 3), "fc2.weight": (64, 128), "fc3.weight": (4, 64)}
        model, layout = CosmoFlow(shapes), torch.channels_last_3d
        batches = [(torch.randn(args.batch, 4, side, side, side), torch.randn(args.batch, 4)) for _ in range(2)]
        loss_of = F.mse_loss
    else:
        from deepcam import DeepCam, loss_of

        side = args.side or [768, 1152]
        model, layout = DeepCam(16, 3, 1, 16), torch.channels_last
        batches = [(torch.randn(args.batch, 16, *side), torch.randint(0, 3, (args.batch, *side))) for _ in range(2)]
    model.train()
    if args.layout == "channels_last":
        model = model.to(memory_format=layout)
        batches = [(x.contiguous(memory_format=layout), target) for x, target in batches]
    called = training.compiled(args, model)

    def loss_of_batch(x, target):
        with training.autocast(args):
            out = called(x)
        return loss_of(out.float(), target)

    step = training.step_over(batches, training.sgd(args, model), loss_of_batch)
    about = training.about(args, args.network, sum(p.numel() for p in model.parameters()))
    serve.serve(args, step, about, args.batch)
