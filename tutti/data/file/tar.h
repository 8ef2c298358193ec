#pragma once
// Finds the members of a tar archive and where their bytes lie: ustar with GNU's and POSIX's (pax)
// long names and large sizes. Nothing is unpacked: members are read in place.

#include <cstdint>
#include <functional>
#include <string>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// A regular file in an archive; its bytes are [offset, offset + bytes) of the archive file.
struct TarMember {
  std::string name;
  int64_t offset = 0, bytes = 0;
};

/// Calls look() with each file of the archive in bytes [begin, end) of `file`, in order, as
/// unpacking would leave them: if several have one name, the last counts. Hard and symbolic links
/// stand for the files that they lead to; a warning counts the links that lead to no file of the
/// archive. Concatenated archives are read one after the other. Throws BadFile that names the file,
/// the place and the fault if it is no archive, is damaged, ends early, or continues with something
/// else.
void walk_tar(const FileBytes& file, int64_t begin, int64_t end,
              const std::function<void(const TarMember&)>& look);

}  // namespace tutti::data
