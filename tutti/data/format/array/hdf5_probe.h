#pragma once
// Reads the headers of an HDF5 file in a child process.
//
// HDF5's library crashes on some damaged files (its list of CVEs is long), and a signal would end
// the whole job. So a child made by fork() walks the headers and sends what it found through a
// pipe; a child that crashes, takes too long or too much memory makes the file a BadFile, and
// nothing else. The parent never gives the file to HDF5: it reads the data by position itself.
//
// Why fork() and not another program that is executed: it works in every program that links
// Tutti (tests, the programs of users), needs nothing installed beside it, and costs about a
// millisecond. In a process with threads a forked child may call what is safe there: it holds
// hdf5_mutex(), which the forking thread took, glibc makes its allocator usable in a child, and the
// child starts no thread, writes to no stream and leaves by _exit(). A program that calls HDF5 by
// itself on another thread at that moment can leave the library locked in the child: the child is
// then ended after the time limit, and the file can be opened with ArrayFileOptions::probe = false.
// Forking a process of very many pages takes longer (100 ms for 50 GB): open files before
// training, or without a probe when they were opened before.

#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/hdf5_listing.h"

namespace tutti::data {

/// Debian's HDF5 has one lock of its own around every call, other builds have none: whoever calls
/// HDF5 in this folder holds this mutex.
std::mutex& hdf5_mutex();

/// What the child found. BadFile naming `file` if it crashed or took longer than `seconds`.
Hdf5Listing probe_hdf5(const std::filesystem::path& path, int64_t file_bytes, int seconds);

/// For tests, too: runs `work` in a child and returns the bytes that it made. Throws BadFile.
std::vector<uint8_t> bytes_of_child(const std::string& file, int seconds,
                                    const std::function<std::vector<uint8_t>()>& work);

}  // namespace tutti::data
