#pragma once
// The bases of most ops, which say once what their classes would repeat.

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti::ops {

// The words of graph/ in which all ops are written.
using graph::GradArgs;
using graph::Graph;
using graph::Init;
using graph::Node;
using graph::Op;
using graph::OpPtr;
using graph::Reach;
using graph::Role;
using graph::Rows;
using graph::Types;
using graph::Value;
using graph::ValueType;
using graph::Walk;

/// A text as a template argument.
template <size_t N>
struct OpName {
  char text[N];
  consteval OpName(const char (&name)[N]) { std::copy_n(name, N, text); }
};

/// The walk of an op that goes through samples where its first input has a batch, and is
/// Walk::whole where it has none.
struct WalkAsBatched {};
inline constexpr WalkAsBatched kAsBatched;

/// An op of this name with this walk: a Walk, or kAsBatched.
template <OpName kName, auto kWalk>
class NamedOp : public Op {
 public:
  std::string_view name() const override { return kName.text; }
  Walk walk(Types in) const override {
    if constexpr (std::is_same_v<std::remove_cv_t<decltype(kWalk)>, WalkAsBatched>)
      return in[0].batched ? Walk::per_sample : Walk::whole;
    else
      return kWalk;
  }
};

/// A NamedOp with attributes a_, which print themselves: A::to_string().
template <OpName kName, auto kWalk, class A>
class OpWith : public NamedOp<kName, kWalk> {
 public:
  explicit OpWith(A attributes = {}) : a_(std::move(attributes)) {}
  std::string attributes() const override { return a_.to_string(); }

 protected:
  A a_;
};

/// Returns the reach of an op whose results at a position depend on its inputs at that position.
Reach pointwise_reach(Types in, int axis, Rows out);

/// A NamedOp or OpWith whose results at a position depend on its inputs at that position.
template <class Base>
class RowByRow : public Base {
 public:
  using Base::Base;
  std::optional<Reach> reach(Types in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
};

/// A NamedOp or OpWith whose inputs get no gradients: they are data, another op's rule has them, or
/// the op is a step function or of evaluations alone.
template <class Base>
class WithoutGradient : public Base {
 public:
  using Base::Base;
  std::vector<Value> grad(const GradArgs& args) const override {
    return std::vector<Value>(args.node.in.size());
  }
};

}  // namespace tutti::ops
