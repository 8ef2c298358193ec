#pragma once
// The executor's interface to what ranks exchange: gradients, norms, weights, parts of samples. The
// executor knows no ranks; the implementation makes the exchanges that a plan lists.

#include <cstddef>
#include <optional>

namespace tutti::plan {

/// The result of finish().
struct ExchangeOutput {
  /// Where the sum of a bucket lies, until the bucket's exchange is started again. Null: where the
  /// plan has put it, which for a bucket is in the gradients themselves.
  const std::byte* at = nullptr;
  /// Bytes [begin, end) of the bucket that this rank updates; weights, gradients and states outside
  /// are neither read nor written. Each bound is an end of the bucket, or lies on a block of
  /// kSumBlock floats counted from its parameter's start: exchange/shard.h gives such bounds.
  struct Range {
    size_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  std::optional<Range> range = {};  ///< none: all
};

/// The exchanges of a plan, by their number in Plan::exchanges. All but help() are called on thread
/// 0.
class Exchanges {
 public:
  virtual ~Exchanges() = default;
  /// Starts an exchange whose inputs are complete; gradients are those of one replica. Never
  /// blocks.
  virtual void start(int exchange) = 0;
  /// Whether finish() would return at once. Never blocks.
  virtual bool done(int exchange) = 0;
  /// Blocks until the outputs are complete and the memory of the inputs is free.
  virtual ExchangeOutput finish(int exchange) = 0;
  /// Makes progress and never blocks. Called between bands and tiles, often enough for ranks that
  /// wait for this one.
  virtual void poll() {}
  /// Takes part in local work of the calls above and never blocks. Called again and again by
  /// threads that wait for others.
  virtual void help() {}
};

}  // namespace tutti::plan
