#pragma once
// Op: the attributes and rules of one operation. Ops are immutable values behind a shared pointer;
// kernels live in backend/.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/graph/value.h"

namespace tutti {

class Graph;
struct Node;

/// How a kernel of the op goes through the batch. The plan tiles runs of per_sample and reduce ops
/// over the batch, so that a tile's activations stay in cache from op to op; a barrier stands only
/// where a reduced result is needed.
enum class Walk {
  per_sample,  ///< output sample i depends on input sample i alone (and on unbatched inputs)
  reduce,      ///< as per_sample for batched outputs; unbatched outputs are sums over all samples,
               ///< known only at the end
  whole,       ///< no batch: runs once, its work split over threads by the kernel
  exchange,    ///< communication between ranks
};

/// What differentiating a node needs.
struct GradArgs {
  Graph& graph;
  const Node& node;
  std::span<const Value> dout;  ///< gradient of each output; invalid Value = none. A loss output's
                                ///< gradient is 1 and is invalid here.
  std::vector<bool> needed;     ///< per input: is its gradient wanted?
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  /// Attributes as text, for printing and for the plan's hash: "stride 2x2 pad 1,1x1,1". Two ops
  /// with equal name and attributes behave alike.
  virtual std::string attributes() const { return {}; }
  virtual Walk walk(std::span<const ValueType> in) const = 0;
  /// Output types for the input types. Throws ConfigError naming the op, what was met and what
  /// fits.
  virtual std::vector<ValueType> infer(std::span<const ValueType> in) const = 0;
  /// Appends the backward ops and returns one gradient per input (invalid Value where not needed or
  /// not differentiable). Default: throws ConfigError, the op has no gradient.
  virtual std::vector<Value> grad(const GradArgs& args) const;
  /// Whether running the op changes this input (optimizer updates, running statistics).
  virtual bool mutates(int /*input*/) const { return false; }
  /// Whether it belongs to the update of the weights: runs once per step, after the exchange of
  /// gradients, not once per replica.
  virtual bool in_update() const { return false; }
  /// The input whose memory output `i` may take over if nobody reads that input later; -1 = none.
  virtual int in_place(int /*output*/) const { return -1; }
  /// Floating-point operations (multiply and add count as two) for these types; 0 for what is not
  /// worth counting.
  virtual double flop(std::span<const ValueType> /*in*/, std::span<const ValueType> /*out*/) const {
    return 0;
  }
};

/// Shared because graphs are rewritten and copied while ops never change.
using OpPtr = std::shared_ptr<const Op>;

}  // namespace tutti
