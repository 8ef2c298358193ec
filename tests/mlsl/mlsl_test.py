"""The acceptance test of the Python interface; see mlsl_test.cpp for what is tested, and for the arguments:
  mlsl_test.py GROUP_COUNT [DIST_UPDATE] [USER_BUF] [USE_TEST] [QUANT_LIB]
The numbers are whole and small enough for floats to hold them exactly, so arrays are compared as a whole.
Images are of 6 x 6 positions, a quarter of mlsl_test.cpp's, since Python takes ten times as long for each."""

import sys
from array import array
from ctypes import c_float, c_double, addressof, c_void_p

import mlsl

MINIBATCH = 16
SPACE = 6 * 6
KERNEL = 3 * 3
MAPS = (128, 256, 256)

environment = mlsl.MLSL()


def numbers(indices):
    return array("f", indices)


def view(address, count):
    """The floats at an address, a c_void_p or an int."""
    return memoryview((c_float * count).from_address(address.value if isinstance(address, c_void_p) else address)).cast("B").cast("f")


class Layer:
    def __init__(self, options, operation, index):
        self.options, self.operation, self.index, self.wrong, self.errors = options, operation, index, 0, []
        self.previous = self.next = None
        self.input, self.output = operation.get_input(0), operation.get_output(0)
        self.parameters = operation.get_parameter_set(0)
        self.samples = operation.get_local_minibatch_size()
        self.data = {side: (c_float * self.elements(side))() for side in (self.input, self.output)}
        self.gradients = {side: (c_float * self.elements(side))() for side in (self.input, self.output)}
        self.count = self.parameters.get_local_kernel_count() * KERNEL
        self.indices = numbers(range(self.count))
        self.weights, self.gradient = (c_float * self.count)(), (c_float * self.count)()
        if environment.get_process_idx() == 0:
            memoryview(self.weights).cast("B").cast("f")[:] = self.indices
        distribution = operation.get_distribution()
        environment.wait(distribution.bcast(self.weights, self.count, mlsl.DataType.FLOAT, 0, mlsl.GroupType.GLOBAL))
        self.buffers = {}
        for side in (self.input, self.output):
            size = side.get_comm_buf_size()
            self.buffers[side] = environment.alloc(size, 64) if options["user_buf"] and size > 0 else side.get_comm_buf()
        self.ramp = numbers(range(self.elements(self.output)))
        first, owned = self.parameters.get_owned_kernel_offset() * KERNEL, self.parameters.get_owned_kernel_count() * KERNEL
        self.owned = slice(first, first + owned)
        ranks = distribution.get_process_count(mlsl.GroupType.DATA)
        self.gradient_sums = numbers(ranks * x for x in self.indices[self.owned])
        self.input_numbers = self.number_inputs()
        self.input_sums = numbers(options["model_parts"] * x for x in self.input_numbers)

    def elements(self, side):
        return self.samples * side.get_local_fm_count() * SPACE

    def number_inputs(self):
        """The numbers of the local input elements, in the sample order of all maps."""
        maps, first = self.input.get_local_fm_count(), self.input.get_global_fm_offset()
        result = numbers([])
        for sample in range(self.samples):
            begin = sample * maps * SPACE * self.options["model_parts"] + first * SPACE
            result.extend(range(begin, begin + maps * SPACE))
        return result

    def free(self):
        if self.options["user_buf"]:
            for buffer in self.buffers.values():
                environment.free(buffer)

    def expect(self, what, got, right):
        if bytes(got) == bytes(right):
            return
        bad = [i for i, (a, b) in enumerate(zip(got, right)) if abs(a - b) > 1e-4]
        self.wrong += len(bad)
        for i in bad[:3]:
            print("layer %d: %s %d is %g, and should be %g" % (self.index, what, i, got[i], right[i]), file=sys.stderr)

    def floats(self, memory):
        return memoryview(memory).cast("B").cast("f")

    def move(self, side, block, local, buffer, packs):
        size, maps = block.get_fm_size(), block.get_fm_count()
        run, offset = maps * size, block.get_buf_offset()
        sample = side.get_local_fm_count() * size
        for s in range(block.get_mb_count()):
            begin = (block.get_mb_offset() + s) * sample + block.get_fm_offset() * size
            if packs:
                buffer[offset + s * run:offset + (s + 1) * run] = local[begin:begin + run]
            else:
                local[begin:begin + run] = buffer[offset + s * run:offset + (s + 1) * run]

    def start(self, side, memory):
        buffer = self.buffers[side]
        for b in range(side.get_pack_block_count()):
            self.move(side, side.get_pack_block(b), self.floats(memory), view(buffer, side.get_comm_buf_size() // 4), True)
        side.start_comm(buffer)

    def wait(self, side, memory):
        received = side.wait_comm()
        if not received.value:
            return False
        for b in range(side.get_unpack_block_count()):
            self.move(side, side.get_unpack_block(b), self.floats(memory), view(received, side.get_comm_buf_size() // 4), False)
        return True

    def forward(self):
        mine = self.data[self.input]
        if not self.wait(self.input, mine) and self.previous is not None:
            self.floats(mine)[:] = self.floats(self.previous.data[self.previous.output])
        self.parameters.wait_increment_comm()
        self.expect("weight", self.floats(self.weights), self.indices)
        if self.index == 0:
            self.floats(self.data[self.output])[:] = self.ramp
        else:
            self.expect("input", self.floats(mine), self.input_sums)
        self.start(self.output, self.data[self.output])

    def backward_input(self):
        mine = self.gradients[self.output]
        if not self.wait(self.output, mine) and self.next is not None:
            self.floats(mine)[:] = self.floats(self.next.gradients[self.next.input])
        if self.index == 0:
            self.expect("gradient of the output", self.floats(mine), self.ramp)
        else:
            self.floats(self.gradients[self.input])[:] = self.input_numbers
        self.start(self.input, self.gradients[self.input])

    def backward_weights(self):
        self.floats(self.gradient)[:] = self.indices
        self.parameters.start_gradient_comm(self.gradient)

    def finish_gradient(self):
        if not self.options["use_test"]:
            return self.parameters.wait_gradient_comm()
        complete = False
        while not complete:
            received, complete = self.parameters.test_gradient_comm()
        return received

    def update(self):
        received = self.finish_gradient()
        right = self.gradient_sums
        total = view(addressof(self.gradient) if received is None else received, len(right))
        if self.options["quant_lib"]:
            self.errors.extend(abs(a - b) / b for a, b in zip(total[1::97], right[1::97]))
        else:
            self.expect("sum of gradients", total, right)
        self.floats(self.weights)[self.owned] = self.indices[self.owned]
        self.parameters.start_increment_comm(self.weights)


def add_operation(session, distribution, options, index):
    info = session.create_operation_reg_info(mlsl.OperationType.CC)
    info.set_name("convolution %d" % index)
    info.add_input(MAPS[index], SPACE, mlsl.DataType.FLOAT)
    info.add_output(MAPS[index + 1], SPACE, mlsl.DataType.FLOAT)
    compression = mlsl.CompressionType.QUANTIZATION if options["quant_lib"] else mlsl.CompressionType.NONE
    info.add_parameter_set(MAPS[index] * MAPS[index + 1], KERNEL, mlsl.DataType.FLOAT, options["dist_update"], compression)
    number = session.add_operation_with_distribution(info, distribution)
    session.delete_operation_reg_info(info)
    if number > 0:
        session.get_operation(number).set_prev(session.get_operation(number - 1), 0, 0)


def train(layers):
    for _epoch in range(2):
        for _minibatch in range(3):
            for layer in layers:
                layer.forward()
            for layer in reversed(layers):
                layer.backward_input()
                layer.backward_weights()
            for layer in layers:
                layer.update()
        for layer in layers:
            layer.parameters.wait_increment_comm()


def main(arguments):
    if not arguments:
        sys.exit("usage: mlsl_test.py GROUP_COUNT [DIST_UPDATE] [USER_BUF] [USE_TEST] [QUANT_LIB]")
    given = dict(zip(("model_parts", "dist_update", "user_buf", "use_test", "quant_lib"), arguments + ["0"] * 4))
    options = {name: int(given[name]) for name in ("model_parts", "dist_update", "user_buf", "use_test")}
    options["quant_lib"] = arguments[4] if len(arguments) > 4 else None

    environment.init()
    if options["quant_lib"]:
        environment.set_quantization_params(mlsl.QuantParams(options["quant_lib"].encode(), b"dl_comp_compress_buffer", b"dl_comp_decompress_buffer",
                                                             b"dl_comp_compressed_buffer_reduce_sum", 268, 256))
    distribution = environment.create_distribution(environment.get_process_count() // options["model_parts"], options["model_parts"])
    session = environment.create_session(mlsl.PhaseType.TRAIN)
    session.set_global_minibatch_size(MINIBATCH)
    for index in range(2):
        add_operation(session, distribution, options, index)
    session.commit()
    layers = [Layer(options, session.get_operation(index), index) for index in range(2)]
    layers[0].next, layers[1].previous = layers[1], layers[0]
    train(layers)
    if options["quant_lib"] and environment.get_process_idx() == 0:
        errors = layers[0].errors
        print("relative error of the gradients: average %.3e, least %.3e, most %.3e" % (sum(errors) / len(errors), min(errors), max(errors)))
    for layer in layers:
        layer.free()
    session.get_stats().dump()

    wrong = (c_double * 1)(sum(layer.wrong for layer in layers))
    environment.wait(distribution.all_reduce(wrong, wrong, 1, mlsl.DataType.DOUBLE, mlsl.ReductionType.SUM, mlsl.GroupType.GLOBAL))
    rank = environment.get_process_idx()
    if rank == 0:
        print("mlsl_test.py: %s" % ("PASSED" if wrong[0] == 0 else "FAILED"))
    environment.delete_session(session)
    environment.delete_distribution(distribution)
    environment.finalize()
    print("[%d] exited normally" % rank)
    return 0 if wrong[0] == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
