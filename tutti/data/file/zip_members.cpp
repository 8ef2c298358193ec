#include "tutti/data/file/zip_members.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>

#include "tutti/base/log.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

constexpr int64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46,
                  kLocalBytes = 30;
constexpr uint32_t kEndMagic = 0x06054b50, kEnd64Magic = 0x06064b50, kLocatorMagic = 0x07064b50,
                   kEntryMagic = 0x02014b50, kLocalMagic = 0x04034b50;
constexpr int64_t kMostMembers = 1 << 20;

/// Reads a little-endian number of `bytes` bytes.
uint64_t zip_number(std::span<const uint8_t> at, size_t offset, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i-- > 0;) value = value << 8 | at[offset + i];
  return value;
}

std::string method_name(int method) {
  switch (method) {
    case 9: return "deflate64 (method 9)";
    case 12: return "bzip2 (method 12)";
    case 14: return "LZMA (method 14)";
    case 20:
    case 93: return fmt::format("zstd (method {})", method);
    case 95: return "xz (method 95)";
    default: return fmt::format("method {}", method);
  }
}

class ZipReader {
 public:
  explicit ZipReader(const FileBytes& file) : file_(file) {}

  std::vector<ZipMember> members() {
    find_directory();
    if (count_ > kMostMembers || count_ > directory_bytes_ / kEntryBytes)
      refuse(fmt::format("{} members in a directory of {} bytes", count_, directory_bytes_));
    const std::vector<uint8_t> directory = bytes(directory_, directory_bytes_);
    std::vector<ZipMember> members;
    size_t at = 0;
    for (int64_t i = 0; i < count_; ++i) members.push_back(entry(directory, at));
    check_overlaps(members);
    keep_last(members);
    return members;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw BadFile(unreadable(file_, Content::zip, fmt::format("no sound zip file: {}", what)));
  }
  /// Refuses a file that is sound but not supported.
  [[noreturn]] void cannot(const std::string& what) const {
    throw BadFile("{}: {}", file_.name(), what);
  }

  std::vector<uint8_t> bytes(int64_t at, int64_t count) const {
    if (at < 0 || count < 0 || at > file_.size() || count > file_.size() - at)
      refuse(fmt::format("{} bytes at {} of {}", count, at, file_.size()));
    std::vector<uint8_t> out(static_cast<size_t>(count));
    file_.read(at, out);
    return out;
  }

  /// Checks that a number is a place or size within this file.
  int64_t within(uint64_t value, const char* what) const {
    if (value > static_cast<uint64_t>(file_.size()))
      refuse(fmt::format("{} {} in {} bytes", what, value, file_.size()));
    return static_cast<int64_t>(value);
  }

  void find_directory() {
    const int64_t tail = std::min<int64_t>(file_.size(), kEndBytes + 65535);
    const std::vector<uint8_t> end = bytes(file_.size() - tail, tail);
    int64_t at = tail - kEndBytes;
    while (at >= 0 && zip_number(end, static_cast<size_t>(at), 4) != kEndMagic) --at;
    if (at < 0) refuse("its directory is missing at the end");
    const auto place = static_cast<size_t>(at);
    uint64_t count = zip_number(end, place + 10, 2), size = zip_number(end, place + 12, 4),
             first = zip_number(end, place + 16, 4);
    const int64_t end_at = file_.size() - tail + at,
                  behind = file_.size() - end_at - kEndBytes -
                           static_cast<int64_t>(zip_number(end, place + 20, 2));
    if (behind > 0 && first_warning(file_.name(), "bytes follow the end"))
      log::warn_once("{}: {} bytes follow the end of the zip file and are not read", file_.name(),
                     behind);
    int64_t directory_end = end_at;
    if (count == 0xffff || size == 0xffffffff || first == 0xffffffff) {
      const auto locator = bytes(end_at - kLocatorBytes, kLocatorBytes);
      if (zip_number(locator, 0, 4) == kLocatorMagic) {
        const auto end64 = bytes(within(zip_number(locator, 8, 8), "directory at"), kEnd64Bytes);
        if (zip_number(end64, 0, 4) != kEnd64Magic) refuse("its zip64 directory is missing");
        directory_end = within(zip_number(locator, 8, 8), "directory at");
        count = zip_number(end64, 32, 8);
        size = zip_number(end64, 40, 8);
        first = zip_number(end64, 48, 8);
      }
    }
    count_ = within(count, "members");
    directory_bytes_ = within(size, "directory of");
    directory_ = within(first, "directory at");
    // Places count from the archive's own start: bytes before it shift all of them.
    if (const int64_t before = directory_end - directory_bytes_ - directory_; before > 0)
      cannot(fmt::format(
          "{0} bytes stand before the zip file, as where two were joined: 'tail -c +{1} OLD > NEW' "
          "makes a file of the last, 'head -c {0} OLD > NEW' one of what is before it",
          before, before + 1));
  }

  ZipMember entry(const std::vector<uint8_t>& directory, size_t& at) const {
    const auto room = [&](uint64_t count) { return count <= directory.size() - at; };
    if (!room(kEntryBytes) || zip_number(directory, at, 4) != kEntryMagic)
      refuse("a directory entry is missing");
    const uint64_t name = zip_number(directory, at + 28, 2),
                   extra = zip_number(directory, at + 30, 2),
                   comment = zip_number(directory, at + 32, 2);
    if (!room(kEntryBytes + name + extra + comment)) refuse("a directory entry is cut");
    ZipMember member;
    const auto* text = reinterpret_cast<const char*>(directory.data()) + at + kEntryBytes;
    member.name.assign(text, name);
    for (char& c : member.name)
      if (static_cast<unsigned char>(c) < ' ') c = '?';  // it goes into messages
    member.method = static_cast<int>(zip_number(directory, at + 10, 2));
    member.crc = static_cast<uint32_t>(zip_number(directory, at + 16, 4));
    if ((zip_number(directory, at + 8, 2) & 1) != 0)
      cannot(
          fmt::format("member '{}' is encrypted, which is not read: unpack it with 'unzip -P "
                      "PASSWORD FILE' and save the arrays again (numpy.savez)",
                      member.name));
    if (member.method != ZipMember::kStored && member.method != ZipMember::kDeflated)
      cannot(fmt::format(
          "member '{}' is packed by {}, which is not read: load the file in Python and save it "
          "again, numpy.savez_compressed('NEW.npz', **numpy.load('OLD.npz'))",
          member.name, method_name(member.method)));
    uint64_t stored = zip_number(directory, at + 20, 4), full = zip_number(directory, at + 24, 4),
             local = zip_number(directory, at + 42, 4);
    size_t more = at + kEntryBytes + name;
    const size_t more_end = more + extra;
    while (more + 4 <= more_end) {  // zip64: only the numbers that do not fit above, in this order
      const uint64_t id = zip_number(directory, more, 2),
                     length = zip_number(directory, more + 2, 2);
      more += 4;
      if (length > more_end - more) break;
      if (id == 1) {
        size_t next = more;
        for (uint64_t* value : {&full, &stored, &local}) {
          if (*value != 0xffffffff || next + 8 > more + length) continue;
          *value = zip_number(directory, next, 8);
          next += 8;
        }
      }
      more += length;
    }
    at = more_end + comment;
    member.stored = within(stored, "member of");
    place(member, within(local, "member at"));
    const bool packed = member.method == ZipMember::kDeflated;
    if (packed ? full / kMostInflation > stored + 1 : full != stored)
      refuse(fmt::format("member '{}' announces {} bytes in {}", member.name, full, stored));
    member.bytes = static_cast<int64_t>(full);
    return member;
  }

  void place(ZipMember& member, int64_t local) const {
    const auto header = bytes(local, kLocalBytes);
    if (zip_number(header, 0, 4) != kLocalMagic)
      refuse(fmt::format("member '{}' is not at {}", member.name, local));
    member.first = local + kLocalBytes + static_cast<int64_t>(zip_number(header, 26, 2)) +
                   static_cast<int64_t>(zip_number(header, 28, 2));
    if (member.first > file_.size() || member.stored > file_.size() - member.first)
      refuse(fmt::format("member '{}' goes beyond the end", member.name));
  }

  void check_overlaps(const std::vector<ZipMember>& members) const {
    std::vector<const ZipMember*> order;
    for (const ZipMember& member : members) order.push_back(&member);
    std::ranges::sort(order, {}, &ZipMember::first);
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i - 1]->first + order[i - 1]->stored > order[i]->first)
        refuse(fmt::format("members '{}' and '{}' overlap", order[i - 1]->name, order[i]->name));
  }

  /// Drops replaced members, which stay in the file (Python's zipfile in mode 'a').
  static void keep_last(std::vector<ZipMember>& members) {
    std::unordered_map<std::string_view, const ZipMember*> last;
    for (const ZipMember& member : members) last[member.name] = &member;
    if (last.size() == members.size()) return;
    std::vector<ZipMember> kept;
    for (const ZipMember& member : members)
      if (last[member.name] == &member) kept.push_back(member);
    members = std::move(kept);
  }

  const FileBytes& file_;
  int64_t count_ = 0, directory_ = 0, directory_bytes_ = 0;
};

}  // namespace

std::vector<ZipMember> zip_members(const FileBytes& file) { return ZipReader(file).members(); }

}  // namespace tutti::data
