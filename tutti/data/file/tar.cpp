#include "tutti/data/file/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

constexpr int64_t kTarBlock = 512;
/// Most bytes of a long name or a pax header; a longer one is damaged.
constexpr int64_t kMostTarText = 1 << 20;

using TarHeader = std::array<uint8_t, kTarBlock>;

struct TarPlace {
  const FileBytes& file;
  int64_t at;

  [[noreturn]] void refuse(std::string_view why) const {
    const std::string text = fmt::format("at byte {} of the tar archive, {}", at, why);
    if (at == 0) throw BadFile(unreadable(file, Content::tar, text));
    throw BadFile("{}: {}: the archive is damaged; make or fetch it again", file.name(), text);
  }
};

/// Reads octal digits between blanks and zeros, or, with the first bit set, a big-endian number.
int64_t tar_number(const TarPlace& place, std::span<const uint8_t> field) {
  int64_t value = 0;
  if ((field[0] & 0x80) != 0) {
    if (field[0] != 0x80) place.refuse("a size is below 0 or beyond 2^63");
    for (const uint8_t byte : field.subspan(1)) {
      if (value >> 54 != 0) place.refuse("a size is beyond 2^62");
      value = value << 8 | byte;
    }
    return value;
  }
  size_t i = 0;
  while (i < field.size() && field[i] == ' ') ++i;
  for (; i < field.size() && field[i] != 0 && field[i] != ' '; ++i) {
    if (field[i] < '0' || field[i] > '7') place.refuse("a number is not octal");
    value = value << 3 | (field[i] - '0');
  }
  return value;
}

std::string tar_text(std::span<const uint8_t> field) {
  const auto end = std::find(field.begin(), field.end(), 0);
  return {field.begin(), end};
}

bool sum_fits(const TarPlace& place, const TarHeader& header) {
  const std::span<const uint8_t> all(header);
  int64_t sum = 0;
  for (size_t i = 0; i < all.size(); ++i) sum += i >= 148 && i < 156 ? ' ' : all[i];
  return tar_number(place, all.subspan(148, 8)) == sum;
}

bool is_zero(std::span<const uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

/// Returns where the next archive begins after the closing blocks at `at`, as in archives that were
/// joined with cat; `end` where there is none. BadFile where other bytes follow.
int64_t past_closing_blocks(const FileBytes& file, int64_t at, int64_t end) {
  constexpr int64_t kPiece = 128 * kTarBlock;
  const int64_t closed = at;
  std::vector<uint8_t> piece;
  for (; at < end; at += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, end - at)));
    file.read(at, piece);
    const auto found = std::ranges::find_if(piece, [](uint8_t byte) { return byte != 0; });
    if (found == piece.end()) continue;
    at += (found - piece.begin()) / kTarBlock * kTarBlock;
    TarHeader header{};
    if (end - at >= kTarBlock) file.read(at, header);
    bool sound = false;
    try {
      sound = end - at >= kTarBlock && sum_fits({file, at}, header);
    } catch (const BadFile&) {}
    if (sound) return at;
    throw BadFile(
        "{}: {} bytes that are no tar archive follow its end at byte {}: the file was joined with "
        "another one or written over; make or fetch it again",
        file.name(), end - at, closed);
  }
  return end;
}

/// Values from the entries before a member's header, which replace those of the header.
struct TarExtras {
  std::string name{}, target{};
  int64_t size = -1;  ///< below 0: the header's size holds
};

/// Reads lines "LENGTH KEY=VALUE\n" of a pax header: the paths and the size, if present.
void read_pax(const TarPlace& place, std::string_view text, TarExtras& extras) {
  while (!text.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || length <= digits + 1 || length > text.size() ||
        text[digits] != ' ' || text[length - 1] != '\n')
      place.refuse("a pax header has a line of another length than it says");
    const std::string_view line = text.substr(digits + 1, length - digits - 2);
    if (line.starts_with("GNU.sparse.")) place.refuse("a sparse file is stored, which is not read");
    if (line.starts_with("path=")) extras.name = line.substr(5);
    if (line.starts_with("linkpath=")) extras.target = line.substr(9);
    if (line.starts_with("size=")) {
      int64_t value = -1;
      const std::string_view number = line.substr(5);
      const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
      if (parsed.ec != std::errc() || parsed.ptr != number.data() + number.size() || value < 0)
        place.refuse("a pax header has a size that is no number");
      extras.size = value;
    }
    text.remove_prefix(length);
  }
}

std::string member_text(const TarPlace& place, int64_t bytes) {
  if (bytes > kMostTarText) place.refuse("a name is longer than a megabyte");
  std::vector<uint8_t> text(static_cast<size_t>(bytes));
  place.file.read(place.at + kTarBlock, text);
  return {text.begin(), text.end()};
}

/// Returns the text up to the first zero.
std::string long_text(const TarPlace& place, int64_t bytes) {
  return member_text(place, bytes).c_str();
}

std::string member_name(std::span<const uint8_t> header) {
  std::string name = tar_text(header.subspan(0, 100));
  const bool ustar = std::memcmp(header.data() + 257, "ustar\0", 6) == 0;
  const std::string prefix = ustar ? tar_text(header.subspan(345, 155)) : "";
  return prefix.empty() ? name : prefix + "/" + name;
}

/// Returns "a/b" for "./a//b", as tar unpacks it.
std::string plain_name(std::string name) {
  return name.find("./") == name.npos && name.find("//") == name.npos
             ? name
             : std::filesystem::path(name).lexically_normal().string();
}

/// The members of an archive, as unpacking would leave them.
class TarContents {
 public:
  void add(TarMember member) {
    members_.push_back(std::move(member));
    std::string_view name = members_.back().name;
    if (std::string plain = plain_name(members_.back().name); plain != name)
      name = plain_names_.emplace_back(std::move(plain));
    last_[name] = members_.size() - 1;
  }

  /// Adds another name of a file that came before.
  void add_hard(std::string name, const std::string& target) {
    const auto found = last_.find(plain_name(target));
    if (found == last_.end()) return lose(name, target);
    const size_t at = found->second;
    add({std::move(name), members_[at].offset, members_[at].bytes});
    if (const auto link = links_.find(at); link != links_.end())
      links_[members_.size() - 1] = link->second;
  }

  /// Adds a symbolic link, which may come before its target.
  void add_soft(std::string name, const std::string& target) {
    const std::filesystem::path folder = std::filesystem::path(name).parent_path();
    add({std::move(name), 0, 0});
    links_[members_.size() - 1] = (folder / target).lexically_normal().string();
  }

  void show(const std::string& file, const std::function<void(const TarMember&)>& look) {
    for (size_t i = 0; i < members_.size(); ++i) {
      TarMember& member = members_[i];
      if (last_.at(plain_name(member.name)) != i) continue;
      const size_t end = end_of(i);
      if (end == members_.size()) {
        lose(member.name, links_.at(i));
        continue;
      }
      member.offset = members_[end].offset;
      member.bytes = members_[end].bytes;
      look(member);
    }
    if (lost_ > 0 && first_warning(file, first_lost_))
      log::warn_once("{}: passed over: {} link{} to no file of the archive, such as {}", file,
                     lost_, lost_ == 1 ? " that leads" : "s that lead", first_lost_);
  }

 private:
  static constexpr int kMostLinks = 40;  // in one chain, as in Linux

  void lose(const std::string& name, const std::string& target) {
    if (lost_++ == 0) first_lost_ = fmt::format("{} -> {}", name, target);
  }

  /// Returns the file that a member is or that its links lead to; members_.size() if there is none.
  size_t end_of(size_t at) const {
    for (int step = 0; step < kMostLinks; ++step) {
      const auto link = links_.find(at);
      if (link == links_.end()) return at;
      const auto next = last_.find(link->second);
      if (next == last_.end()) break;
      at = next->second;
    }
    return members_.size();
  }

  std::deque<TarMember> members_;  // in the order of the archive; their strings do not move
  std::deque<std::string> plain_names_;
  std::unordered_map<std::string_view, size_t> last_;  // each name's last member
  std::map<size_t, std::string> links_;                // by member: the soft link's target
  int64_t lost_ = 0;
  std::string first_lost_;
};

}  // namespace

void walk_tar(const FileBytes& file, int64_t begin, int64_t end,
              const std::function<void(const TarMember&)>& look) {
  TarExtras extras;
  TarContents contents;
  TarHeader header;
  for (int64_t at = begin;;) {
    const TarPlace place{file, at};
    if (end - at < kTarBlock)
      place.refuse(at == begin ? "there is no header" : "it ends without its closing blocks");
    file.read(at, header);
    if (is_zero(header)) {
      contents.show(file.name(), look);
      if ((at = past_closing_blocks(file, at, end)) == end) return;
      contents = {};
      continue;
    }
    if (!sum_fits(place, header)) place.refuse("a header's checksum does not fit");
    const std::span<const uint8_t> fields(header);
    const char type = static_cast<char>(header[156]);
    const bool regular = type == '0' || type == 0 || type == '7';
    // Links, devices and folders may carry a size without having bytes.
    int64_t bytes = type < '1' || type > '6' ? tar_number(place, fields.subspan(124, 12)) : 0;
    if (regular && extras.size >= 0) bytes = extras.size;
    if (bytes > end - at - kTarBlock)
      place.refuse(fmt::format("a member of {} bytes begins, of which {} are there", bytes,
                               end - at - kTarBlock));
    if (type == 'L') {
      extras.name = long_text(place, bytes);
    } else if (type == 'K') {
      extras.target = long_text(place, bytes);
    } else if (type == 'x') {
      read_pax(place, member_text(place, bytes), extras);
    } else if (type != 'g') {
      if (type == 'S') place.refuse("a sparse file is stored, which is not read");
      if (type == 'M') place.refuse("a file goes on that begins in another archive");
      std::string name = extras.name.empty() ? member_name(fields) : std::move(extras.name);
      const std::string target =
          extras.target.empty() ? tar_text(fields.subspan(157, 100)) : std::move(extras.target);
      if (regular) contents.add({std::move(name), at + kTarBlock, bytes});
      if (type == '1') contents.add_hard(std::move(name), target);
      if (type == '2') contents.add_soft(std::move(name), target);
      extras = {};
    }
    at += kTarBlock + (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
}

}  // namespace tutti::data
