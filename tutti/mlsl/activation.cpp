#include "tutti/mlsl/activation.h"

#include <cstring>

namespace tutti::mlsl {

void Activation::set_distribution(std::shared_ptr<Distribution> distribution) {
  // Which maps are local does not depend on the minibatch, so any size that can be cut will do.
  const auto minibatch = static_cast<size_t>(distribution->layout().parts(layout::GroupKind::data));
  maps_ = layout::local_share(shape_, minibatch, distribution->layout(), distribution->rank()).maps;
  distribution_ = std::move(distribution);
}

void Activation::connect(Activation& producer, Activation& consumer) {
  const ActivationInfo& from = producer.info_;
  const ActivationInfo& to = consumer.info_;
  demand(from.type == to.type, "connected activations have different data types");
  demand(from.elements() == to.elements(),
         "an output of {} maps of {} elements cannot be an input of {} maps of {}", from.maps,
         from.map_size, to.maps, to.map_size);
  demand((producer.peer_ == nullptr || producer.peer_ == &consumer) &&
             (consumer.peer_ == nullptr || consumer.peer_ == &producer),
         "an activation has one peer; an output that several operations read needs an operation "
         "that copies it (OT_BCAST)");
  producer.peer_ = &consumer;
  consumer.peer_ = &producer;
}

void Activation::commit(size_t minibatch) {
  if (side_ == Side::consumer || peer_ == nullptr) return;
  const layout::ActivationEnd mine{distribution_->layout(), shape_};
  const layout::ActivationEnd theirs{peer_->distribution_->layout(), peer_->shape_};
  const layout::ActivationExchange exchange =
      layout::derive_exchange(mine, theirs, minibatch, distribution_->rank());
  if (exchange.kind == layout::ExchangeCase::none) return;
  const Distribution& side = exchange.consumers_group ? *peer_->distribution_ : *distribution_;
  own_ = std::make_unique<Connection>(side.group(layout::GroupKind::model), exchange,
                                      element_of(info_.type));
  attach(*own_, exchange.forward, exchange.backward);
  peer_->attach(*own_, exchange.backward, exchange.forward);
}

CommBlockInfo& Activation::at(std::deque<CommBlockInfo>& blocks, size_t index) {
  demand(index < blocks.size(), "there is no block {} of {}", index, blocks.size());
  return blocks[index];
}

void Activation::attach(Connection& connection,
                        const std::optional<layout::ActivationTransfer>& sent,
                        const std::optional<layout::ActivationTransfer>& received) {
  connection_ = &connection;
  if (sent)
    for (const layout::CommBlock& block : sent->pack) pack_.emplace_back(block, info_.type);
  if (received)
    for (const layout::CommBlock& block : received->unpack) unpack_.emplace_back(block, info_.type);
}

void Activation::count_in(Statistics& statistics) {
  statistics_ = &statistics;
  tally_ = &statistics.tally(operation_, entity_of(side_));
}

void Activation::isolate() {
  if (connection_ == nullptr || !connection_->sends(side_)) return;
  std::memset(buffer(), 0, buffer_bytes());
  Statistics::isolate(*tally_, [this] {
    connection_->start(side_, buffer());
    connection_->wait(other(side_));
  });
}

void Activation::start(void* packed) {
  demand(statistics_ != nullptr, "StartComm before Commit");
  const Statistics::Call call(*statistics_, operation_, *tally_);
  if (connection_ == nullptr || !connection_->sends(side_)) return;
  demand(packed != nullptr, "StartComm without a buffer");
  call.count_start(connection_->sent_bytes(side_));
  connection_->start(side_, packed);
}

// The time counts towards the peer's exchange.
void* Activation::wait() {
  demand(statistics_ != nullptr, "WaitComm before Commit");
  if (connection_ == nullptr) return nullptr;
  const Statistics::Call call(*statistics_, operation_, *peer_->tally_);
  return connection_->wait(side_);
}

}  // namespace tutti::mlsl
