#pragma once
// Op: the attributes and rules of one operation. Ops are immutable values behind a shared pointer;
// kernels live in backend/.

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/graph/value.h"

namespace tutti::graph {

class Graph;
struct Node;
class Op;
/// Shared because graphs are rewritten and copied while ops never change.
using OpPtr = std::shared_ptr<const Op>;

/// The types of a node's inputs or outputs, in order.
using Types = std::span<const ValueType>;

/// The inputs of a node to append: a list in braces, a vector or another row of values.
class Inputs : public std::span<const Value> {
 public:
  using span::span;
  Inputs(std::span<const Value> values) : span(values) {}
  Inputs(std::initializer_list<Value> list) : span(list.begin(), list.size()) {}
};

/// How a kernel of the op goes through the batch. The plan tiles sequences of per_sample and reduce
/// ops over the batch, so that a tile's activations stay in cache from op to op; there is a barrier
/// only where a reduced result is needed.
enum class Walk {
  per_sample,  ///< output sample i depends on input sample i alone (and on unbatched inputs)
  reduce,      ///< as per_sample for batched outputs; unbatched outputs are sums over all samples,
               ///< known only at the end
  across,      ///< as per_sample for outputs; an output sample may depend on any input sample, so
               ///< batched inputs are complete before it runs and are handed over whole
  whole,       ///< no batch: runs once, its work split over threads by the kernel
  exchange,    ///< communication between ranks
};

/// The arguments for differentiating a node.
struct GradArgs {
  Graph& graph;
  const Node& node;
  std::span<const Value> dout;  ///< gradient of each output; invalid Value = none. It is invalid
                                ///< for a loss output, whose gradient is 1.
  std::vector<bool> needed;     ///< per input: whether its gradient is wanted

  /// Append a node that is named after this one: ".dx" makes "NODE.dx".
  std::vector<Value> append(std::string_view suffix, OpPtr op, Inputs in) const;
  Value append1(std::string_view suffix, OpPtr op, Inputs in) const;
};

/// Rows [first, last) of one dimension of a sample. Rows outside of the sample are padding.
struct Rows {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
  bool operator==(const Rows&) const = default;
};

/// The input rows that an op needs to compute some rows of its results.
struct Reach {
  struct Input {
    int dim = -1;  ///< the dimension whose rows are read; -1 for unbatched inputs
    Rows rows;
  };
  std::vector<Input> in;
  OpPtr op;           ///< computes the rows from those inputs' rows alone; null: the op itself
  float padding = 0;  ///< the value of rows outside of an input
};

class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  /// Returns the attributes as text, for printing and for the plan's hash: "stride 2x2 pad
  /// 1,1x1,1". Two ops with equal name and attributes behave identically.
  virtual std::string attributes() const { return {}; }
  virtual Walk walk(Types in) const = 0;
  /// Returns which input rows are needed for rows `out` of the results along spatial dimension
  /// `axis` (0: the outermost one, dimension 2 of activations), for inputs of these types. For an
  /// op that only sums over a batch, `out` are rows of its first input. Nothing: the op does not
  /// work row by row.
  virtual std::optional<Reach> reach(Types /*in*/, int /*axis*/, Rows /*out*/) const {
    return std::nullopt;
  }
  /// Returns the output types for the input types. Throws ConfigError that names the op, what it
  /// got and what fits.
  virtual std::vector<ValueType> infer(Types in) const = 0;
  /// Appends the backward ops and returns one gradient per input (invalid Value if not needed or
  /// not differentiable). By default throws ConfigError: the op has no gradient.
  virtual std::vector<Value> grad(const GradArgs& args) const;
  /// Whether running the op changes this input (optimizer updates, running statistics).
  virtual bool mutates(int /*input*/) const { return false; }
  /// Whether other ranks compute with its inputs. Its gradient rule then applies even if no node on
  /// this rank reads its outputs.
  virtual bool gives_to_others() const { return false; }
  /// For an exchange: whether its outputs depend on values that other ranks train. Its gradient
  /// rule then applies even if its inputs depend on nothing that is trained on this rank.
  virtual bool brings_trained() const { return false; }
  /// For an exchange: whether it pays to begin it as soon as its inputs are complete, rather than
  /// at the end of the band that makes them.
  virtual bool begins_at_once() const { return false; }
  /// Whether it belongs to the update of the weights, and so runs once per step, after the
  /// exchange of gradients, instead of once per replica.
  virtual bool in_update() const { return false; }
  /// The input whose memory output `i` may take over if that input is not read later; -1 = none.
  virtual int in_place(int /*output*/) const { return -1; }
  /// The input that is a table (Role::table); the input after it names the rows that samples read.
  /// -1 = none. Differentiation then keeps the gradient of the output instead of calling grad()
  /// (RowGradient).
  virtual int table() const { return -1; }
  /// Returns the floating-point operations (multiply and add count as two) for these types; 0 if
  /// they are not worth counting.
  virtual double flop(Types /*in*/, Types /*out*/) const { return 0; }
};

}  // namespace tutti::graph
