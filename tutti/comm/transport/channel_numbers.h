#pragma once
// ChannelNumbers: which numbers the channels of a communicator have. A channel's tag and its place
// among the mailboxes follow from its number. All ranks open the same channels in the same order,
// so they take the same numbers without asking each other.
//
// Ranks destroy operations when they like. So a number comes back only when all ranks have told
// each other that they have closed it. They do that when as many numbers are taken as a bound that
// is twice what was left the last time: a constant share of the price of a channel.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::comm {

/// What one rank knows; pure bookkeeping, nothing communicates. Copyable, so that a plan that was
/// refused can be undone. Not thread-safe.
class ChannelNumbers {
 public:
  /// How a rank leaves a channel.
  enum class End : uint8_t {
    complete,   ///< every message that it expects has come, and every one of its own was taken
    abandoned,  ///< something may still be under way: nobody gets this number again
    silent      ///< it has neither sent nor expected anything
  };

  int take();  ///< the lowest that is free
  /// Of this rank alone. `runs`: how often the channel was used here.
  void close(int number, End end, uint64_t runs);

  /// Whether it is time to ask who has closed what. The same on every rank.
  bool due() const { return taken_ >= bound_; }
  /// What this rank says: a mark for each number. To be combined with fold() over all ranks.
  const std::vector<uint8_t>& marks() const { return marks_; }
  /// The mark of two ranks: closed where both have closed it after equally many runs. Then nothing
  /// of it is under way.
  static uint8_t fold(uint8_t mine, uint8_t theirs);
  /// Numbers whose folded mark says so are free again.
  void settle(std::span<const uint8_t> all);

  size_t taken() const { return taken_; }
  size_t count() const { return marks_.size(); }  ///< all numbers are below

 private:
  static constexpr size_t kLeastBound = 64;
  // Marks: open or abandoned; closed after so many runs modulo the rest; closed without messages.
  static constexpr uint8_t kOpen = 0, kSilent = 255, kFree = 254;
  std::vector<uint8_t> marks_;
  size_t taken_ = 0;
  size_t none_free_below_ = 0;  // so that taking many looks at each once
  size_t bound_ = kLeastBound;
};

}  // namespace tutti::comm
