#pragma once
// Lists the members of a zip file (APPNOTE.TXT of PKWARE, with zip64), found through its central
// directory.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/inflate.h"

namespace tutti::data {

struct ZipMember {
  static constexpr int kStored = 0, kDeflated = 8;

  std::string name{};
  int method = kStored;
  int64_t first = 0;   ///< where its bytes begin in the file
  int64_t stored = 0;  ///< bytes in the file, all within it
  int64_t bytes = 0;   ///< inflated size: at most what `stored` bytes can hold
  uint32_t crc = 0;    ///< CRC-32 of the inflated bytes
};

/// Lists the members, which are stored or deflated, not encrypted, and do not overlap. If several
/// have one name, only the last is listed, as in Python. BadFile for anything else.
std::vector<ZipMember> zip_members(const FileBytes& file);

}  // namespace tutti::data
