#pragma once
// ScheduleRun: the schedule of one rank bound to memory and to a channel, run as often as wanted.
// It is the state machine behind every collective.
//
// A round posts its messages, does its steps when all messages have arrived, and ends when all have
// left. Steps that write data which the round still sends wait for that. Data that are only read by
// this round's steps are not copied at all where the channel can lend them.

#include <cstddef>
#include <memory>
#include <vector>

#include "tutti/comm/run/footprint.h"
#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"
#include "tutti/comm/transport/channel.h"

namespace tutti::comm {

class Communicator;

/// The memory and the arithmetic for a schedule. Not owned.
struct Operands {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  bool rebindable = false;  ///< input and output come with ScheduleRun::rebind()
  Element element = Element::f32;
  ReduceOp op = ReduceOp::sum;
  double divisor = 1;  ///< for a mean
};

/// Not thread-safe.
class ScheduleRun {
 public:
  /// Opens a channel of `communicator`, which must be connected before the first run. Not
  /// collective. Throws CommError when there is no memory for the schedule.
  ScheduleRun(Communicator& communicator, Schedule schedule, const Operands& operands);

  /// Sets another input and output. Not collective, not while it runs.
  void rebind(std::byte* input, std::byte* output);
  void expect();                     ///< announces that begin() follows, perhaps much later
  void begin();                      ///< does not block
  bool advance();                    ///< true when complete; does not block
  std::vector<int> missing() const;  ///< peers that this rank waits for
  std::vector<int> peers() const;    ///< peers of the round in progress; a peer may come twice
  const Schedule& schedule() const { return schedule_; }
  size_t round() const { return round_; }  ///< in progress; the last run's when none is
  size_t bytes_received() const;           ///< payload in each run
  /// Returns the bytes that its link is still busy with.
  size_t leaving() const {
    return begun_ && round_ < schedule_.rounds.size() ? channel_->leaving() : 0;
  }

 private:
  // Steps that are done block by block in turn, so that intermediate values stay in the cache.
  struct Chain {
    size_t first = 0, last = 0;
  };
  // Where a block of a step lies: in a message of the round's receives, which may have been lent,
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
    bool may_borrow = false;  // is free, and its received data are read only by its steps
    std::vector<Chain> chains;
    std::vector<ResolvedStep> steps;  // steps of the round, in order
  };
  using Memory = std::unique_ptr<std::byte[], void (*)(std::byte*)>;
  static Memory allocate(size_t bytes);

  Run run_of(const Block& block) const;
  size_t bytes_of(const Block& block) const;
  Extents extents_of(const Block& block) const;
  // The memory that a round's messages and steps touch.
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
