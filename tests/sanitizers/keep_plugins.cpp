// Loaded before the programs of the tests under the address sanitizer. MPI unloads its plugins at
// its end and leaves behind what they have allocated. The leak sanitizer looks afterwards, when the
// plugins' addresses have no names any more, and leak.txt could not name them.
extern "C" int dlclose(void*) noexcept { return 0; }
