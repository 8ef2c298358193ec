#pragma once
// Folders and files that only this user may have made, and results in folders where others write,
// too: a node's temporary folder, shared memory, a project's scratch space. What another user has
// put there is never read or written through.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace tutti {

/// Why a file or folder may hold what somebody else has put there: it belongs to a user other than
/// this process's and root, or a mode lets others write. Empty: neither.
std::string why_foreign(const struct stat& status);

/// Makes the folder with mode 0700 unless it is there; parents that are missing get the umask's
/// mode. IoError naming the folder and a remedy where it cannot be made, is no folder, or may hold
/// what somebody else has put there.
void make_own_folder(const std::filesystem::path& folder);

/// Whether it is a user other than this process's and root.
bool is_foreign_owner(uid_t owner);

/// open(2) of a regular file, following no link in its last place and waiting for no reader or
/// writer. IoError where it cannot be opened, is no regular file, or belongs to another user: then
/// O_TRUNC has taken nothing away. A file that this call makes is its own, whomever the file system
/// says it belongs to (NFS makes root's nobody's). The caller closes the descriptor.
int open_own_file(const std::filesystem::path& file, int flags, mode_t mode = 0600);
/// Such a file, to be read. A stream that is not open where nothing has this name.
std::ifstream own_input(const std::filesystem::path& file);

/// The descriptor of this process that has such a name: /dev/stdin, /dev/stdout, /dev/stderr,
/// /dev/fd/N, /proc/self/fd/N.
std::optional<int> descriptor_of(const std::filesystem::path& path);
/// Where the links lead that begin with this name: a path that is no link, or a descriptor's name.
/// IoError of a link that belongs to neither this user nor root, since somebody else chose what
/// would be written to, and of links without an end.
std::filesystem::path followed_output(const std::filesystem::path& name);
/// open(2) of a file that results are written to, with the umask's mode, waiting for no reader.
/// Links of this user's and root's in its last place are followed; a descriptor's name goes on
/// where that one is. IoError where it cannot be written, another user's link has its name, or a
/// pipe or a socket. A file of another user's is taken: in a group's folder it is whoever's came
/// first. The caller closes the descriptor.
int open_output(const std::filesystem::path& name, int flags);
/// The same as a stream that begins the file anew, or with std::ios::app goes on at its end.
std::ofstream output_stream(const std::filesystem::path& name, std::ios::openmode mode = {});

/// 32 hexadecimal digits from the system's random numbers: for names that nobody can guess.
std::string random_name();

}  // namespace tutti
