#pragma once
// Statistics: the time that a session's exchanges take, compared with their time when run alone.
//
//   comm cycles      spent inside Start, Wait and Test calls of an exchange
//   compute cycles   between two such calls, outside the library: counted for the operation that
//                    makes the second
//   isolated cycles  of one start and wait at Commit, when nothing else runs
//   exposed          comm cycles / (isolated cycles * starts): 0 all hidden behind computation, 1
//                    nothing hidden
// A cycle is a nanosecond of the steady clock.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tutti/mlsl/types.h"

namespace tutti::mlsl {

/// The content of an exchange, named after the call that starts it.
enum class Entity : uint8_t { input_gradient, output, gradient, increment };
inline constexpr int kEntities = 4;

/// Not thread-safe.
class Statistics final : public api::Statistics {
 public:
  explicit Statistics(bool enabled) : enabled_(enabled) {}

  /// Totals of all exchanges of one kind of one operation.
  struct Tally {
    uint64_t starts = 0;
    uint64_t bytes = 0;
    uint64_t cycles = 0;
    uint64_t isolated = 0;
  };
  /// Returns the tally, at an address that stays valid.
  Tally& tally(size_t operation, Entity entity) {
    return tallies_[operation][static_cast<size_t>(entity)];
  }

  /// One call of the program into the library; lasts from construction to destruction.
  class Call {
   public:
    Call(Statistics& statistics, size_t operation, Tally& tally);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Notes that the call starts an exchange of that many bytes.
    void count_start(uint64_t bytes) const {
      if (begin_ == 0) return;
      ++tally_.starts;
      tally_.bytes += bytes;
    }

   private:
    Statistics& statistics_;
    Tally& tally_;
    uint64_t begin_ = 0;  // 0: this call is not counted
  };
  /// Runs an exchange ten times, and takes the mean of the last six. Call it before start().
  static void isolate(Tally& tally, const std::function<void()>& exchange);

  void start();
  void stop() { started_ = false; }
  void reset();
  bool started() const { return started_; }
  bool enabled() const { return enabled_; }

  using Count = uint64_t Tally::*;
  uint64_t total(Count count) const;
  uint64_t of_operation(size_t operation, Count count) const;
  uint64_t compute(size_t operation) const;
  uint64_t total_compute() const;

  /// A line of the table, for each kind of exchange of each operation. `samples` is the number of
  /// samples in a local minibatch.
  struct Line {
    std::string name;
    size_t samples = 1;
  };
  std::string table(const std::vector<Line>& operations) const;
  /// Sets the content for print(), which does nothing on ranks with an empty `file` and throws
  /// IoError.
  void describe(std::vector<Line> operations, std::string file) {
    lines_ = std::move(operations), file_ = std::move(file);
  }
  void print() const;

 private:
  static uint64_t now();

  bool enabled_;
  bool started_ = false;
  uint64_t last_ = 0;  // end of the latest call; 0: none yet
  std::map<size_t, std::array<Tally, kEntities>> tallies_;
  std::map<size_t, uint64_t> compute_;
  std::vector<Line> lines_;
  std::string file_;
};

}  // namespace tutti::mlsl
