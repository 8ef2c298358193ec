"""Every collective, type and operation gives what Gloo gives, or, where Gloo lacks it, what its definition says. In groups of all ranks and of some."""
import ranks
import torch

MOVED = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool,
    torch.complex64,
]
REDUCED = [t for t in MOVED if t not in (torch.int16, torch.bool, torch.complex64)]
COUNTS = [0, 1, 7, 1000, 70001]


def values(count, dtype, rank, shape=None):
    """Small integers, so that every order of a sum gives the same."""
    generator = torch.Generator().manual_seed(100 * rank + count)
    x = torch.randint(0 if dtype in (torch.uint8, torch.bool) else -3, 2 if dtype == torch.bool else 4, (count,), generator=generator)
    x = x.to(dtype)
    return x if shape is None else x.reshape(shape)


class Case:
    """A group, and the same ranks over Gloo."""

    def __init__(self, dist, ours, theirs, members):
        self.dist, self.ours, self.theirs, self.members = dist, ours, theirs, members
        self.rank, self.size = members.index(dist.get_rank()), len(members)
        self.checks = 0

    def same(self, what, ours, theirs):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs), f"{what}: {ours} instead of {theirs}"
        self.checks += 1

    def both(self, what, call):
        """call(group) on both; it returns a tensor."""
        self.same(what, call(self.ours), call(self.theirs))

    def everyones(self, count, dtype):
        return [values(count, dtype, rank) for rank in range(self.size)]


def reductions(case):
    dist, ops = case.dist, case.dist.ReduceOp
    for dtype in REDUCED:
        for op in (ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX):
            for count in COUNTS[1:]:
                what = f"{dtype} {op} {count}"

                def allreduce(group):
                    x = values(count, dtype, case.rank)
                    dist.all_reduce(x, op, group)
                    return x

                def reduce(group):
                    x = values(count, dtype, case.rank)
                    dist.reduce(x, case.members[-1], op, group)
                    return x if case.rank == case.size - 1 else torch.zeros(0)

                case.both(f"all_reduce {what}", allreduce)
                case.both(f"reduce {what}", reduce)
                everyone = torch.stack(case.everyones(count * case.size, dtype))
                wide = everyone.to(torch.float64)
                whole = {ops.SUM: wide.sum(0), ops.PRODUCT: wide.prod(0), ops.MIN: wide.amin(0), ops.MAX: wide.amax(0)}[op]
                mine = whole.chunk(case.size)[case.rank].to(torch.int64 if not dtype.is_floating_point else dtype).to(dtype)
                y = torch.empty(count, dtype=dtype)
                dist.reduce_scatter_tensor(y, everyone[case.rank], op, case.ours)
                case.same(f"reduce_scatter_tensor {what}", y, mine)
                y = torch.empty(count, dtype=dtype)
                dist.reduce_scatter(y, list(everyone[case.rank].chunk(case.size)), op, case.ours)
                case.same(f"reduce_scatter {what}", y, mine)
    for op, expected in ((ops.SUM, "amax"), (ops.MAX, "amax"), (ops.PRODUCT, "amin"), (ops.MIN, "amin")):
        x = values(9, torch.bool, case.rank)
        dist.all_reduce(x, op, case.ours)
        case.same(f"all_reduce bool {op}", x, getattr(torch.stack(case.everyones(9, torch.bool)).int(), expected)(0).bool())
    x = values(1000, torch.float32, case.rank)
    dist.all_reduce(x, ops.AVG, case.ours)
    torch.testing.assert_close(x, torch.stack(case.everyones(1000, torch.float32)).mean(0))
    # Parts of unequal sizes.
    parts = [values(5 + k, torch.float32, case.rank) for k in range(case.size)]
    y = torch.empty(5 + case.rank)
    dist.reduce_scatter(y, parts, group=case.ours)
    case.same("reduce_scatter of unequal parts", y, sum(values(5 + case.rank, torch.float32, rank) for rank in range(case.size)))
    x = values(6, torch.complex64, case.rank)
    dist.all_reduce(x, group=case.ours)
    case.same("all_reduce complex", x, sum(case.everyones(6, torch.complex64)))


def moves(case):
    dist, last = case.dist, case.members[-1]
    for dtype in MOVED:
        for count in COUNTS:
            what, x, everyone = f"{dtype} {count}", values(count, dtype, case.rank), case.everyones(count, dtype)
            y = x.clone()
            dist.broadcast(y, last, case.ours)
            case.same(f"broadcast {what}", y, everyone[-1])
            outputs = [torch.empty_like(x) for _ in everyone]
            dist.all_gather(outputs, x, case.ours)
            for q, output in enumerate(outputs):
                case.same(f"all_gather {what}", output, everyone[q])
            y = torch.empty(case.size * count, dtype=dtype)
            dist.all_gather_into_tensor(y, x, case.ours)
            case.same(f"all_gather_into_tensor {what}", y, torch.cat(everyone))
            y = torch.empty(case.size * count, dtype=dtype)  # this rank's part of the output is its input, as in FSDP
            mine = y.chunk(case.size)[case.rank] if count else y
            mine.copy_(x)
            dist.all_gather_into_tensor(y, mine, case.ours)
            case.same(f"all_gather_into_tensor in place {what}", y, torch.cat(everyone))
            outputs = [torch.empty_like(x) for _ in everyone] if dist.get_rank() == last else None
            dist.gather(x, outputs, last, case.ours)
            for q, output in enumerate(outputs or []):
                case.same(f"gather {what}", output, everyone[q])
            y = torch.empty_like(x)
            dist.scatter(y, everyone if dist.get_rank() == last else None, last, case.ours)
            case.same(f"scatter {what}", y, x)
            long = [values(count * case.size, dtype, rank) for rank in range(case.size)]
            y = torch.empty(count * case.size, dtype=dtype)
            dist.all_to_all_single(y, long[case.rank], group=case.ours)
            case.same(f"all_to_all_single {what}", y, torch.cat([z[case.rank * count : (case.rank + 1) * count] for z in long]))


def parts(case):
    """Blocks of unequal sizes, other shapes and strides, and several tensors in one call."""
    dist, rank, size = case.dist, case.rank, case.size
    x = values(5 + rank, torch.float32, rank)
    outputs = [torch.empty(5 + q) for q in range(size)]
    dist.all_gather(outputs, x, case.ours)
    for q, output in enumerate(outputs):
        case.same("all_gather of unequal parts", output, values(5 + q, torch.float32, q))
    for _ in range(3):
        block = {(p, q): values((p + 2 * q) % 5 + 1, torch.int64, 10 * p + q).reshape(-1, 1) for p in range(size) for q in range(size)}
        sent = torch.cat([block[rank, q] for q in range(size)])
        expected = torch.cat([block[p, rank] for p in range(size)])
        y = torch.empty_like(expected)
        dist.all_to_all_single(y, sent, [len(block[p, rank]) for p in range(size)], [len(block[rank, q]) for q in range(size)], case.ours)
        case.same("all_to_all_single with sizes", y, expected)
        outputs = [torch.empty_like(block[p, rank]) for p in range(size)]
        dist.all_to_all(outputs, [block[rank, q] for q in range(size)], case.ours)
        case.same("all_to_all", torch.cat(outputs), expected)
    whole = [values(60, torch.float32, q, (4, 15)) for q in range(size)]
    for name, view in {"transposed": lambda z: z.t(), "every second": lambda z: z[:, ::2], "transposed back": lambda z: z.t().contiguous().t()}.items():
        x = view(whole[rank].clone())
        dist.all_reduce(x, group=case.ours)
        case.same(f"all_reduce, {name}", x, view(sum(whole)))
        x = view(whole[rank].clone())
        dist.broadcast(x, case.members[0], case.ours)
        case.same(f"broadcast, {name}", x, view(whole[0]))
        outputs = [torch.empty_like(x) for _ in range(size)]
        dist.all_gather(outputs, view(whole[rank]), case.ours)
        case.same(f"all_gather, {name}", torch.stack(outputs), torch.stack([view(z) for z in whole]))
    dist.all_reduce(y := values(8, torch.float32, rank).requires_grad_(True).detach(), group=case.ours)
    case.same("all_reduce beside autograd", y, sum(case.everyones(8, torch.float32)))

    counts = [3, 1000, 5, 3]
    several = [values(count, torch.float32, rank) for count in counts]
    case.ours.allreduce_coalesced(several).wait()
    for count, x in zip(counts, several):
        case.same("all_reduce_coalesced", x, sum(case.everyones(count, torch.float32)))
    inputs = [values(count, torch.float32, rank) for count in counts]
    outputs = [torch.empty(count * size) for count in counts]
    case.ours.allgather_into_tensor_coalesced(outputs, inputs).wait()
    for count, y in zip(counts, outputs):
        case.same("allgather_into_tensor_coalesced", y, torch.cat(case.everyones(count, torch.float32)))
    inputs = [torch.cat([values(count, torch.float32, rank + q) for q in range(size)]) for count in counts]
    outputs = [torch.empty(count) for count in counts]
    case.ours.reduce_scatter_tensor_coalesced(outputs, inputs).wait()
    for count, y in zip(counts, outputs):
        case.same("reduce_scatter_tensor_coalesced", y, sum(values(count, torch.float32, p + rank) for p in range(size)))


def changing_sizes(case):
    """all_to_all_single with other sizes at every call: some empty, some longer than one message holds at once; then several under way."""
    dist, rank, size = case.dist, case.rank, case.size

    def rows(p, q, turn):
        n = (3 * p + 5 * q + 7 * turn) % 6
        return 0 if turn == 4 else 20000 * n if turn == 5 else n

    def buffers(turn, dtype):
        sends, receives = [rows(rank, q, turn) for q in range(size)], [rows(p, rank, turn) for p in range(size)]
        sent = values(3 * sum(sends), dtype, rank + turn).reshape(-1, 3)
        return torch.full((sum(receives), 3), 1, dtype=dtype), sent, receives, sends

    for turn in range(12):
        for dtype in (torch.float32, torch.int64, torch.bool):

            def exchange(group):
                y, sent, receives, sends = buffers(turn, dtype)
                dist.all_to_all_single(y, sent, receives, sends, group)
                return y

            case.both(f"all_to_all_single {turn} {dtype}", exchange)
    under_way = []
    for turn in range(12):
        y, *others = buffers(turn, torch.int32)
        under_way.append((y, dist.all_to_all_single(y, *others, case.ours, async_op=True)))
        dist.all_reduce(torch.ones(3), group=case.ours)
    for turn, (y, work) in reversed(list(enumerate(under_way))):
        work.wait()
        expected, *others = buffers(turn, torch.int32)
        dist.all_to_all_single(expected, *others, case.theirs)
        case.same(f"all_to_all_single {turn} of 12 under way", y, expected)


def messages(case):
    dist, rank, size = case.dist, case.rank, case.size
    right, left = case.members[(rank + 1) % size], case.members[(rank - 1) % size]
    for count in COUNTS:
        received = [torch.empty(count), torch.empty(count)]
        works = [dist.irecv(received[tag], left, case.ours, tag) for tag in (1, 0)]
        works += [dist.isend(values(count, torch.float32, rank + 50 * tag), right, case.ours, tag) for tag in (0, 1)]
        for work in works:
            work.wait()
        # received[t] came with the other's tag t
        for tag in (0, 1):
            case.same(f"send and recv, tag {tag}", received[tag], values(count, torch.float32, (rank - 1) % size + 50 * tag))
    if size > 1:
        x = torch.full((3,), float(rank))
        if rank == 0:
            dist.send(x, case.members[1], case.ours)
        elif rank == 1:
            dist.recv(x, case.members[0], case.ours)
            case.same("recv", x, torch.zeros(3))
        ops = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), right, case.ours), dist.P2POp(dist.irecv, y := torch.empty(2), left, case.ours)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        case.same("batch_isend_irecv", y, torch.full((2,), float((rank - 1) % size)))


def under_way(case):
    """More works of one kind than there are plans for, finished in any order; futures; the objects of Python."""
    dist, rank, size = case.dist, case.rank, case.size
    for count in (3, 300000):
        tensors = [torch.full((count,), float(rank + k)) for k in range(40)]
        works = [dist.all_reduce(x, group=case.ours, async_op=True) for x in tensors]
        if count == 3:
            futures = [work.get_future() for work in works[20:]]
            for future in reversed(futures):
                future.wait()
            case.same("future", futures[0].value()[0], tensors[20])
        for work in reversed(works):
            assert work.wait() and work.is_completed()
        for k, x in enumerate(tensors):
            case.same("40 under way", x, torch.full((count,), float(sum(range(size)) + size * k)))
    dist.barrier(case.ours)
    work = dist.barrier(case.ours, async_op=True)
    work.wait()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank}, case.ours)
    assert objects == [{"rank": q} for q in range(size)]
    done = []
    work = dist.all_reduce(torch.ones(4), group=case.ours, async_op=True)
    work.get_future().then(lambda future: done.append(future.value()[0].clone())).wait()
    case.same("then", done[0], torch.full((4,), float(size)))
    work = dist.all_reduce(torch.ones(5), group=case.ours, async_op=True)
    case.same("result", work.result()[0] if work.wait() else None, torch.full((5,), float(size)))


def main():
    dist = ranks.init("tutti", 120)
    rank, size = dist.get_rank(), dist.get_world_size()
    everyone = list(range(size))
    cases = [Case(dist, dist.group.WORLD, dist.new_group(backend="gloo"), everyone)]
    # Groups of some ranks, and each rank alone.
    for members in ([[0, size - 1], everyone[1:]] if size > 2 else []) + [[q] for q in everyone]:
        ours, theirs = dist.new_group(members, backend="tutti"), dist.new_group(members, backend="gloo")
        if rank in members:
            cases.append(Case(dist, ours, theirs, members))
    for case in cases:
        for test in (reductions, moves, parts, changing_sizes, messages, under_way):
            if test is messages and case.size == 1:
                continue
            test(case)
    if rank == 0:
        print(f"collectives: {size} ranks: {sum(case.checks for case in cases)} results in {len(cases)} groups")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks.run(main, 400)
