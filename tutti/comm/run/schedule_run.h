#pragma once
// ScheduleRun: the schedule of one rank bound to memory and to a channel, run as often as wanted.
// The state machine behind every collective.
//
// A round: post its messages; when all have arrived do its steps; when all have left go on. Steps
// that write what the round still sends wait for that. What is received only to be read by this
// round's steps is not copied at all where the channel can lend it.

#include <cstddef>
#include <memory>
#include <vector>

#include "tutti/comm/run/footprint.h"
#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"
#include "tutti/comm/transport/channel.h"

namespace tutti::comm {

class Communicator;

/// What the places of a schedule are. Not owned.
struct Operands {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  bool rebindable = false;  ///< input and output come with ScheduleRun::rebind()
  Element element = Element::f32;
  ReduceOp op = ReduceOp::sum;
  double divisor = 1;  ///< of a mean
};

/// Not thread-safe.
class ScheduleRun {
 public:
  /// Opens a channel of `communicator`, which must be connected before the first run. Of this rank
  /// alone. Throws CommError when there is no memory for what the schedule needs.
  ScheduleRun(Communicator& communicator, Schedule schedule, const Operands& operands);

  /// Other input and output. Of this rank alone, not while it runs.
  void rebind(std::byte* input, std::byte* output);
  void expect();                     ///< begin() follows, though perhaps not soon
  void begin();                      ///< does not block
  bool advance();                    ///< true when complete; does not block
  std::vector<int> missing() const;  ///< peers that this rank waits for
  std::vector<int> peers()
      const;  ///< with whom the round in progress exchanges messages; a peer may come twice
  const Schedule& schedule() const { return schedule_; }
  size_t round() const { return round_; }  ///< in progress; that of the last run when none is
  size_t bytes_received() const;           ///< payload, in each run
  /// Bytes that its link is still busy with.
  size_t leaving() const {
    return begun_ && round_ < schedule_.rounds.size() ? channel_->leaving() : 0;
  }

 private:
  // Steps that are done block by block one after another, so that what passes between them stays in
  // the cache.
  struct Chain {
    size_t first = 0, last = 0;
  };
  // Where a block of a step lies: with a message of the round's receives, which may have been lent,
  // or at an address.
  struct Operand {
    Run run;
    int message = -1;
  };
  struct ResolvedStep {
    Operand to, a, b;
  };
  struct Properties {
    bool free = false;        // its steps write nothing that it sends
    bool may_borrow = false;  // and what it receives is read by them alone
    std::vector<Chain> chains;
    std::vector<ResolvedStep> steps;  // of the round, in their order
  };
  using Memory = std::unique_ptr<std::byte[], void (*)(std::byte*)>;
  static Memory allocate(size_t bytes);

  Run run_of(const Block& block) const;
  size_t bytes_of(const Block& block) const;
  Extents extents_of(const Block& block) const;
  // The memory of a round's messages, and of its steps.
  struct Touched {
    Footprint sent, received, written, read;
  };
  Touched touched_in(const Round& round) const;
  void find_properties();
  Properties properties_of(size_t round, const std::vector<Touched>& touched) const;
  bool only_read_in(size_t round, const Block& block, const std::vector<Touched>& touched) const;
  std::vector<Chain> chains_of(const Round& round) const;
  std::vector<RoundOfMessages> messages() const;
  void run_chain(const Chain& chain);
  void run_piece(const Chain& chain, Slice piece);
  std::vector<ResolvedStep> resolve(const Round& round, bool may_borrow) const;
  Run at(const Operand& operand, size_t offset) const;

  Communicator& communicator_;
  Schedule schedule_;
  Operands operands_;
  Element accumulator_type_;
  Memory staging_, accumulator_;
  std::vector<Properties> properties_;
  std::unique_ptr<Channel> channel_;
  size_t round_ = 0;
  bool begun_ = false;
  bool stepped_ = false;  // the steps of this round are done
};

}  // namespace tutti::comm
