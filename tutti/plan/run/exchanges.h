#pragma once
// The executor's interface to what ranks exchange: gradients, norms, weights, parts of samples. The
// executor knows no ranks; the implementation makes the exchanges that a plan lists.

#include <cstddef>
#include <optional>
#include <vector>

#include "tutti/plan/plan.h"

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

/// A copy within this rank, which an exchange of parts consists of.
struct OwnCopy {
  Place from, to;
  size_t bytes = 0;
};

/// An addition of whole arenas of gradients, which are given by ReplicaState::gradients: into +=
/// from.
struct GradientFold {
  const void *into = nullptr, *from = nullptr;
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
  /// Returns the copies that an exchange of parts consists of if no other rank takes part in it,
  /// and nothing if one does. An executor on a device makes such copies itself, and doesn't start
  /// the exchange.
  virtual std::optional<std::vector<OwnCopy>> own_copies(int /*exchange*/) const { return {}; }
  /// Returns whether nobody but the update needs the gradients, so that they can stay on a device:
  /// an executor there neither starts nor finishes their exchanges, but makes folds(), and updates
  /// with the arena sum().
  virtual bool gradients_stay() const { return false; }
  /// Returns the folds, in order, that follow the pass whose gradients arena was bound last.
  virtual std::vector<GradientFold> folds() const { return {}; }
  virtual const void* sum() const { return nullptr; }
  /// Returns whether the host looks at this step's gradients although they stay: look() then gets
  /// the arena of each pass, and look_at_sum() their sum, in memory of the host.
  virtual bool looks() const { return false; }
  virtual void look(const std::byte* /*gradients*/) {}
  virtual void look_at_sum(const std::byte* /*gradients*/) {}
  /// Makes progress and never blocks. Called between bands and tiles, often enough for ranks that
  /// wait for this one.
  virtual void poll() {}
  /// Takes part in local work of the calls above and never blocks. Called again and again by
  /// threads that wait for others.
  virtual void help() {}
};

}  // namespace tutti::plan
