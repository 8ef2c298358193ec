#pragma once
// The cases of comm/'s acceptance matrix, as data. matrix.cpp runs them.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/check/reference_result.h"
#include "tutti/comm/communicator.h"

namespace tutti {

/// A case. `run` is collective: every rank of a group calls it with its own communicator. It
/// returns how many elements are wrong on this rank. Immutable, so that threads may share one.
struct MatrixCase {
  std::string name;
  std::function<size_t(comm::Communicator&)> run;
};

struct MatrixAxes {
  int ranks = 1;
  std::vector<int> node_of = {};  ///< as from Communicator::node_of()
  std::vector<size_t> counts = {};
  std::vector<comm::Element> elements = {};
  bool windows = false;  ///< ranks are processes that share memory: buffers lie in windows too
  int starts = 2;        ///< starts of each planned operation
};

/// How the long vector is divided: into equal parts; with part p about twice as large as part p/2;
/// or among the odd ranks only.
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
  bool window = false;  ///< its buffers lie in memory that other ranks of the node can see
  bool moving =
      false;  ///< its buffers alternate between a window and other memory, not in step on all ranks
  size_t chunk = 0;
  int priority = 0;

  std::string name() const;
};

/// A collective of one rank with its own buffers: planned once, filled, run and checked many times.
class Trial {
 public:
  /// Collective.
  Trial(comm::Communicator& communicator, const Collected& what);
  comm::CollectiveOperation& operation() { return *operation_; }
  /// Fills the buffers, and moves them if they move. Not while the operation is in flight.
  void fill(uint64_t seed);
  /// Returns the number of wrong elements of the output, changed elements of the input, and written
  /// bytes behind the output.
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
  bool output_only_ = false;  // the operation gets only one buffer
  std::unique_ptr<comm::CollectiveOperation> operation_;
};

/// Runs a trial that many times. Returns the number of wrong elements.
size_t run_trial(comm::Communicator& c, const Collected& what, int starts);

/// Returns every collective by every algorithm that supports it, of every element type and
/// reduction, each in one of these ways, taken in turn: in place or not, from several roots, with
/// equal, unequal and empty parts, with buffers that move, in chunks. Sums and means of f32 and
/// bf16 below 1000 elements are in all of the ways.
std::vector<Collected> product_of(const MatrixAxes& axes);

/// Returns a case for each of product_of().
std::vector<MatrixCase> product_cases(const MatrixAxes& axes);
/// Algorithms that claim to be reproducible must give the bits of the tree, for values whose sum
/// depends on the order.
std::vector<MatrixCase> bits_cases(const MatrixAxes& axes);
/// Minimum and maximum of NaN, infinities and both zeros have the same bits by every algorithm.
std::vector<MatrixCase> special_cases(const MatrixAxes& axes);
/// Several operations are in flight with priorities and chunks, in another order on each rank;
/// groups of a split work beside the whole.
std::vector<MatrixCase> flight_cases(const MatrixAxes& axes);
/// A late rank must hold every other back, so that no rank has to keep messages of many runs.
std::vector<MatrixCase> ahead_cases(const MatrixAxes& axes);

}  // namespace tutti
