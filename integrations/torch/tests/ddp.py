"""DistributedDataParallel of a small convolutional network in several buckets: after five steps the parameters equal Gloo's, and those of all
ranks have the same bits."""
import ranks
import torch
from torch import nn


def network():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, 600), nn.ReLU(), nn.Linear(600, 10),
    )


def train(dist, group):
    model = nn.parallel.DistributedDataParallel(network(), process_group=group, bucket_cap_mb=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(5):
        x = torch.randn(4, 3, 16, 16, generator=generator)
        y = torch.randint(0, 10, (4,), generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def main():
    dist = ranks.init("tutti")
    ours, theirs = train(dist, None), train(dist, dist.new_group(backend="gloo"))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    all_ranks = torch.empty(dist.get_world_size() * ours.numel())
    dist.all_gather_into_tensor(all_ranks, ours)
    for other in all_ranks.chunk(dist.get_world_size()):
        assert torch.equal(other.view(torch.int32), ours.view(torch.int32)), "ranks differ in bits"
    if dist.get_rank() == 0:
        print(f"ddp: {dist.get_world_size()} ranks: {ours.numel()} parameters equal Gloo's, largest difference {(ours - theirs).abs().max():.1e}")
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks.run(main)
