#pragma once
// Spans for a timeline viewer (--profile) that show where the time went: name, lane, begin, end.
// Chrome's trace format, one file per rank with the rank as the process; times are wall-clock
// microseconds, so ranks' files can be laid over each other.

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tutti::trace {

/// Collects spans in memory. Thread-safe; recording costs one uncontended lock. Holds at most
/// `capacity` spans: later ones are counted but not kept, and the file says so. The owner writes
/// the file, after the work.
class Spans {
 public:
  using Name = uint32_t;

  explicit Spans(size_t capacity = size_t{1} << 20);

  /// Returns the number of a name; do this once per name, outside the hot path.
  Name name(const std::string& text);
  /// Returns the number of a lane: a thread, a stream or the network, one line of the timeline.
  int lane(const std::string& title);

  void record(Name name, int lane, int64_t begin_ns, int64_t end_ns);

  size_t size() const;
  size_t dropped() const;
  /// Writes {"traceEvents": [...]} with process = rank. Throws IoError naming the file.
  void write(const std::string& path, int rank) const;

  static int64_t now_ns();  ///< steady clock; the clock of begin_ns and end_ns

 private:
  struct Item {
    Name name;
    int lane;
    int64_t begin_ns, end_ns;
  };
  mutable std::mutex mutex_;
  std::vector<std::string> names_, lanes_;
  std::vector<Item> items_;
  size_t capacity_, dropped_ = 0;
  int64_t wall_minus_steady_ns_;
};

/// Records the time from construction to destruction. Does nothing if `spans` is null.
class ScopedSpan {
 public:
  ScopedSpan(Spans* spans, Spans::Name name, int lane)
      : spans_(spans), name_(name), lane_(lane), begin_ns_(spans ? Spans::now_ns() : 0) {}
  ~ScopedSpan() {
    if (spans_) spans_->record(name_, lane_, begin_ns_, Spans::now_ns());
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  Spans* spans_;
  Spans::Name name_;
  int lane_;
  int64_t begin_ns_;
};

/// Merges the files of several ranks into one.
void merge_traces(const std::vector<std::string>& inputs, const std::string& output);

}  // namespace tutti::trace
