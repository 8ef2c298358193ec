#pragma once
// Activation: an input or output of an operation on one rank, and its end of a connection.

#include <deque>

#include "tutti/mlsl/connection.h"
#include "tutti/mlsl/distribution.h"
#include "tutti/mlsl/statistics.h"

namespace tutti::mlsl {

class CommBlockInfo final : public api::CommBlockInfo {
 public:
  CommBlockInfo(const layout::CommBlock& block, api::DataType type) : block_(block), type_(type) {}
  const layout::CommBlock& block() const { return block_; }
  api::DataType type() const { return type_; }

 private:
  layout::CommBlock block_;
  api::DataType type_;
};

/// Sizes as the program has registered them.
struct ActivationInfo {
  size_t maps = 0;
  size_t map_size = 0;  ///< elements
  api::DataType type = api::DT_FLOAT;
  size_t elements() const { return maps * map_size; }
};

/// The comments of the public class describe the exchanges.
class Activation final : public api::Activation {
 public:
  /// `partial_sums`: see mlsl/layout/layer.h. An output is the producer's side, an input the
  /// consumer's.
  Activation(const ActivationInfo& info, Side side, bool partial_sums, size_t operation)
      : info_(info), shape_{.maps = info.maps,
                            .map_size = info.map_size,
                            .partial_sums = partial_sums},
        side_(side), operation_(operation) {}

  /// Throws ConfigError if the maps cannot be cut.
  void set_distribution(std::shared_ptr<Distribution> distribution);
  /// Makes two ends of one connection. Throws ConfigError if they do not fit, or one has another
  /// peer already.
  static void connect(Activation& producer, Activation& consumer);
  /// Derives and plans the exchange of both ends, on a producer with a peer. Collective over the
  /// group of the exchange, if there is one.
  void commit(size_t minibatch);
  /// Sets the statistics, for any side. Called for every activation, connected or not.
  void count_in(Statistics& statistics);
  /// Runs this side's exchange alone, on zeros.
  void isolate();

  const ActivationInfo& info() const { return info_; }
  const comm::Slice& local_maps() const { return maps_; }  ///< set by set_distribution()
  const std::deque<CommBlockInfo>& pack_blocks() const { return pack_; }
  const std::deque<CommBlockInfo>& unpack_blocks() const { return unpack_; }
  /// These throw ConfigError for an invalid index.
  CommBlockInfo& pack_block(size_t index) { return at(pack_, index); }
  CommBlockInfo& unpack_block(size_t index) { return at(unpack_, index); }
  void* buffer() const { return connection_ == nullptr ? nullptr : connection_->buffer(side_); }
  size_t buffer_bytes() const { return connection_ == nullptr ? 0 : connection_->bytes(); }

  void start(void* packed);
  void* wait();
  /// Waits for operations in flight in a producer's connection. Call it before destruction.
  void complete() {
    if (own_ != nullptr) own_->complete();
  }

 private:
  static Entity entity_of(Side sender) {
    return sender == Side::producer ? Entity::output : Entity::input_gradient;
  }
  static CommBlockInfo& at(std::deque<CommBlockInfo>& blocks, size_t index);
  void attach(Connection& connection, const std::optional<layout::ActivationTransfer>& sent,
              const std::optional<layout::ActivationTransfer>& received);

  ActivationInfo info_;
  layout::Activation shape_;
  Side side_;
  size_t operation_;
  std::shared_ptr<Distribution> distribution_;
  comm::Slice maps_;
  Activation* peer_ = nullptr;
  std::unique_ptr<Connection> own_;   // set on the producer
  Connection* connection_ = nullptr;  // on both ends; null if nothing is exchanged
  std::deque<CommBlockInfo> pack_, unpack_;
  Statistics* statistics_ = nullptr;  // set by commit
  Statistics::Tally* tally_ = nullptr;
};

}  // namespace tutti::mlsl
