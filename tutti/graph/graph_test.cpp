#include "tutti/graph/graph.h"

#include <gtest/gtest.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/graph/autodiff.h"

namespace tutti::graph {
namespace {

/// Computes y = a * b for scalars; d/da = dy * b as another Product. Without dy it is a loss.
class Product : public Op {
 public:
  std::string_view name() const override { return "product"; }
  std::string attributes() const override { return "plain"; }
  Walk walk(Types) const override { return Walk::whole; }
  std::vector<ValueType> infer(Types in) const override {
    if (in.size() != 2 || !(in[0].desc.shape == in[1].desc.shape))
      throw ConfigError("product: the shapes differ");
    return {in[0]};
  }
  std::vector<Value> grad(const GradArgs& args) const override {
    std::vector<Value> din(2);
    for (size_t i = 0; i < 2; ++i) {
      if (!args.needed[i]) continue;
      const Value other = args.node.in[1 - i];
      din[i] = args.graph.append1(args.node.name + ".d", std::make_shared<Product>(),
                                  {args.dout[0].valid() ? args.dout[0] : other, other});
    }
    return din;
  }
};

class NoGradient : public Product {
 public:
  std::string_view name() const override { return "no_gradient"; }
  std::vector<Value> grad(const GradArgs& args) const override { return Op::grad(args); }
};

Value product(Graph& g, const std::string& name, Value a, Value b) {
  return g.append1(name, std::make_shared<Product>(), {a, b});
}

TEST(Graph, NamesAndRoles) {
  Graph g;
  const Value x = g.input("x", {DType::bf16, Shape{4, 3}, {}});
  const Value w = g.parameter("w", Shape{4, 3}, {});
  const Value m = g.state("w.m", w);
  const Value y = product(g, "layer", x, w);
  EXPECT_EQ(g.find("layer"), y);
  EXPECT_EQ(g.find("w.m"), m);
  EXPECT_FALSE(g.find("nothing").valid());
  EXPECT_EQ(g[m].of, w);
  EXPECT_TRUE(g.type(x).batched);
  EXPECT_FALSE(g.type(w).batched);
  EXPECT_EQ(g.type(w).desc.dtype, DType::f32);
  EXPECT_EQ(g.parameter_count(), 12);
  EXPECT_EQ(g[y].producer, 0);
  EXPECT_TRUE(has_text(g.to_string(), "product(x, w) {plain}  # layer"));
}

TEST(Graph, RefusalsNameTheLayer) {
  Graph g;
  const Value a = g.parameter("a", Shape{2}, {}), b = g.parameter("b", Shape{3}, {});
  EXPECT_EQ(message_of<ConfigError>([&] { product(g, "block1.mix", a, b); }),
            "layer 'block1.mix': product: the shapes differ");
  EXPECT_THROW(product(g, "x", a, Value{}), InternalError);
  EXPECT_THROW(product(g, "x", a, Value{99}), InternalError);
}

TEST(Autodiff, SumsWhatIsReadTwiceAndSkipsWhatIsNotWanted) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {}, {}}, false), w = g.parameter("w", {}, {});
  const Value y = product(g, "y", w, x);
  const Value loss = product(g, "loss", y, y);
  int sums = 0;
  const std::vector<Value> parameters = differentiate(
      g, std::span(&loss, 1), g.with_role(Role::parameter), [&](Graph& graph, Value a, Value b) {
        ++sums;
        return product(graph, "sum", a, b);
      });
  EXPECT_EQ(parameters, std::vector<Value>{w});
  EXPECT_EQ(sums, 1);
  EXPECT_EQ(g.nodes().size(),
            6u);  // y, loss, two gradients of y, their sum, the gradient of w and none of x
  const std::vector<Value> gradients = g.with_role(Role::gradient);
  ASSERT_EQ(gradients.size(), 1u);
  EXPECT_EQ(g[gradients[0]].of, w);
}

TEST(Autodiff, StopsBelowTheLowestTrainedParameter) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {}, {}}, false);
  const Value low = g.parameter("low", {}, {}), middle = g.parameter("middle", {}, {}),
              high = g.parameter("high", {}, {});
  const Value loss = product(g, "c", product(g, "b", product(g, "a", low, x), middle), high);
  const auto sum = [](Graph&, Value a, Value) { return a; };
  const size_t forward = g.nodes().size();
  const std::array trained{middle};
  EXPECT_EQ(differentiate(g, std::span(&loss, 1), trained, sum), std::vector<Value>{middle});
  EXPECT_EQ(g.nodes().size() - forward, 2u);  // gradients of b and middle
  EXPECT_EQ(g.with_role(Role::gradient).size(), 1u);
}

TEST(Autodiff, OrdersParametersByProductionOfTheirGradients) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {}, {}}, false);
  const Value w0 = g.parameter("w0", {}, {}), w1 = g.parameter("w1", {}, {});
  const Value loss = product(g, "l", product(g, "b", product(g, "a", w0, x), w1), x);
  const std::vector<Value> parameters =
      differentiate(g, std::span(&loss, 1), g.with_role(Role::parameter),
                    [](Graph&, Value a, Value) { return a; });
  EXPECT_EQ(parameters, (std::vector<Value>{w1, w0}));
}

TEST(Autodiff, RefusesWhatItCannotDifferentiate) {
  const auto sum = [](Graph&, Value a, Value) { return a; };
  Graph unused;
  const Value x = unused.input("x", {DType::f32, {}, {}}, false), w = unused.parameter("w", {}, {});
  unused.parameter("idle", {}, {});
  const Value loss = product(unused, "loss", w, x);
  EXPECT_TRUE(throws<ConfigError>({"'idle'"}, [&] {
    differentiate(unused, std::span(&loss, 1), unused.with_role(Role::parameter), sum);
  }));
  Graph blocked;
  const Value v = blocked.parameter("v", {}, {});
  const Value end = blocked.append1("end", std::make_shared<NoGradient>(), {v, v});
  EXPECT_EQ(message_of<ConfigError>([&] {
              differentiate(blocked, std::span(&end, 1), blocked.with_role(Role::parameter), sum);
            }),
            "end: op 'no_gradient' has no gradient");
}

}  // namespace
}  // namespace tutti::graph
