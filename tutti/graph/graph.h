#pragma once
// Graph: the static network with its forward, backward and update nodes. Append-only and
// topological by construction: a node's inputs exist before it. Not thread-safe; cheap to copy.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti::graph {

struct ValueInfo {
  std::string name;
  ValueType type;
  Role role = Role::result;
  Init init = {};       ///< parameters, tables and statistics
  int producer = -1;    ///< index of the node that makes it; -1 for values that the caller binds
  Value of = {};        ///< for Role::gradient and Role::state: the parameter it belongs to, or the
                        ///< table whose update keeps it
  TableRows rows = {};  ///< for Role::table
};

struct Node {
  std::string name;  ///< scope and op, for messages: "layer1.0.conv1"
  OpPtr op;
  std::vector<Value> in, out;
};

class Graph {
 public:
  // --- building ---
  Value input(std::string name, TensorDesc desc, bool batched = true);
  Value parameter(std::string name, const Shape& shape, Init init);
  /// Adds a table [rows, width] of which samples read a few rows; if several ranks share the rows,
  /// it holds this rank's. `rows.all` 0: all. It has no gradient of its own size (RowGradient).
  Value table(std::string name, const Shape& shape, Init init, TableRows rows = {});
  /// Adds state that the update of a table keeps for each of its rows: zeros, [rows, width].
  Value table_state(std::string name, Value table, int64_t width);
  Value statistic(std::string name, const Shape& shape, Init init);
  /// Adds optimizer state parallel to a parameter: zeros, same shape.
  Value state(std::string name, Value parameter);
  Value scalar(std::string name);
  /// Appends a node; its outputs get the inferred types and are named NODE or NODE:1... Throws
  /// ConfigError if the shapes do not fit.
  std::vector<Value> append(std::string name, OpPtr op, Inputs in);
  Value append1(std::string name, OpPtr op, Inputs in);  ///< the first output
  /// Marks a result as the gradient of `parameter`, which training keeps.
  void mark_gradient(Value result, Value parameter);
  /// Marks a result that the caller reads after a run (loss, logits).
  void mark_output(Value result) { outputs_.push_back(result); }

  // --- reading ---
  // Deleted for temporaries, because a loop over their nodes would outlive them.
  const std::vector<Node>& nodes() const& { return nodes_; }
  const std::vector<Node>& nodes() const&& = delete;
  const std::vector<ValueInfo>& values() const& { return values_; }
  const std::vector<ValueInfo>& values() const&& = delete;
  const ValueInfo& operator[](Value v) const { return values_[static_cast<size_t>(v.id)]; }
  const ValueType& type(Value v) const { return (*this)[v].type; }
  std::vector<ValueType> types(std::span<const Value> values) const;
  const Shape& shape(Value v) const { return type(v).desc.shape; }
  const Shape& shape(std::string_view name) const;  ///< REQUIRES: there is a value of this name
  const std::vector<Value>& outputs() const& { return outputs_; }
  const std::vector<Value>& outputs() const&& = delete;
  Value find(std::string_view name) const;  ///< invalid if there is none
  std::vector<Value> with_role(Role role) const;
  int64_t parameter_count() const;  ///< elements of all parameters and of whole tables
  double flop() const;              ///< all nodes, one run over the whole batch; see Op::flop
  double flop(const Node& node) const;
  Walk walk(const Node& node) const { return node.op->walk(types(node.in)); }
  /// Writes one line per node: outputs = op(inputs) {attributes} types.
  std::string to_string() const;

 private:
  Value add_value(ValueInfo info);

  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  std::vector<Value> outputs_;
};

}  // namespace tutti::graph
