#pragma once
// ParameterSet: a rank's share of a layer's weights, and the exchanges of their gradient and
// increment.

#include <vector>

#include "tutti/mlsl/distribution.h"
#include "tutti/mlsl/layout/layer.h"
#include "tutti/mlsl/quantizer.h"
#include "tutti/mlsl/statistics.h"

namespace tutti::mlsl {

/// Sizes as the program has registered them.
struct ParameterInfo {
  layout::Parameters all;
  api::DataType type = api::DT_FLOAT;
  api::CompressionType compression = api::CT_NONE;
};

/// The comments of the public class describe the exchanges.
class ParameterSet final : public api::ParameterSet {
 public:
  ParameterSet(const ParameterInfo& info, size_t operation) : info_(info), operation_(operation) {}

  /// Throws ConfigError if the kernels cannot be cut.
  void set_distribution(const Distribution& distribution) {
    share_ = layout::local_share(info_.all, distribution.layout(), distribution.rank());
  }
  /// Plans the exchanges. Collective over the data group. `quantizer` may be null if no compression
  /// is requested; it and `statistics` outlive this object.
  void commit(Distribution& distribution, const Quantizer* quantizer, Statistics& statistics);
  /// Runs each exchange alone, on zeros. Collective over the data group.
  void isolate();

  const ParameterInfo& info() const { return info_; }
  /// Returns the share, which set_distribution() has set.
  const layout::LocalParameters& share() const { return share_; }
  /// Returns the kernels in the buffers, padding included.
  size_t local_kernels() const { return share_.padded; }

  void start_gradient(void* buffer);
  void* wait_gradient();
  void* test_gradient(bool& complete);
  void start_increment(void* buffer);
  void* wait_increment();
  /// Waits for exchanges in flight. Call it before destruction.
  void complete();

 private:
  // State of one of the two exchanges, as the program sees it.
  struct State {
    Statistics::Tally* tally = nullptr;
    void* buffer = nullptr;  // buffer of the start that has not been waited for
    void* result = nullptr;  // result of the latest completion
    bool started = false;
  };
  bool exchanges_gradient() const { return gradient_ || quantized_; }
  comm::Operation& gradient_exchange() const;
  void finish_gradient();
  std::byte* owned(void* buffer) const;

  ParameterInfo info_;
  size_t operation_;
  layout::LocalParameters share_;
  Statistics* statistics_ = nullptr;
  Job* job_ = nullptr;                       // the exchanges' job; set by commit if there are any
  std::unique_ptr<Planned> gradient_;        // this one,
  std::unique_ptr<QuantizedSum> quantized_;  // or that one, or none
  std::unique_ptr<Planned> increment_;
  std::unique_ptr<comm::Window>
      owned_sum_;  // distributed update: the owned kernels of the summed gradient
  State gradient_state_, increment_state_;
};

}  // namespace tutti::mlsl
