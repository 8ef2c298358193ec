#pragma once
// System calls on files, as far as file systems and sandboxes differ in what they offer.

#include <filesystem>
#include <string>

namespace tutti {

/// Whether `path` leads to a file or folder. IoError with the system's reason where that cannot be
/// known (a folder that may not be searched, links that lead round): nobody says then that it does
/// not exist.
bool is_there(const std::filesystem::path& path);

/// Whether this errno says that the call is not offered here at all, by a file system or by a
/// filter of system calls as containers have it, so that the caller takes another way or does
/// without.
bool is_not_offered(int error) noexcept;

/// fsync(2). True where it is not offered: then nothing can be done for these bytes. False with
/// errno where they may be lost.
bool sync_to_disk(int file) noexcept;

/// "4711-9f86d081884c7d65", to end the name of a temporary file or folder. In containers and on
/// several hosts processes have the same number, so it has random bits, too. Names that are made of
/// it must be made with O_EXCL or mkdir(2).
std::string unique_ending();

/// A file without a name, for reading and writing, that other processes of this user open as
/// /proc/PID/fd/NUMBER: memory; where that is refused a file of /dev/shm, and where that is, too,
/// one in TMPDIR. `name` begins the name of what that link names, in any folder. -1, with the errno
/// of the first way, where all are refused.
struct NamelessFile {
  int descriptor = -1;    ///< closed on exec; the caller closes it
  bool sealable = false;  ///< it takes seals (fcntl F_ADD_SEALS)
};
NamelessFile make_nameless_file(const std::string& name) noexcept;

}  // namespace tutti
