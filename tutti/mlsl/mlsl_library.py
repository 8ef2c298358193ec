"""The C functions of libmlsl.so, as mlsl.py calls them: the library, its arguments, and objects that are handles of it.

The library is $MLSL_ROOT/lib/libmlsl.so.1, or the one installed with this file, or else what the dynamic loader finds.
"""

import os
from ctypes import CDLL, RTLD_GLOBAL, byref, c_char_p, c_int, c_size_t, c_ulonglong, c_void_p, cast


class MlslError(RuntimeError):
    pass


def _load():
    name = "libmlsl.so.1"
    places = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    if "MLSL_ROOT" in os.environ:
        places.insert(0, os.path.join(os.environ["MLSL_ROOT"], "lib"))
    found = [place for place in places if os.path.exists(os.path.join(place, name))]
    # Global, because MPI's plug-ins look for MPI's own symbols.
    return CDLL(os.path.join(found[0], name) if found else name, mode=RTLD_GLOBAL)


_library = None


def call(name, *arguments):
    global _library
    if _library is None:
        _library = _load()
    if getattr(_library, "mlsl_" + name)(*arguments) != 0:
        raise MlslError("mlsl_%s failed" % name)


def pointer(buffer):
    if buffer is None or isinstance(buffer, (int, c_void_p)):
        return c_void_p(buffer) if isinstance(buffer, int) else buffer
    return cast(buffer, c_void_p)


def sizes(values):
    return (c_size_t * len(values))(*values)


def text(value):
    return c_char_p(value if value is None or isinstance(value, bytes) else value.encode())


class LibraryObject:
    """A handle and the prefix of its functions."""

    _prefix = ""

    def __init__(self, handle):
        self._handle = handle

    def get_handle(self):
        return self._handle

    def _do(self, name, *arguments):
        call(self._prefix + name, self._handle, *arguments)

    def _ask(self, name, kind, *arguments):
        answer = kind()
        self._do(name, *arguments, byref(answer))
        return answer

    def _size(self, name, *arguments):
        return self._ask(name, c_size_t, *arguments).value

    def _flag(self, name, *arguments):
        return self._ask(name, c_int, *arguments).value != 0

    def _buffer(self, name):
        return self._ask(name, c_void_p)

    def _buffer_or_none(self, name):
        answer = self._buffer(name)
        return answer if answer.value else None


def handle_of(thing):
    return c_ulonglong(0) if thing is None else thing.get_handle()


def size_getter(name):
    return lambda self: self._size(name)


def with_sizes(*names):
    """Adds a method for each C function that has a size_t as its only answer."""

    def add(cls):
        for name in names:
            setattr(cls, name, size_getter(name))
        return cls

    return add
