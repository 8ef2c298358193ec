#!/usr/bin/env python3
"""Whole training steps of the variational autoencoder of contact maps (Bhowmik et al. 2018; model protein-vae) in PyTorch, on random maps."""
import allocator
import serve


def network(torch, side, maps=64, hidden=128, latent=3):
    nn, F = torch.nn, torch.nn.functional
    half = (side + 1) // 2

    class ProteinVae(nn.Module):
        def __init__(self):
            super().__init__()
            strides = (1, 2, 1, 1)
            self.convs = nn.ModuleList(nn.Conv2d(1 if i == 0 else maps, maps, 3, s, 1 if s == 1 else 0) for i, s in enumerate(strides))
            self.fc1 = nn.Linear(maps * half * half, hidden)
            self.z_mean, self.z_log_var = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
            self.fc2, self.fc3 = nn.Linear(latent, hidden), nn.Linear(hidden, maps * half * half)
            # With stride 2 "same" pads at the end alone, so its transpose begins at 0 and loses its last row.
            self.deconvs = nn.ModuleList(
                nn.ConvTranspose2d(maps, 1 if i == 0 else maps, 3, strides[i], 1 if strides[i] == 1 else 0) for i in (3, 2, 1, 0))

        def forward(self, x):
            odd = side % 2
            x = F.pad(x, (0, odd, 0, odd))
            for conv in self.convs:
                x = F.relu(conv(F.pad(x, (0, 1, 0, 1)) if conv.stride[0] == 2 else x))
            x = F.relu(self.fc1(x.flatten(1)))
            mean, logvar = self.z_mean(x), self.z_log_var(x)
            z = mean + torch.exp(logvar) * torch.randn_like(mean) if self.training else mean
            x = F.relu(self.fc3(F.relu(self.fc2(z)))).view(-1, maps, half, half)
            for i, deconv in enumerate(self.deconvs):
                x = deconv(x)
                if deconv.stride[0] == 2:
                    x = x[:, :, : 2 * half, : 2 * half]
                if i < 3:
                    x = F.relu(x)
            return x[:, :, :side, :side], mean, logvar

    return ProteinVae()


def loss_of(torch, out, x):
    logits, mean, logvar = out
    side = x.shape[-1]
    crossed = torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), x) * side * side
    mean, logvar = mean.float(), logvar.float()
    return crossed - 0.5 * (1 + logvar - mean**2 - logvar.exp()).mean()


if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--side", type=int, default=36)
    parser.set_defaults(batch=100, warmup=2, steps=5)
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch

    import training

    serve.use_threads(torch, args.threads)
    torch.manual_seed(1)
    model = network(torch, args.side).train()
    batches = [(torch.rand(args.batch, 1, args.side, args.side) < 0.15).float() for _ in range(2)]
    if args.layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        batches = [x.contiguous(memory_format=torch.channels_last) for x in batches]
    called = training.compiled(args, model)

    def loss_of_batch(x):
        with training.autocast(args):
            out = called(x)
        return loss_of(torch, out, x)

    # The optimizer is that of `tutti bench step`.
    step = training.step_over([(x,) for x in batches], training.sgd(args, model), loss_of_batch)
    about = training.about(args, "protein-vae", sum(p.numel() for p in model.parameters()))
    serve.serve(args, step, about, args.batch)
