#include "tutti/data/store/read_counts.h"

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {
namespace {

constexpr size_t kMostReasons = 20;

}  // namespace

void ReadCounts::add(ReadLevel level, int64_t bytes, double seconds) {
  Level& of = levels_[static_cast<size_t>(level)];
  of.samples += 1;
  of.bytes += bytes;
  of.nanoseconds += static_cast<int64_t>(seconds * 1e9);
}

std::array<LevelCount, kReadLevels.size()> ReadCounts::levels() const {
  std::array<LevelCount, kReadLevels.size()> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = {levels_[i].samples, levels_[i].bytes,
              static_cast<double>(levels_[i].nanoseconds) * 1e-9};
  all[static_cast<size_t>(ReadLevel::files)].bytes = FileBytes::bytes_read();
  return all;
}

void ReadCounts::leave_out(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++left_out_;
  if (reasons_.size() < kMostReasons) reasons_.push_back(reason);
}

int64_t ReadCounts::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

std::vector<std::string> ReadCounts::reasons() const {
  const std::lock_guard lock(mutex_);
  return reasons_;
}

}  // namespace tutti::data
