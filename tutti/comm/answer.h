#pragma once
// The right answer of a collective, by plain arithmetic: for tests, and for `tutti bench comm -c`.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/comm/element.h"
#include "tutti/comm/schedule.h"

namespace tutti::comm {

/// Inputs are small whole numbers, a function of (seed, rank, element), exact in every type whatever the order of a sum; only a mean
/// may be rounded.
class Answer {
 public:
  /// For `task` and its counterparts on all other ranks; all_to_all: with equal blocks.
  Answer(Task task, Element element, ReduceOp op, uint64_t seed) : task_(std::move(task)), element_(element), op_(op), seed_(seed) {}

  /// Writes this rank's input, extent_of(task).input elements.
  void fill(std::byte* input) const;
  /// How many of extent_of(task).output elements are wrong.
  size_t count_wrong(const std::byte* output) const;

 private:
  int value(int rank, size_t i) const;
  double expected(size_t i) const;
  double reduced(size_t i) const;
  double load(const std::byte* data, size_t i) const;
  void store(std::byte* data, size_t i, double value) const;

  Task task_;
  Element element_;
  ReduceOp op_;
  uint64_t seed_;
};

}  // namespace tutti::comm
