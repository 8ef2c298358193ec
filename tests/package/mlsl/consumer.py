"""A program of an installed libmlsl in Python. Exit status 0 if all is as documented."""

from ctypes import c_float

import mlsl

environment = mlsl.MLSL()
assert environment.get_version() >> 16 == 1
for _ in range(2):  # two parts of a program
    environment.init()
world = environment.create_distribution(environment.get_process_count(), 1)
total = (c_float * 1)(1)
environment.wait(world.all_reduce(total, total, 1, mlsl.DataType.FLOAT, mlsl.ReductionType.SUM, mlsl.GroupType.GLOBAL))
assert total[0] == environment.get_process_count()
environment.finalize()
assert environment.is_initialized()
environment.finalize()
assert not environment.is_initialized()
mlsl.close()
