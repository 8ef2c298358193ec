// Tests which output layers and losses become one op, and which outputs it has.

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/ops/builder.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/ops/sequence/sequence.h"
#include "tutti/ops/sequence/token_head.h"

namespace tutti::ops {
namespace {

struct HeadGraph {
  Graph graph;
  Value body, weight, logits, loss, judged;
};

HeadGraph head_of(int64_t vocabulary, bool judged) {
  HeadGraph made;
  Graph& g = made.graph;
  const Value x = g.input("x", {DType::f32, {2, 8, 5}, {}}),
              labels = g.input("labels", {DType::i32, {2, 5}, {}});
  made.weight = g.parameter("w", {vocabulary, 8, 1}, {Init::Kind::zeros});
  made.body = g.parameter("v", {8, 8, 1}, {Init::Kind::zeros});
  made.logits = linear_by(g, "head", linear_by(g, "body", x, made.body), made.weight);
  const TokenLosses losses =
      token_loss(g, "loss", made.logits, count_tokens(g, "count", labels, vocabulary), {});
  made.loss = losses.loss;
  if (judged)
    made.judged =
        concat(g, "judged", {losses.surprise, token_hits(g, "hits", made.logits, labels)});
  return made;
}

const Node* fused_head(const Graph& graph) {
  const auto at = std::ranges::find(graph.nodes(), "token_head",
                                    [](const Node& node) { return node.op->name(); });
  return at == graph.nodes().end() ? nullptr : &*at;
}

}  // namespace

TEST(FuseHeads, TrainingMakesBothGradients) {
  const HeadGraph made = head_of(5000, false);
  const Value trained[] = {made.body, made.weight};
  const Rewritten fused = fuse_heads(made.graph, trained);
  const Node* const head = fused_head(fused.graph);
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(fused.graph.nodes().size(), 3u) << "the body and the count of labels are the others";
  EXPECT_EQ(fused.of[static_cast<size_t>(made.loss.id)], head->out[0]);
  ASSERT_EQ(head->out.size(), 4u);
  EXPECT_EQ(fused.graph.shape(head->out[2]), (Shape{2, 8, 5}));
  EXPECT_EQ(fused.graph.shape(head->out[3]), (Shape{5000, 8, 1}));
}

TEST(FuseHeads, WhatNobodyWantsIsNotMade) {
  const HeadGraph made = head_of(5000, false);
  for (const bool weight : {true, false}) {
    const Rewritten fused =
        fuse_heads(made.graph, std::span(weight ? &made.weight : &made.body, 1));
    EXPECT_EQ(fused_head(fused.graph)->op->attributes(), weight ? "scale 1 dw" : "scale 1 dx");
  }
}

TEST(FuseHeads, EvaluationJudgesTheSameLogits) {
  const HeadGraph made = head_of(5000, true);
  const Rewritten fused = fuse_heads(made.graph, {});
  const Node* const head = fused_head(fused.graph);
  ASSERT_NE(head, nullptr);
  ASSERT_EQ(head->out.size(), 3u);
  const Value judged = fused.of[static_cast<size_t>(made.judged.id)];
  const Node& concat = fused.graph.nodes()[static_cast<size_t>(fused.graph[judged].producer)];
  EXPECT_EQ(concat.in, (std::vector<Value>{head->out[1], head->out[2]}));
}

TEST(FuseHeads, WhatElseReadsLogitsKeepsThem) {
  HeadGraph small = head_of(100, false), written = head_of(5000, false);
  EXPECT_EQ(fused_head(fuse_heads(small.graph, std::span(&small.weight, 1)).graph), nullptr);
  written.graph.mark_output(written.logits);
  EXPECT_EQ(fused_head(fuse_heads(written.graph, std::span(&written.weight, 1)).graph), nullptr);
}

}  // namespace tutti::ops
