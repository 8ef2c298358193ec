"""A program that ends with collectives under way, and with callbacks that they are about to call, ends like any other."""
import ranks
import torch


def main():
    dist = ranks.init("tutti", 20)
    for _ in range(10):  # until there are plans enough: making one waits for all ranks
        dist.all_reduce(torch.ones(100))
    futures = []
    for _ in range(300):
        future = dist.all_reduce(torch.ones(100), async_op=True).get_future()
        futures.append(future.then(lambda _: sum(range(2000))))
    if dist.get_rank() == 0:  # one more than the others: it is never complete, and fails where they have left before
        try:
            dist.all_reduce(torch.ones(100), async_op=True).get_future().then(lambda _: None)
        except dist.DistBackendError as error:
            assert "tutti" in str(error), error
    print(f"ended: rank {dist.get_rank()}: {sum(future.done() for future in futures)} of {len(futures)} were done", flush=True)


if __name__ == "__main__":
    ranks.run(main, 100)
