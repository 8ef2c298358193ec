#pragma once
// Reads the headers of an HDF5 file in a child process.
//
// HDF5's library crashes on some damaged files (its list of CVEs is long), and a signal would end
// the whole job. So a child made by fork() walks the headers and sends its findings through a pipe;
// if it crashes, takes too long or too much memory, the result is only a BadFile. The parent never
// gives the file to HDF5: it reads the data by position itself.
//
// fork() instead of another executable works in every program that links Tutti (tests, users'
// programs), needs nothing installed beside it, and costs about a millisecond. In a process with
// threads a forked child may only make calls that are safe there: it holds hdf5_mutex(), which the
// forking thread took, glibc makes its allocator usable in a child, and the child starts no thread,
// writes to no stream and leaves by _exit(). If a program itself calls HDF5 on another thread at
// that moment, the library may be locked in the child: the child is then ended after the time
// limit, and the file can be opened with ArrayFileOptions::probe = false. Forking a process with
// very many pages takes longer (100 ms for 50 GB): open files before training, or without a probe
// if they were opened before.

#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/hdf5_listing.h"

namespace tutti::data {

/// Callers of HDF5 in this folder hold this mutex: Debian's HDF5 has its own lock around every
/// call, other builds have none.
std::mutex& hdf5_mutex();

/// Returns the child's listing. BadFile naming `file` if it crashed or took longer than `seconds`.
Hdf5Listing probe_hdf5(const std::filesystem::path& path, int64_t file_bytes, int seconds);

/// Runs `work` in a child and returns its bytes; also for tests. Throws BadFile.
std::vector<uint8_t> bytes_of_child(const std::string& file, int seconds,
                                    const std::function<std::vector<uint8_t>()>& work);

}  // namespace tutti::data
