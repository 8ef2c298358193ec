#pragma once
// Tar: the members of an archive and where their bytes lie. ustar with GNU's and POSIX's (pax) long
// names and large sizes. Nothing is unpacked: members are read where they lie.

#include <cstdint>
#include <functional>
#include <string>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// A regular file in an archive; its bytes are [offset, offset + bytes) of the archive's file.
struct TarMember {
  std::string name;
  int64_t offset = 0, bytes = 0;
};

/// Calls look() with each file of the archive that lies in bytes [begin, end) of `file`, in order:
/// those that are there once it is unpacked, so of several of one name the last. Hard and symbolic
/// links are the files that they lead to; a warning counts those that lead to none of the archive.
/// Archives that were joined are read one after the other. BadFile naming the file, the place and
/// what is wrong where it is no archive, is damaged, ends early, or goes on with something else.
void walk_tar(const FileBytes& file, int64_t begin, int64_t end,
              const std::function<void(const TarMember&)>& look);

}  // namespace tutti::data
