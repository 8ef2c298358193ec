#pragma once
// The acceptance matrix of comm/: its cases, as data. matrix.cpp runs them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/check/reference_result.h"
#include "tutti/comm/communicator.h"

namespace tutti {

/// `run` is collective: every rank of a group calls it with its own communicator. Returns how many
/// elements are wrong on this rank. Immutable, so that ranks that are threads may share one.
struct MatrixCase {
  std::string name;
  std::function<size_t(comm::Communicator&)> run;
};

struct MatrixAxes {
  int ranks = 1;
  std::vector<int> node_of = {};  ///< as Communicator::node_of()
  std::vector<size_t> counts = {};
  std::vector<comm::Element> elements = {};
  bool windows = false;  ///< ranks are processes that share memory: buffers lie once in windows and
                         ///< once elsewhere
  int starts = 2;        ///< of each planned operation
};

/// How the long vector is dealt out: equal parts; part p twice as large as part p/2, about; only
/// the odd ranks have any.
enum class Deal : uint8_t { equal, uneven, sparse };

/// One planned collective.
struct Collected {
  comm::Collective kind = comm::Collective::barrier;
  std::string algorithm = {};
  comm::Element element = comm::Element::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  size_t count = 0;
  int root = 0;
  Deal deal = Deal::equal;
  bool in_place = false;
  bool window = false;  ///< its buffers lie in memory that peers of the node can see
  bool moving =
      false;  ///< its buffers lie in a window and elsewhere in turns, not alike on all ranks
  size_t chunk = 0;
  int priority = 0;

  std::string name() const;
};

/// A collective of one rank with buffers of its own: planned once, to be filled, run and checked as
/// often as wanted.
class Trial {
 public:
  /// Collective.
  Trial(comm::Communicator& communicator, const Collected& what);
  comm::CollectiveOperation& operation() { return *operation_; }
  /// Not while the operation is in flight: buffers that move do it now.
  void fill(uint64_t seed);
  /// Elements of the output that are wrong, of the input that were changed, and bytes behind the
  /// output that were written.
  size_t wrong() const;

 private:
  std::byte* input() const { return memory_ + input_begin_; }
  std::byte* output() const { return memory_ + output_begin_; }
  comm::ReferenceResult answer(uint64_t seed) const;
  size_t count_wrong() const;

  Collected what_;
  comm::Task task_;
  std::vector<size_t> sources_;
  size_t input_bytes_ = 0, output_bytes_ = 0;
  size_t input_begin_ = 0, output_begin_ = 0;
  uint64_t seed_ = 0;
  std::unique_ptr<std::byte[]> own_;
  std::unique_ptr<comm::Window> window_;
  std::byte* memory_ = nullptr;
  bool output_only_ = false;  // the operation is told of one buffer
  std::unique_ptr<comm::CollectiveOperation> operation_;
};

/// Every collective by every algorithm that does it, of every element type and reduction, in one of
/// these ways in turn: in place or not, from several roots, with equal, unequal and empty parts,
/// with buffers that move, in chunks. Sums and means of f32 and bf16 below 1000 elements in all of
/// the ways.
std::vector<Collected> product_of(const MatrixAxes& axes);

/// A case for each of product_of().
std::vector<MatrixCase> product_cases(const MatrixAxes& axes);
/// Algorithms that claim to be reproducible give the bits of the tree, for values whose sum depends
/// on the order.
std::vector<MatrixCase> bits_cases(const MatrixAxes& axes);
/// Minimum and maximum of NaN, infinities and both zeros: the same bits by every algorithm.
std::vector<MatrixCase> special_cases(const MatrixAxes& axes);
/// Several operations in flight with priorities and chunks, in another order on each rank; groups
/// of a split beside the whole.
std::vector<MatrixCase> flight_cases(const MatrixAxes& axes);
/// A rank that is late holds every other back, so that nobody has to keep messages of many runs.
std::vector<MatrixCase> ahead_cases(const MatrixAxes& axes);

}  // namespace tutti
