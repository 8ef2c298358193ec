"""Every method of the Python interface, and thereby every C function: every_method.py MLSL_H, on 2 processes, with MLSL_STATS=1.

A network of two layers on 1 x 2 parts whose numbers are known; at the end each function that mlsl.h declares must have been called."""

import re
import sys
from ctypes import c_byte, c_float, c_int, c_size_t

import mlsl
import mlsl_library
from mlsl import DataType, GroupType, OperationType, PhaseType, ReductionType

called = set()
plain_call = mlsl_library.call


def recording_call(name, *arguments):
    called.add("mlsl_" + name)
    plain_call(name, *arguments)


mlsl_library.call = recording_call


def expect(what, got, right):
    if got != right:
        sys.exit("%s is %r, and should be %r" % (what, got, right))


def floats(*values):
    return (c_float * len(values))(*values)


def fails(call, *arguments):
    try:
        call(*arguments)
    except mlsl.MlslError:
        return True
    return False


def collectives(environment, world, rank):
    def ended(request):
        while not environment.test(request):
            pass

    both = GroupType.GLOBAL
    expect("the data group", (world.get_process_idx(GroupType.DATA), world.get_process_count(GroupType.DATA)), (0, 1))
    expect("the model group", (world.get_process_idx(GroupType.MODEL), world.get_process_count(GroupType.MODEL)), (rank, 2))
    mine, got = floats(10 * rank + 1, 10 * rank + 2), floats(-1, -1)
    word = floats(5, 6) if rank == 1 else floats(0, 0)
    ended(world.bcast(word, 2, DataType.FLOAT, 1, both))
    expect("bcast", list(word), [5, 6])
    environment.wait(world.reduce(mine, got, 2, DataType.FLOAT, ReductionType.SUM, 0, both))
    expect("reduce", list(got), [12, 14] if rank == 0 else [-1, -1])
    environment.wait(world.all_reduce(mine, got, 2, DataType.FLOAT, ReductionType.MAX, both))
    expect("all_reduce", list(got), [11, 12])
    environment.wait(world.all_to_all(mine, 1, got, DataType.FLOAT, both))
    expect("all_to_all", list(got), [1 + rank, 11 + rank])
    environment.wait(world.all_to_allv(mine, [1, 1], [1, 0], got, [1, 1], [1, 0], DataType.FLOAT, both))
    expect("all_to_allv", list(got), [12 - rank, 2 - rank])
    single = floats(rank)
    environment.wait(world.gather(single, 1, got, DataType.FLOAT, 1, both))
    expect("gather", list(got), [0, 1] if rank == 1 else [12, 2])
    environment.wait(world.all_gather(single, 1, got, DataType.FLOAT, both))
    expect("all_gather", list(got), [0, 1])
    environment.wait(world.scatter(mine, single, 1, DataType.FLOAT, 1, both))
    expect("scatter", single[0], 11 + rank)
    environment.wait(world.reduce_scatter(mine, single, 1, DataType.FLOAT, ReductionType.MIN, both))
    expect("reduce_scatter", single[0], 1 + rank)
    world.barrier(both)


def add_operations(session, world):
    for index, kind in enumerate((OperationType.CC, OperationType.ACT)):
        info = session.create_operation_reg_info(kind)
        info.set_name("layer %d" % index)
        info.add_input(4, 3, DataType.FLOAT)
        info.add_output(4, 3, DataType.FLOAT)
        if index == 0:
            info.add_parameter_set(8, 2, DataType.FLOAT)
            # The form without compression is C's alone.
            called.add("mlsl_operation_reg_info_add_parameter_set")
            expect("add_parameter_set", mlsl_library._library.mlsl_operation_reg_info_add_parameter_set(info.get_handle(), c_size_t(6), c_size_t(1), c_int(1), c_int(1)), 0)
        info.validate(world)
        expect("the index", session.add_operation_with_distribution(info, world) if index == 0 else session.add_operation(info), index)
        session.delete_operation_reg_info(info)
    second = session.get_operation(1)
    expect("the distribution before it is set", second.get_distribution(), None)
    second.set_distribution(world)
    second.set_prev(session.get_operation(0), 0, 0)
    session.get_operation(0).set_next(second, 0, 0)


def questions(session, rank):
    expect("the minibatch", session.get_global_minibatch_size(), 8)
    expect("the phase", session.get_phase_type(), PhaseType.TEST)
    expect("operations", session.get_operation_count(), 2)
    first, second = session.get_operation(0), session.get_operation(1)
    expect("the session", first.get_session().get_handle().value, session.get_handle().value)
    expect("the type", (first.get_op_type(), second.get_op_type()), (OperationType.CC, OperationType.ACT))
    expect("the name", first.get_name(), b"layer 0")
    expect("samples", (first.get_global_minibatch_size(), first.get_local_minibatch_size(), first.get_global_minibatch_offset()), (8, 8, 0))
    expect("counts", (first.get_input_count(), first.get_output_count(), first.get_parameter_set_count(), second.get_parameter_set_count()), (1, 1, 2, 0))
    expect("parameters", (first.has_parameter_sets(), second.has_parameter_sets()), (True, False))
    for index, expected in enumerate(((8, 4 * rank, 4, 4, 0, 2, False, DataType.FLOAT), (6, 3 * rank, 3, 3, 0, 1, True, DataType.DOUBLE))):
        p = first.get_parameter_set(index)
        expect("parameter set", (p.get_global_kernel_count(), p.get_global_kernel_offset(), p.get_local_kernel_count(), p.get_owned_kernel_count(),
                                 p.get_owned_kernel_offset(), p.get_kernel_size(), p.is_distributed_update(), p.get_data_type()), expected)
        p.start_gradient_comm(floats(*[0] * 12))  # one data part: nothing to do
        expect("gradient", (p.wait_gradient_comm(), p.test_gradient_comm()), (None, (None, True)))
        p.start_increment_comm(floats(*[0] * 12))
        expect("increment", p.wait_increment_comm(), None)


def blocks(rank, out, into):
    expect("output", (out.get_global_fm_count(), out.get_global_fm_offset(), out.get_local_fm_count(), out.get_fm_size(), out.get_data_type()),
           (4, 0, 4, 3, DataType.FLOAT))
    expect("input", (into.get_global_fm_count(), into.get_global_fm_offset(), into.get_local_fm_count()), (4, 2 * rank, 2))
    expect("blocks", (out.get_pack_block_count(), out.get_unpack_block_count(), into.get_pack_block_count(), into.get_unpack_block_count()), (2, 2, 1, 1))
    for block, expected in ((out.get_pack_block(1), (0, 8, 2, 2, 3, 48)), (into.get_unpack_block(0), (0, 8, 0, 2, 3, 0))):
        expect("block", (block.get_mb_offset(), block.get_mb_count(), block.get_fm_offset(), block.get_fm_count(), block.get_fm_size(),
                         block.get_buf_offset()), expected)
        expect("block type", block.get_data_type(), DataType.FLOAT)
    expect("bytes", out.get_comm_buf_size(), 8 * 4 * 3 * 4)
    values = (c_float * 96).from_address(out.get_comm_buf().value)
    values[:] = range(96)
    out.start_comm(out.get_comm_buf())
    received = (c_float * 48).from_address(into.wait_comm().value)
    expect("partial sums", list(received), [2 * (48 * rank + i) for i in range(48)])


def statistics(session):
    counts = session.get_stats()
    expect("enabled", (counts.is_enabled(), counts.is_started()), (True, True))
    expect("bytes of operations", (counts.get_comm_size(0), counts.get_comm_size(1), counts.get_total_comm_size()), (384, 0, 384))
    expect("cycles alone", counts.get_isolation_comm_cycles(0) > 0, True)
    expect("all cycles alone", counts.get_total_isolation_comm_cycles() >= counts.get_isolation_comm_cycles(0), True)
    expect("cycles", 0 < counts.get_comm_cycles(0) <= counts.get_total_comm_cycles(), True)
    expect("computation", counts.get_compute_cycles(0) <= counts.get_total_compute_cycles() and counts.get_total_compute_cycles() > 0, True)
    counts.dump()
    counts.stop()
    expect("stopped", counts.is_started(), False)
    counts.reset()
    expect("reset", counts.get_total_comm_size(), 0)
    counts.start()
    expect("started", counts.is_started(), True)


def quantisation(environment):
    expect("parameters before they are set", fails(environment.get_quantization_params), True)
    expect("a library that is not there", fails(environment.set_quantization_params, mlsl.QuantParams(b"/nowhere.so", b"a", b"b", b"c", 268, 256)), True)


def main():
    environment = mlsl.MLSL()
    expect("the version", environment.get_version(), 1 << 16)
    expect("initialised", environment.is_initialized(), False)
    environment.configure("color=0")
    environment.init()
    rank = environment.get_process_idx()
    expect("processes", environment.get_process_count(), 2)
    quantisation(environment)
    world = environment.create_distribution(1, 2)
    collectives(environment, world, rank)
    memory = environment.alloc(100, 256)
    expect("the alignment", memory.value % 256, 0)
    (c_byte * 100).from_address(memory.value)[99] = 1
    environment.free(memory)
    session = environment.create_session(PhaseType.TEST)
    session.set_global_minibatch_size(8)
    add_operations(session, world)
    session.commit()
    questions(session, rank)
    blocks(rank, session.get_operation(0).get_output(0), session.get_operation(1).get_input(0))
    statistics(session)
    session.remove_operations()
    expect("operations that are left", session.get_operation_count(), 0)
    environment.delete_session(session)
    environment.delete_distribution(world)
    environment.finalize()
    expect("a second start of MPI", fails(environment.init), True)
    declared = set(re.findall(r"\bint (mlsl_\w+)\(", open(sys.argv[1]).read()))
    expect("functions that were not called", declared - called, set())
    expect("functions that are not declared", called - declared, set())
    if rank == 0:
        print("every_method: PASSED, %d functions" % len(declared))


main()
