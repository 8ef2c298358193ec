#pragma once
// ChannelNumbers: the numbers of a communicator's channels. A channel's tag and its place among the
// mailboxes follow from its number. All ranks open the same channels in the same order, so they
// take the same numbers without communication.
//
// Ranks destroy operations at any time. So a number comes back only when all ranks have informed
// each other that they have closed it. They do so when the numbers taken reach a bound, which is
// twice the number left the last time: this costs a constant share of the price of a channel.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::comm {

/// One rank's view; pure bookkeeping, nothing communicates. Copyable, so that a plan that was
/// refused can be undone. Not thread-safe.
class ChannelNumbers {
 public:
  /// Says how a rank leaves a channel.
  enum class End : uint8_t {
    complete,   ///< every message that it expects has come, and every one of its own was taken
    abandoned,  ///< messages may still be under way: this number is not used again
    silent      ///< it has neither sent nor expected anything
  };

  int take();  ///< the lowest free number
  /// Closes a channel. Not collective. `runs`: how often the channel was used here.
  void close(int number, End end, uint64_t runs);

  /// Returns whether it is time to ask which channels are closed. The same on every rank.
  bool due() const { return taken_ >= bound_; }
  /// Returns this rank's mark for each number. To be combined with fold() over all ranks.
  const std::vector<uint64_t>& marks() const { return marks_; }
  /// Returns the mark of two ranks: closed where both have closed the channel after equally many
  /// runs. Then none of its messages is under way.
  static uint64_t fold(uint64_t mine, uint64_t theirs);
  /// Frees the numbers whose folded mark is closed.
  void settle(std::span<const uint64_t> all);

  size_t taken() const { return taken_; }
  size_t count() const { return marks_.size(); }  ///< all numbers are below it

 private:
  static constexpr size_t kLeastBound = 64;
  // Marks: open or abandoned; closed after a number of runs, plus one; closed without messages.
  static constexpr uint64_t kOpen = 0, kSilent = UINT64_MAX, kFree = UINT64_MAX - 1;
  std::vector<uint64_t> marks_;
  size_t taken_ = 0;
  size_t none_free_below_ = 0;  // so that many calls of take() look at each number once
  size_t bound_ = kLeastBound;
};

}  // namespace tutti::comm
