"""What is not supported says so, on every rank, and the process group stays usable."""
import time

import ranks
import torch


def main():
    dist = ranks.init("tutti")
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(4)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    refusals = []

    def refused(kind, words, call):
        try:
            call()
        except kind as error:
            assert words in str(error), f"'{words}' is not in: {error}"
            refusals.append(str(error).splitlines()[0])
        else:
            raise AssertionError(f"no error: {words}")
        y = torch.ones(3)
        dist.all_reduce(y)
        assert torch.equal(y, torch.full((3,), float(size)))

    refused(NotImplementedError, "ReduceOp", lambda: dist.all_reduce(torch.ones(4, dtype=torch.int32), dist.ReduceOp.BXOR))
    refused(NotImplementedError, "cannot be reduced", lambda: dist.all_reduce(torch.ones(4, dtype=torch.int16)))
    refused(NotImplementedError, "mean of bool", lambda: dist.all_reduce(torch.ones(4, dtype=torch.bool), dist.ReduceOp.AVG))
    refused(Exception, "any rank", lambda: dist.recv(x))
    refused(NotImplementedError, "layout", lambda: backend.allreduce([x.to_sparse()]).wait())
    refused(NotImplementedError, "only cpu", lambda: backend.allreduce([torch.ones(4, device="meta")]).wait())
    refused(ValueError, "tag", lambda: dist.send(x, (rank + 1) % size, tag=20000))
    refused(ValueError, "outputs", lambda: dist.all_gather([x.clone()] * (size + 1), x))
    refused(Exception, "split sizes", lambda: dist.all_to_all_single(torch.ones(4), x, [4] * size, [4] * size))
    refused(ValueError, "rank", lambda: dist.all_reduce(torch.ones(4 + rank)))  # ranks that ask for different things
    refused(RuntimeError, "does not support", lambda: backend.allreduce_sparse([x]))

    # A wait that gives up, of a work that goes on.
    for _ in range(20):  # until there are plans enough: making one waits for all ranks
        dist.all_reduce(x)
    x.fill_(1)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        try:
            import datetime

            work.wait(datetime.timedelta(milliseconds=100))
            raise AssertionError("no time-out")
        except dist.DistBackendError as error:
            assert "time-out" in str(error)
        work.wait()
    else:
        time.sleep(1)
        dist.all_reduce(x)
    assert torch.equal(x, torch.full((4,), float(size)))

    # Rank 1 sends rank 0 more than that expects. The group is of no further use to rank 0, and the others have all they asked for.
    group = dist.new_group(backend="tutti")
    sends, receives = [2] * size, [2] * size
    if rank == 1:
        sends[0] = 3
    y = torch.zeros(2 * size)
    try:
        dist.all_to_all_single(y, torch.ones(sum(sends)), receives, sends, group)
        assert rank != 0 and torch.equal(y, torch.ones(2 * size))
    except dist.DistBackendError as error:
        assert rank == 0 and "sent 12 bytes where 8 were expected" in str(error), error
    dist.barrier()
    if rank == 0:
        print(f"refused: {size} ranks: {len(refusals)} errors, such as: {refusals[0]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks.run(main)
