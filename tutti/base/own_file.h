#pragma once
// Opens folders and files that only this user may have made, and results in folders where others
// write, too: a node's temporary folder, shared memory, a project's scratch space. Files of another
// user are never read or written through.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace tutti {

/// Returns why another user may have changed a file or folder: it belongs to a user other than this
/// process's and root, or its mode lets others write. Empty: neither.
std::string why_foreign(const struct stat& status);

/// Makes the folder with mode 0700 unless it exists; missing parents get the umask's mode. Throws
/// IoError naming the folder and a remedy if it cannot be made, is no folder, or may hold files of
/// another user.
void make_own_folder(const std::filesystem::path& folder);

/// Whether the owner is a user other than this process's and root.
bool is_foreign_owner(uid_t owner);

/// Calls open(2) on a regular file, following no link in its last place and waiting for no reader
/// or writer. Throws IoError if it cannot be opened, is no regular file, or belongs to another
/// user; O_TRUNC has then removed nothing. A file that this call makes counts as own, whatever
/// owner the file system reports (NFS makes root's files nobody's). The caller closes the
/// descriptor.
int open_own_file(const std::filesystem::path& file, int flags, mode_t mode = 0600);
/// Opens such a file for reading. Returns a stream that is not open if nothing has this name.
std::ifstream own_input(const std::filesystem::path& file);

/// Returns this process's descriptor of a name such as /dev/stdin, /dev/stdout, /dev/stderr,
/// /dev/fd/N, /proc/self/fd/N.
std::optional<int> descriptor_of(const std::filesystem::path& path);
/// Follows the links that begin with this name and returns a path that is no link, or a
/// descriptor's name. Throws IoError for a link that belongs to neither this user nor root, since
/// somebody else chose its target, and for links without an end.
std::filesystem::path followed_output(const std::filesystem::path& name);
/// Calls open(2) on a file for results, with the umask's mode, waiting for no reader. Follows
/// links of this user and of root in the last place; a descriptor's name continues at that
/// descriptor's position. Throws IoError if the file cannot be written, or if the name is another
/// user's link, a pipe or a socket. A file of another user is accepted: in a group's folder it
/// belongs to whoever came first. The caller closes the descriptor.
int open_output(const std::filesystem::path& name, int flags);
/// Does the same as a stream that truncates the file or, with std::ios::app, appends to it.
std::ofstream output_stream(const std::filesystem::path& name, std::ios::openmode mode = {});

/// Returns 32 hexadecimal digits from the system's random numbers, for names that nobody can guess.
std::string random_name();

}  // namespace tutti
