// Loaded before the programs of the tests under sanitizers. MPI unloads its plugins at its end and
// leaves their allocations behind. The leak sanitizer runs afterwards, when the plugins' addresses
// have no names any more, so leak.txt could not name them. The thread sanitizer ends a program that
// unloads a library of thread.txt.
extern "C" int dlclose(void*) noexcept { return 0; }
