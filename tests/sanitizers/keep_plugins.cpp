// Loaded before the programs of the tests under sanitizers. MPI unloads its plugins at its end and
// leaves behind what they have allocated. The leak sanitizer looks afterwards, when the plugins'
// addresses have no names any more, and leak.txt could not name them. The thread sanitizer ends a
// program that unloads a library of thread.txt.
extern "C" int dlclose(void*) noexcept { return 0; }
