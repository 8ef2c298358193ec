#pragma once
// Folders and files that only this user may have made. They lie on disks where others write, too:
// a node's temporary folder, shared memory, a project's scratch space. What another user has put
// there is never read or written through.

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace tutti {

/// Why a file or folder may hold what somebody else has put there: it belongs to a user other than
/// this process's and root, or a mode lets others write. Empty: neither.
std::string why_foreign(const struct stat& status);

/// Makes the folder with mode 0700 unless it is there; parents that are missing get the umask's
/// mode. IoError naming the folder and a remedy where it cannot be made, is no folder, or may hold
/// what somebody else has put there.
void make_own_folder(const std::filesystem::path& folder);

/// open(2) of a regular file with mode 0600, following no link in its last place and waiting for
/// nobody. IoError where it cannot be opened, is no regular file, or belongs to another user. The
/// caller closes the descriptor.
int open_own_file(const std::filesystem::path& file, int flags);

/// 32 hexadecimal digits from the system's random numbers: for names that nobody can guess.
std::string random_name();

}  // namespace tutti
