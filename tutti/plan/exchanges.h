#pragma once
// How the executor meets what ranks exchange: gradients, norms, weights, parts of samples. It knows
// no ranks; whoever does implements this for the exchanges that a plan lists.

#include <cstddef>
#include <optional>

namespace tutti {

/// What finish() leaves.
struct ExchangeOutput {
  /// Where the sum of a bucket lies, until the bucket's exchange is started again. Null: where the
  /// plan has put it; of a bucket in the gradients themselves.
  const std::byte* at = nullptr;
  /// Bytes [begin, end) of the bucket that are this rank's to update; weights, gradients and states
  /// outside are neither read nor written. Each bound is an end of the bucket, or lies on a block
  /// of kSumBlock floats counted from its parameter's start: exchange/shard.h gives such bounds.
  struct Range {
    size_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  std::optional<Range> range = {};  ///< none: all
};

/// The exchanges of a plan, by their number in Plan::exchanges. Called on thread 0, but for help().
class Exchanges {
 public:
  virtual ~Exchanges() = default;
  /// The inputs of this exchange are complete; of gradients, those of one replica. Never blocks.
  virtual void start(int exchange) = 0;
  /// Whether finish() would return at once. Never blocks.
  virtual bool done(int exchange) = 0;
  /// Blocks until its outputs are there, and what it took its inputs from is free.
  virtual ExchangeOutput finish(int exchange) = 0;
  /// Called between bands and tiles, often enough for whoever waits for this rank: makes progress,
  /// never blocks.
  virtual void poll() {}
  /// Called by threads that wait for others, again and again: takes part in local work of the calls
  /// above; never blocks.
  virtual void help() {}
};

}  // namespace tutti
