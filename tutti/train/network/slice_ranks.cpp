#include "tutti/train/network/slice_ranks.h"

#include <algorithm>
#include <chrono>

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/exchange/arena_message.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/update.h"

namespace tutti::train {
namespace {

constexpr int kNormTag = 14'000, kWholeTag = 13'999;  // between tags of parts and tables

}  // namespace

comm::MessageSpec SliceRanks::message(const char* name, int place, int tag,
                                      std::span<float> data) const {
  return {.name = name,
          .peer = grid_.first_peer() + place,
          .tag = tag,
          .data = std::as_writable_bytes(data)};
}

void SliceRanks::plan_norms(const plan::Plan& plan) {
  for (size_t e = 0; e < plan.exchanges.size(); ++e) {
    const graph::Node& node = plan.graph.nodes()[static_cast<size_t>(plan.exchanges[e].node)];
    const auto* op = dynamic_cast<const ops::AllReduceNorms*>(node.op.get());
    if (!op || op->slices().empty()) continue;
    const graph::Node& maker =
        plan.graph.nodes()[static_cast<size_t>(plan.graph[node.in[0]].producer)];
    const auto& update = dynamic_cast<const ops::Update&>(*maker.op);
    Norms& norms = norms_[static_cast<int>(e)];
    norms.columns = static_cast<size_t>(plan.desc(node.in[0]).shape[1]);
    size_t row = 0;
    for (size_t p = 0; p < op->slices().size(); ++p) {
      const TensorDesc& w = plan.desc(maker.in[static_cast<size_t>(update.leading()) +
                                               p * static_cast<size_t>(update.arity())]);
      const auto count = static_cast<size_t>(sum_blocks(w.layout.storage_elements(w.shape)));
      if (op->slices()[p]) norms.slices.push_back({row, count});
      row += count;
    }
    norms.of_rank.assign(static_cast<size_t>(grid_.tensor()),
                         std::vector<float>(norms.slices.size() * norms.columns));
    const int me = grid_.tensor_place(), tag = kNormTag + static_cast<int>(e);
    for (int other = 0; other < grid_.tensor(); ++other) {
      if (other == me) continue;
      norms.messages.push_back(communicator_.plan_receive(
          message("norms of slices", other, tag, norms.of_rank[static_cast<size_t>(other)])));
      norms.messages.push_back(communicator_.plan_send(
          message("norms of slices", other, tag, norms.of_rank[static_cast<size_t>(me)])));
    }
  }
}

void SliceRanks::start_norms(int exchange, std::span<const float> sums) {
  Norms& norms = norms_.at(exchange);
  std::vector<float>& mine = norms.of_rank[static_cast<size_t>(grid_.tensor_place())];
  for (size_t p = 0; p < norms.slices.size(); ++p)
    for (size_t c = 0; c < norms.columns; ++c) {
      const Blocks& blocks = norms.slices[p];
      const double sum = tree_sum(0, static_cast<int64_t>(blocks.count), [&](int64_t block) {
        return static_cast<double>(
            sums[(blocks.first + static_cast<size_t>(block)) * norms.columns + c]);
      });
      mine[p * norms.columns + c] = static_cast<float>(sum);
    }
  for (const auto& each : norms.messages) each->start();
}

bool SliceRanks::norms_done(int exchange) {
  return std::ranges::all_of(norms_.at(exchange).messages,
                             [](const auto& each) { return each->test(); });
}

void SliceRanks::finish_norms(int exchange, std::span<float> sums) {
  const auto begin = std::chrono::steady_clock::now();
  Norms& norms = norms_.at(exchange);
  for (const auto& each : norms.messages) each->wait();
  exposed_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (size_t p = 0; p < norms.slices.size(); ++p)
    for (size_t c = 0; c < norms.columns; ++c) {
      double sum = 0;
      for (const std::vector<float>& of_rank : norms.of_rank)
        sum += static_cast<double>(of_rank[p * norms.columns + c]);
      const Blocks& blocks = norms.slices[p];
      for (size_t block = 0; block < blocks.count; ++block)
        sums[(blocks.first + block) * norms.columns + c] =
            block == 0 ? static_cast<float>(sum) : 0.0f;
    }
}

std::vector<float> SliceRanks::whole(const graph::TensorSlice& slice, std::vector<float> mine) {
  if (grid_.tensor_place() != 0) {
    exchange::send_arena(communicator_, "a slice", grid_.first_peer(), kWholeTag,
                         std::as_writable_bytes(std::span(mine)));
    return mine;
  }
  std::vector<float> all(static_cast<size_t>(slice.whole.elements()));
  slice.put(mine, 0, all);
  for (int other = 1; other < grid_.tensor(); ++other) {
    std::vector<float> theirs(static_cast<size_t>(slice.shape(other).elements()));
    exchange::receive_arena(communicator_, "a slice", grid_.first_peer() + other, kWholeTag,
                            std::as_writable_bytes(std::span(theirs)));
    slice.put(theirs, other, all);
  }
  return all;
}

}  // namespace tutti::train
