#pragma once
// The right answer of a collective, by plain arithmetic: for tests, and for `tutti bench comm -c`.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

/// Inputs are whole numbers, a function of (seed, rank, element). Integers take all their values,
/// and sums wrap around. Floating-point numbers are as large as sums stay exact in the accumulator:
/// no order of additions changes the answer, and a 16-bit one is right only when it is rounded
/// once, at the end. So there is one right answer, to the bit. Immutable: any number of threads may
/// use one.
class ReferenceResult {
 public:
  /// For `task` and its counterparts on all other ranks. `sources`, of all_to_all only: where this
  /// rank's block begins in the input of each rank; empty: at the same place in all, as with equal
  /// blocks.
  ReferenceResult(Task task, Element element, ReduceOp op, uint64_t seed,
                  std::vector<size_t> sources = {});

  /// Writes this rank's input, extent_of(task).input elements.
  void fill(std::byte* input) const;
  /// Writes what this rank's output should be, extent_of(task).output elements.
  void write_right(std::byte* output) const;
  /// How many of extent_of(task).output elements have other bits than they should.
  size_t count_wrong(const std::byte* output) const;

 private:
  void values(int rank, Slice elements, double* to) const;
  void expected(Slice elements, double* to) const;
  void reduced(Slice elements, double* to) const;
  void pieces(const std::vector<Slice>& parts, const std::vector<size_t>& begins, Slice elements,
              double* to) const;
  void store(const double* from, size_t count, std::byte* to) const;

  Task task_;
  Element element_;
  ReduceOp op_;
  uint64_t seed_;
  std::vector<size_t> sources_;
  int64_t least_ = 0;  // values are least_ .. least_ + range_ - 1
  uint64_t range_ = 1;
};

}  // namespace tutti::comm
