#include "tutti/train/step/part_exchange.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tutti/ops/parts.h"

namespace tutti::train {

PartExchange::PartExchange(comm::Communicator& communicator, const split::PartGrid& grid,
                           const plan::Plan& plan, const plan::Executor& executor)
    : communicator_(communicator), executor_(executor) {
  exchanges_.resize(static_cast<size_t>(executor.arenas()));
  for (int arena = 0; arena < executor.arenas(); ++arena) plan_exchanges(grid, plan, arena);
}

void PartExchange::plan_exchanges(const split::PartGrid& grid, const plan::Plan& plan, int arena) {
  for (const plan::PlanExchange& exchange : plan.exchanges) {
    const graph::Node& node = plan.graph.nodes()[static_cast<size_t>(exchange.node)];
    auto& [messages, bound, to_self] = exchanges_[static_cast<size_t>(arena)].emplace_back();
    const auto* parts = dynamic_cast<const ops::ExchangeParts*>(node.op.get());
    if (!parts) continue;
    const ops::ExchangeParts& op = *parts;
    // All ranks of the job share tables; the ranks of a group share samples.
    const int first = dynamic_cast<const ops::ExchangeBags*>(parts) ? 0 : grid.first_peer();
    const auto message = [&](int peer, const plan::Place& place, const TensorDesc& desc) {
      return comm::MessageSpec{
          .name = node.name,
          .peer = first + peer,
          .tag = op.tag(),
          .data = {place.base == plan::kArena ? executor_.address(place, arena) : nullptr,
                   place.base == plan::kArena ? desc.bytes() : 0}};
    };
    std::vector<plan::Place> own;  // destinations of this rank's own values
    for (size_t i = 0; i < op.gets().size(); ++i)
      if (first + op.gets()[i].peer == communicator_.rank())
        own.push_back(exchange.out[i]);
      else
        messages.push_back(communicator_.plan_receive(
            message(op.gets()[i].peer, exchange.out[i], exchange.out_desc[i])));
    for (const ops::ExchangeParts::Give& give : op.gives()) {
      const auto i = static_cast<size_t>(give.input);
      if (first + give.peer == communicator_.rank()) {
        to_self.push_back({exchange.in[i], own.at(to_self.size()), exchange.in_desc[i].bytes()});
        continue;
      }
      messages.push_back(
          communicator_.plan_send(message(give.peer, exchange.in[i], exchange.in_desc[i])));
      if (exchange.in[i].base != plan::kArena)  // such as a gradient
        bound.push_back({messages.back().get(), exchange.in[i], exchange.in_desc[i].bytes()});
      if (arena == 0) bytes_ += exchange.in_desc[i].bytes();
    }
  }
}

void PartExchange::start(int exchange) {
  auto& [messages, bound, to_self] = exchange_of(exchange);
  for (const Bound& b : bound) b.message->rebind({executor_.address(b.place), b.bytes});
  for (const auto& message : messages) message->start();
  for (const plan::OwnCopy& copy : to_self)
    std::memcpy(executor_.address(copy.to), executor_.address(copy.from), copy.bytes);
}

std::optional<std::vector<plan::OwnCopy>> PartExchange::own_copies(int exchange) const {
  const Exchange& made = exchanges_.front()[static_cast<size_t>(exchange)];
  if (!made.messages.empty()) return {};
  return made.to_self;
}

bool PartExchange::done(int exchange) {
  return std::ranges::all_of(exchange_of(exchange).messages,
                             [](const auto& message) { return message->test(); });
}

plan::ExchangeOutput PartExchange::finish(int exchange) {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& message : exchange_of(exchange).messages) message->wait();
  exposed_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

}  // namespace tutti::train
