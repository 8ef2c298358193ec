"""Fully sharded training (fully_shard on a device mesh of CPUs): losses and gathered parameters equal Gloo's. On four ranks also with replicas of shards."""
import ranks
import torch
from torch import nn


def network():
    torch.manual_seed(1)
    return nn.Sequential(*[nn.Sequential(nn.Linear(60, 120), nn.ReLU(), nn.Linear(120, 60)) for _ in range(3)], nn.Linear(60, 7))


def train(dist, mesh):
    from torch.distributed.fsdp import fully_shard

    model = network()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(5):
        x = torch.randn(8, 60, generator=generator)
        y = torch.randint(0, 7, (8,), generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), torch.cat([p.detach().full_tensor().flatten() for p in model.parameters()])


def main():
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

    dist = ranks.init("tutti")
    size, shapes = dist.get_world_size(), [(dist.get_world_size(),)]
    if size == 4:
        shapes.append((2, 2))
    for shape in shapes:
        names = ("shard",) if len(shape) == 1 else ("replica", "shard")
        ours = init_device_mesh("cpu", shape, mesh_dim_names=names)
        assert all(dist.get_backend(ours.get_group(name)) == "tutti" for name in names)
        results = train(dist, ours)
        # The same ranks over Gloo: groups made by hand, in the same order on all ranks.
        grid = torch.arange(size).view(shape)
        groups = []
        for axis in range(len(shape)):
            rows = grid.movedim(axis, -1).reshape(-1, shape[axis]).tolist()
            made = {tuple(row): dist.new_group(row, backend="gloo") for row in rows}
            groups.append(next(group for row, group in made.items() if dist.get_rank() in row))
        theirs = DeviceMesh.from_group(groups if len(groups) > 1 else groups[0], "cpu", grid if len(groups) > 1 else None, mesh_dim_names=names)
        expected = train(dist, theirs)
        for a, b in zip(results, expected):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
        if dist.get_rank() == 0:
            print(f"fsdp: mesh {shape}: losses {[round(float(x), 4) for x in results[0]]} equal Gloo's")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks.run(main)
