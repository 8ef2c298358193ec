#pragma once
// The right result of a collective, by plain arithmetic: for tests, and for `tutti bench comm -c`.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/comm/schedule/element.h"
#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

/// Inputs are whole numbers, a function of (seed, rank, element). Integers take all their values,
/// and sums wrap around. Floating-point numbers are only so large that sums stay exact in the
/// accumulator: no order of additions changes the result, and a 16-bit result is right only when it
/// is rounded once, at the end. So there is one right result, to the bit. Immutable: any number of
/// threads may use one.
class ReferenceResult {
 public:
  /// Takes this rank's `task`; the other ranks have its counterparts. `sources`, for all_to_all
  /// only: where this rank's block begins in the input of each rank; empty: at the same place in
  /// all, as with equal blocks.
  ReferenceResult(Task task, Element element, ReduceOp op, uint64_t seed,
                  std::vector<size_t> sources = {});

  /// Writes this rank's input, extent_of(task).input elements.
  void fill(std::byte* input) const;
  /// Writes the right output of this rank, extent_of(task).output elements.
  void write_right(std::byte* output) const;
  /// Returns how many of the extent_of(task).output elements do not have the right bits.
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
