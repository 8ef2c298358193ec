"""MLSL 1.0 on Tutti: the Python interface, over the C functions of libmlsl.so.

Classes and methods are those of mlsl.hpp, in snake_case; what they do is said there. Statistics.print is called dump here.
A failure raises MlslError after the library has printed why. Buffers may be anything that ctypes can cast to a pointer. Those that the
library returns are c_void_p: of an activation with the value None where there is none; of a parameter set None itself.

MLSL.init and MLSL.finalize may be called several times, by parts of a program that do not know each other: the first init starts, and the
last finalize ends. With MLSL_ALLOW_REINIT=1 the import is the first init, and close() the finalize that belongs to it.

mlsl_library.py, beside this file, says where the library is looked for.
"""

import os
from ctypes import Structure, byref, c_char_p, c_int, c_size_t, c_ulonglong, c_void_p

import mlsl_library as _c

MlslError = _c.MlslError


class DataType:
    FLOAT, DOUBLE, BYTE = range(3)


class PhaseType:
    TRAIN, TEST = range(2)


class GroupType:
    DATA, MODEL, GLOBAL = range(3)


class ReductionType:
    SUM, MIN, MAX = range(3)


class OperationType:
    CC, BIAS, ACT, POOL, SPLIT, CONCAT, BCAST, REDUCE, DATA, EVAL = range(10)


class CompressionType:
    NONE, QUANTIZATION = range(2)


@_c.with_sizes("get_mb_offset", "get_mb_count", "get_fm_offset", "get_fm_count", "get_fm_size", "get_buf_offset")
class CommBlockInfo(_c.LibraryObject):
    _prefix = "comm_block_info_"

    def get_data_type(self):
        return self._ask("get_data_type", c_int).value


@_c.with_sizes("get_global_fm_count", "get_global_fm_offset", "get_local_fm_count", "get_pack_block_count", "get_unpack_block_count",
             "get_fm_size", "get_comm_buf_size")
class Activation(_c.LibraryObject):
    _prefix = "activation_"

    def get_pack_block(self, block_idx):
        return CommBlockInfo(self._ask("get_pack_block", c_ulonglong, c_size_t(block_idx)))

    def get_unpack_block(self, block_idx):
        return CommBlockInfo(self._ask("get_unpack_block", c_ulonglong, c_size_t(block_idx)))

    def get_data_type(self):
        return self._ask("get_data_type", c_int).value

    def get_comm_buf(self):
        return self._buffer("get_comm_buf")

    def start_comm(self, buf):
        self._do("start_comm", _c.pointer(buf))

    def wait_comm(self):
        return self._buffer("wait_comm")


@_c.with_sizes("get_global_kernel_count", "get_global_kernel_offset", "get_local_kernel_count", "get_owned_kernel_count",
             "get_owned_kernel_offset", "get_kernel_size")
class ParameterSet(_c.LibraryObject):
    _prefix = "parameter_set_"

    def get_data_type(self):
        return self._ask("get_data_type", c_int).value

    def is_distributed_update(self):
        return self._flag("is_distributed_update")

    def start_gradient_comm(self, buf):
        self._do("start_gradient_comm", _c.pointer(buf))

    def wait_gradient_comm(self):
        return self._buffer_or_none("wait_gradient_comm")

    def test_gradient_comm(self):
        """(buffer or None, whether it is complete)"""
        complete, buf = c_int(), c_void_p()
        self._do("test_gradient_comm", byref(complete), byref(buf))
        return (buf if buf.value else None), complete.value != 0

    def start_increment_comm(self, buf):
        self._do("start_increment_comm", _c.pointer(buf))

    def wait_increment_comm(self):
        return self._buffer_or_none("wait_increment_comm")


class Distribution(_c.LibraryObject):
    """Collectives return a request for MLSL.wait or MLSL.test."""

    _prefix = "distribution_"

    def get_process_count(self, group_type):
        return self._size("get_process_count", c_int(group_type))

    def get_process_idx(self, group_type):
        return self._size("get_process_idx", c_int(group_type))

    def _start(self, name, *arguments):
        return self._ask(name, c_ulonglong, *arguments)

    def bcast(self, buf, count, data_type, root_idx, group_type):
        return self._start("bcast", _c.pointer(buf), c_size_t(count), c_int(data_type), c_size_t(root_idx), c_int(group_type))

    def reduce(self, send_buf, recv_buf, count, data_type, red_type, root_idx, group_type):
        return self._start("reduce", _c.pointer(send_buf), _c.pointer(recv_buf), c_size_t(count), c_int(data_type), c_int(red_type),
                           c_size_t(root_idx), c_int(group_type))

    def all_reduce(self, send_buf, recv_buf, count, data_type, red_type, group_type):
        return self._start("all_reduce", _c.pointer(send_buf), _c.pointer(recv_buf), c_size_t(count), c_int(data_type), c_int(red_type),
                           c_int(group_type))

    def all_to_all(self, send_buf, send_count, recv_buf, data_type, group_type):
        return self._start("all_to_all", _c.pointer(send_buf), c_size_t(send_count), _c.pointer(recv_buf), c_int(data_type), c_int(group_type))

    def all_to_allv(self, send_buf, send_counts, send_offsets, recv_buf, recv_counts, recv_offsets, data_type, group_type):
        return self._start("all_to_allv", _c.pointer(send_buf), _c.sizes(send_counts), _c.sizes(send_offsets), _c.pointer(recv_buf),
                           _c.sizes(recv_counts), _c.sizes(recv_offsets), c_int(data_type), c_int(group_type))

    def gather(self, send_buf, send_count, recv_buf, data_type, root_idx, group_type):
        return self._start("gather", _c.pointer(send_buf), c_size_t(send_count), _c.pointer(recv_buf), c_int(data_type), c_size_t(root_idx),
                           c_int(group_type))

    def all_gather(self, send_buf, send_count, recv_buf, data_type, group_type):
        return self._start("all_gather", _c.pointer(send_buf), c_size_t(send_count), _c.pointer(recv_buf), c_int(data_type), c_int(group_type))

    def scatter(self, send_buf, recv_buf, recv_count, data_type, root_idx, group_type):
        return self._start("scatter", _c.pointer(send_buf), _c.pointer(recv_buf), c_size_t(recv_count), c_int(data_type), c_size_t(root_idx),
                           c_int(group_type))

    def reduce_scatter(self, send_buf, recv_buf, recv_count, data_type, red_type, group_type):
        return self._start("reduce_scatter", _c.pointer(send_buf), _c.pointer(recv_buf), c_size_t(recv_count), c_int(data_type),
                           c_int(red_type), c_int(group_type))

    def barrier(self, group_type):
        self._do("barrier", c_int(group_type))


class OperationRegInfo(_c.LibraryObject):
    _prefix = "operation_reg_info_"

    def set_name(self, name):
        self._do("set_name", _c.text(name))

    def add_input(self, fm_count, fm_size, data_type):
        self._do("add_input", c_size_t(fm_count), c_size_t(fm_size), c_int(data_type))

    def add_output(self, fm_count, fm_size, data_type):
        self._do("add_output", c_size_t(fm_count), c_size_t(fm_size), c_int(data_type))

    def add_parameter_set(self, kernel_count, kernel_size, data_type, dist_update=False, compress_type=CompressionType.NONE):
        self._do("add_parameter_set_with_compress", c_size_t(kernel_count), c_size_t(kernel_size), c_int(data_type), c_int(bool(dist_update)),
                 c_int(compress_type))

    def validate(self, dist=None):
        self._do("validate", _c.handle_of(dist))


@_c.with_sizes("get_global_minibatch_size", "get_local_minibatch_size", "get_global_minibatch_offset", "get_input_count", "get_output_count",
             "get_parameter_set_count")
class Operation(_c.LibraryObject):
    _prefix = "operation_"

    def set_distribution(self, dist):
        self._do("set_distribution", _c.handle_of(dist))

    def get_distribution(self):
        handle = self._ask("get_distribution", c_ulonglong)
        return Distribution(handle) if handle.value else None

    def get_session(self):
        return Session(self._ask("get_session", c_ulonglong))

    def get_op_type(self):
        return self._ask("get_op_type", c_int).value

    def set_prev(self, prev_op, act_idx, prev_op_act_idx):
        self._do("set_prev", _c.handle_of(prev_op), c_size_t(act_idx), c_size_t(prev_op_act_idx))

    def set_next(self, next_op, act_idx, next_op_act_idx):
        self._do("set_next", _c.handle_of(next_op), c_size_t(act_idx), c_size_t(next_op_act_idx))

    def get_name(self):
        return self._ask("get_name", c_char_p).value

    def get_input(self, idx):
        return Activation(self._ask("get_input", c_ulonglong, c_size_t(idx)))

    def get_output(self, idx):
        return Activation(self._ask("get_output", c_ulonglong, c_size_t(idx)))

    def has_parameter_sets(self):
        return self._flag("has_parameter_sets")

    def get_parameter_set(self, idx):
        return ParameterSet(self._ask("get_parameter_set", c_ulonglong, c_size_t(idx)))


@_c.with_sizes("get_total_comm_size")
class Statistics(_c.LibraryObject):
    _prefix = "statistics_"

    def start(self):
        self._do("start")

    def stop(self):
        self._do("stop")

    def reset(self):
        self._do("reset")

    def dump(self):
        self._do("print")

    def is_started(self):
        return self._flag("is_started")

    def is_enabled(self):
        return self._flag("is_enabled")

    def get_comm_size(self, op_idx):
        return self._size("get_comm_size", c_size_t(op_idx))

    def get_isolation_comm_cycles(self, op_idx):
        return self._ask("get_isolation_comm_cycles", c_ulonglong, c_size_t(op_idx)).value

    def get_comm_cycles(self, op_idx):
        return self._ask("get_comm_cycles", c_ulonglong, c_size_t(op_idx)).value

    def get_compute_cycles(self, op_idx):
        return self._ask("get_compute_cycles", c_ulonglong, c_size_t(op_idx)).value

    def get_total_isolation_comm_cycles(self):
        return self._ask("get_total_isolation_comm_cycles", c_ulonglong).value

    def get_total_comm_cycles(self):
        return self._ask("get_total_comm_cycles", c_ulonglong).value

    def get_total_compute_cycles(self):
        return self._ask("get_total_compute_cycles", c_ulonglong).value


@_c.with_sizes("get_global_minibatch_size", "get_operation_count")
class Session(_c.LibraryObject):
    _prefix = "session_"

    def set_global_minibatch_size(self, batch_size):
        self._do("set_global_minibatch_size", c_size_t(batch_size))

    def get_phase_type(self):
        return self._ask("get_phase_type", c_int).value

    def create_operation_reg_info(self, op_type):
        return OperationRegInfo(self._ask("create_operation_reg_info", c_ulonglong, c_int(op_type)))

    def delete_operation_reg_info(self, reg_info):
        self._do("delete_operation_reg_info", _c.handle_of(reg_info))

    def add_operation_with_distribution(self, reg_info, dist):
        return self._size("add_operation_with_distribution", _c.handle_of(reg_info), _c.handle_of(dist))

    def add_operation(self, reg_info):
        return self._size("add_operation", _c.handle_of(reg_info))

    def remove_operations(self):
        self._do("remove_operations")

    def get_operation(self, op_idx):
        return Operation(self._ask("get_operation", c_ulonglong, c_size_t(op_idx)))

    def commit(self):
        self._do("commit")

    def get_stats(self):
        return Statistics(self._ask("get_stats", c_ulonglong))


class QuantParams(Structure):
    _fields_ = [("lib_path", c_char_p), ("quant_buffer_func_name", c_char_p), ("dequant_buffer_func_name", c_char_p),
                ("reduce_sum_func_name", c_char_p), ("block_size", c_size_t), ("elem_in_block", c_size_t)]


@_c.with_sizes("get_process_idx", "get_process_count")
class MLSL(_c.LibraryObject):
    """The environment; all objects of this class are the same one."""

    _prefix = "environment_"

    def __init__(self):
        handle = c_ulonglong()
        _c.call("environment_get_env", byref(handle))
        super().__init__(handle)

    def get_version(self):
        version = c_int()
        _c.call("environment_get_version", byref(version))
        return version.value

    def configure(self, config):
        self._do("configure", _c.text(config))

    _starts = 0

    def init(self):
        if not self.is_initialized():
            self._do("init", None, None)
        MLSL._starts += 1

    def finalize(self):
        MLSL._starts -= 1
        if MLSL._starts == 0:
            self._do("finalize")

    def is_initialized(self):
        return self._flag("is_initialized")

    def create_session(self, phase_type=PhaseType.TRAIN):
        return Session(self._ask("create_session", c_ulonglong, c_int(phase_type)))

    def delete_session(self, session):
        self._do("delete_session", _c.handle_of(session))

    def create_distribution(self, data_parts, model_parts):
        return Distribution(self._ask("create_distribution", c_ulonglong, c_size_t(data_parts), c_size_t(model_parts)))

    def delete_distribution(self, dist):
        self._do("delete_distribution", _c.handle_of(dist))

    def wait(self, req):
        self._do("wait", req)

    def test(self, req):
        return self._flag("test", req)

    def alloc(self, size, alignment):
        return self._ask("alloc", c_void_p, c_size_t(size), c_size_t(alignment))

    def free(self, ptr):
        self._do("free", _c.pointer(ptr))

    def set_quantization_params(self, params):
        self._do("set_quantization_params", byref(params))

    def get_quantization_params(self):
        return self._ask("get_quantization_params", QuantParams)


Environment = MLSL
_of_import = None


def close():
    """Undoes the init of the import, if there was one."""
    global _of_import
    if _of_import is not None:
        _of_import.finalize()
        _of_import = None


if os.environ.get("MLSL_ALLOW_REINIT") == "1":
    _of_import = MLSL()
    _of_import.init()
