#pragma once
// ReadCounts counts where the samples of a process came from, and which were left out.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// Levels from which a sample may come, the fastest first: the node's caches in memory and on disk,
/// the caches of other nodes, files.
enum class ReadLevel : uint8_t { memory, node, peers, files };
inline constexpr std::array<std::string_view, 4> kReadLevels = {"memory", "node", "peers", "files"};

struct LevelCount {
  int64_t samples = 0;
  int64_t bytes = 0;   ///< for caches: of samples as they are kept; for files: bytes read
  double seconds = 0;  ///< summed over reader threads
};

/// Shared by the data sets of a run; every call may run on any number of threads.
class ReadCounts {
 public:
  void add(ReadLevel level, int64_t bytes, double seconds);
  /// Counts since the start of the process. For files, bytes include all reads of the process.
  std::array<LevelCount, kReadLevels.size()> levels() const;

  /// Counts a sample that data.quarantine leaves out, with the reason.
  void leave_out(const std::string& reason);
  int64_t left_out() const;
  /// Returns the first few reasons.
  std::vector<std::string> reasons() const;

 private:
  struct Level {
    std::atomic<int64_t> samples = 0, bytes = 0, nanoseconds = 0;
  };
  std::array<Level, kReadLevels.size()> levels_;
  mutable std::mutex mutex_;
  int64_t left_out_ = 0;
  std::vector<std::string> reasons_;
};

}  // namespace tutti::data
