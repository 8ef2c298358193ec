#pragma once
// ResultCheck: checks the results of a collective on every rank, to find a rank whose own
// arithmetic or memory is wrong, which checksums of messages cannot detect: the other half of
// `comm.check = true`.
//
// It compares twice, by messages of its own beside the collective's:
//   against the parts   (sums and means of f32 and f64) every rank adds up its input in blocks of
//                       at most kBlock elements, in double, before the collective begins; the
//                       blocks' totals over all ranks must equal the result's, up to rounding:
//                       with x_p the inputs, n ranks or replicas and eps of the type, |sum(result)
//                       - sum_p sum(x_p)| <= eps (n + 8) sum_p sum |x_p|. A smaller change is not
//                       detected.
//   among ranks         (allreduce, broadcast, allgather) a checksum of the result; the error names
//                       the ranks that differ from the majority.
// The price: input and output are read once more, and 1/256 (f32) of the data is summed as well.

#include <cstdint>
#include <memory>
#include <vector>

#include "tutti/comm/run/collective.h"
#include "tutti/comm/run/schedule_run.h"

namespace tutti::comm {

class ResultCheck {
 public:
  static constexpr size_t kBlock = 4096;  ///< elements that share a total

  /// Checks runs of `schedule` on `operands`, which contain `element` and `op`. Not collective.
  ResultCheck(Communicator& communicator, const Task& task, const Schedule& schedule,
              const Operands& operands);

  /// Sets the buffers of later runs; not during one.
  void rebind(std::byte* input, std::byte* output) {
    operands_.input = input, operands_.output = output;
  }
  void begin();    ///< before the run begins, while the input is unchanged. Does not block
  bool advance();  ///< after the run: true when all ranks' results are compared. Throws CommError
                   ///< naming ranks; does not block
  std::vector<int> missing() const;  ///< peers that this rank waits for

 private:
  struct Verdict {
    uint64_t checksum = 0;     // checksum of the result, if it is the same on all ranks
    int64_t wrong_block = -1;  // the first block that is not the sum of its parts
    uint64_t added_here = 0;  // whether this rank wrote that block last, other than by receiving it
    double off = 0, allowed = 0;
  };
  void find_blocks(const Schedule& schedule);
  void add_up(const std::byte* data, Slice held, std::vector<double>& totals) const;
  void look_at_sums(Verdict& mine) const;
  void judge() const;
  std::string blame(const std::vector<int>& ranks) const;

  Communicator& communicator_;
  Task task_;
  Operands operands_;
  Slice result_;  // the elements of the long vector in the output
  bool same_everywhere_, against_parts_;
  std::vector<Slice> blocks_;   // blocks of the long vector; none lies in two parts
  std::vector<bool> written_;   // by block: this rank wrote it last
  std::vector<double> totals_;  // by block: sum, sum of absolute values; of this rank, then of all
  std::vector<Verdict> verdicts_;  // by rank
  std::unique_ptr<ScheduleRun> add_totals_, gather_verdicts_;
  bool judged_ = false;  // this rank has its verdict, which is on its way
};

}  // namespace tutti::comm
