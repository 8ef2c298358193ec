#pragma once
// System calls on files that not all file systems and sandboxes offer in the same way.

#include <filesystem>
#include <string>

namespace tutti {

/// Whether `path` leads to a file or folder. Throws IoError with the system's reason if that cannot
/// be known (a folder that may not be searched, a cycle of links), instead of returning false.
bool is_there(const std::filesystem::path& path);

/// Whether this errno says that the call is not offered at all, by a file system or by a filter of
/// system calls as containers have it, so that the caller uses another way or does without.
bool is_not_offered(int error) noexcept;

/// Calls fsync(2). Returns true also if it is not offered, because nothing can be done then.
/// Returns false with errno if the bytes may be lost.
bool sync_to_disk(int file) noexcept;

/// Returns an ending such as "4711-9f86d081884c7d65" for the name of a temporary file or folder.
/// Processes in containers and on several hosts may have the same number, so it has random bits,
/// too. Create files with such a name with O_EXCL or mkdir(2).
std::string unique_ending();

/// A file without a name, for reading and writing, that other processes of this user open as
/// /proc/PID/fd/NUMBER. It lies in memory; if that is refused in /dev/shm, and if that is refused,
/// too, in TMPDIR. `name` begins the name to which that link leads, in any folder. The descriptor
/// is -1, with the errno of the first way, if all are refused.
struct NamelessFile {
  int descriptor = -1;    ///< closed on exec; the caller closes it
  bool sealable = false;  ///< it takes seals (fcntl F_ADD_SEALS)
};
NamelessFile make_nameless_file(const std::string& name) noexcept;

}  // namespace tutti
