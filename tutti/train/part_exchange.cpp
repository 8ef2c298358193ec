#include "tutti/train/part_exchange.h"

#include <chrono>

#include "tutti/ops/parts.h"

namespace tutti {

PartExchange::PartExchange(comm::Communicator& communicator, const PartGrid& grid,
                           const Plan& plan, const Executor& executor) {
  for (const PlanExchange& exchange : plan.exchanges) {
    const Node& node = plan.graph.nodes()[static_cast<size_t>(exchange.node)];
    const auto& op = dynamic_cast<const ExchangeParts&>(*node.op);
    auto& messages = exchanges_.emplace_back();
    const auto message = [&](int peer, const Place& place, const TensorDesc& desc) {
      return comm::MessageSpec{.name = node.name,
                               .peer = grid.first_peer() + peer,
                               .tag = op.tag(),
                               .data = {executor.address(place), desc.bytes()}};
    };
    for (size_t i = 0; i < op.gets().size(); ++i)
      messages.push_back(communicator.plan_receive(
          message(op.gets()[i].peer, exchange.out[i], exchange.out_desc[i])));
    for (const ExchangeParts::Give& give : op.gives()) {
      const auto i = static_cast<size_t>(give.input);
      messages.push_back(
          communicator.plan_send(message(give.peer, exchange.in[i], exchange.in_desc[i])));
      bytes_ += exchange.in_desc[i].bytes();
    }
  }
}

void PartExchange::start(int exchange) {
  for (const auto& message : exchanges_[static_cast<size_t>(exchange)]) message->start();
}

void PartExchange::finish(int exchange) {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& message : exchanges_[static_cast<size_t>(exchange)]) message->wait();
  exposed_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace tutti
