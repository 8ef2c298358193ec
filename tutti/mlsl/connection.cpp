#include "tutti/mlsl/connection.h"

#include "tutti/base/error.h"

namespace tutti::mlsl {

Connection::Connection(Group& group, const layout::ActivationExchange& exchange,
                       comm::Element element)
    : bytes_(exchange.buffer * comm::size_of(element)) {
  CHECK(group.size() == static_cast<int>(exchange.group.size()) && group.index() == exchange.index,
        "a connection in another group");
  const size_t room = (bytes_ + 127) / 128 * 128;
  window_ = group.allocate(2 * room);
  buffers_ = {window_->data(), window_->data() + room};
  if (exchange.forward)
    plan(group, Side::producer, exchange, exchange.forward->collective, element);
  if (exchange.backward)
    plan(group, Side::consumer, exchange, exchange.backward->collective, element);
}

void Connection::plan(Group& group, Side sender, const layout::ActivationExchange& exchange,
                      const layout::GroupCollective& collective, comm::Element element) {
  using comm::Collective;
  const size_t size = comm::size_of(element);
  const bool whole = collective.kind == Collective::allreduce;
  Route& route = routes_[static_cast<size_t>(sender)];
  if (collective.kind == Collective::allgather)
    route.begin = static_cast<size_t>(exchange.index) * collective.count * size;
  comm::CollectiveSpec spec;
  spec.name = sender == Side::producer ? "activation" : "gradient of an activation";
  spec.kind = collective.kind;
  spec.element = element;
  spec.count = whole ? collective.count : collective.count * exchange.group.size();
  route.exchange = std::make_unique<Planned>(group, spec);
}

void Connection::start(Side sender, const void* packed) {
  Route& route = routes_[static_cast<size_t>(sender)];
  CHECK(route.exchange != nullptr, "nothing is sent in this direction");
  route.exchange->start(
      {static_cast<const std::byte*>(packed) + route.begin, buffer(other(sender))});
  route.started = true;
}

void* Connection::wait(Side receiver) {
  Route& route = routes_[static_cast<size_t>(other(receiver))];
  if (!route.started) return nullptr;
  route.exchange->operation().wait();
  return buffer(receiver);
}

void Connection::complete() {
  for (const Route& route : routes_)
    if (route.exchange != nullptr) route.exchange->operation().wait();
}

}  // namespace tutti::mlsl
