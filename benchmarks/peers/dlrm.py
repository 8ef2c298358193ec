#!/usr/bin/env python3
"""Whole training steps of the deep learning recommendation model (Naumov et al. 2019) in PyTorch: bags with sparse gradients and plain SGD, random rows."""
import allocator
import serve


def network(torch, tables, rows, width, bottom, top):
    nn = torch.nn

    def perceptron(sizes, last_relu):
        layers = []
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            layers.append(nn.Linear(a, b))
            if last_relu or i + 2 < len(sizes):
                layers.append(nn.ReLU())
        return nn.Sequential(*layers)

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb_l = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables))
            self.bot_l = perceptron([13, *bottom, width], True)
            self.top_l = perceptron([width + tables * (tables + 1) // 2, *top, 1], False)
            i, j = torch.tril_indices(tables + 1, tables + 1, offset=-1)
            self.register_buffer("pairs", i * (tables + 1) + j)

        def forward(self, dense, indices):
            x = self.bot_l(dense)
            # Bags of one row each: two-dimensional indices, which need no offsets.
            features = torch.stack([x] + [table(indices[t]) for t, table in enumerate(self.emb_l)], 1)
            products = torch.bmm(features, features.transpose(1, 2)).flatten(1)[:, self.pairs]
            return self.top_l(torch.cat([x, products], 1))

    return Dlrm()


if __name__ == "__main__":
    parser = serve.arguments(__doc__)
    parser.add_argument("--tables", type=int, default=26)
    parser.add_argument("--table-rows", type=int, default=100000)
    parser.add_argument("--width", type=int, default=16)
    parser.set_defaults(batch=2048, warmup=2, steps=5)
    args = parser.parse_args()
    allocator.ensure(args.allocator)

    import torch
    from torch.nn import functional as F

    import training

    serve.use_threads(torch, args.threads)
    torch.manual_seed(1)
    model = network(torch, args.tables, args.table_rows, args.width, [512, 256, 64], [512, 256])
    model.train()
    called = training.compiled(args, model)
    batches = [  # one, as bench step has it, whose rows are in the cache as well
        (torch.randn(args.batch, 13), torch.randint(args.table_rows, (args.tables, args.batch, 1)), torch.randint(2, (args.batch, 1)).float())
    ]

    def loss_of(dense, indices, clicked):
        with training.autocast(args):
            logit = called(dense, indices)
        return F.binary_cross_entropy_with_logits(logit.float(), clicked)

    step = training.step_over(batches, torch.optim.SGD(model.parameters(), lr=0.01), loss_of)
    about = training.about(args, "dlrm", sum(p.numel() for p in model.parameters()))
    serve.serve(args, step, about, args.batch)
