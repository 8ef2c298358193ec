#pragma once
// Exchanges within a step between ranks that share a sample or the statistics of a batch norm.
// Peers are ranks of the sharing group.

#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// Sends inputs to peers and receives the peers' as outputs. Inputs that are not sent only
/// state what the outputs depend on. Between two ranks messages of one `tag` are matched in the
/// order of `gives` and `gets`. Run by parallel/, not by a kernel.
class ExchangeParts : public NamedOp<"exchange_parts", Walk::exchange> {
 public:
  struct Give {
    int input = 0, peer = 0;
  };
  struct Get {
    int peer = 0;
    ValueType type;
  };
  /// `constant`: it has no gradient, because only the caller reads the outputs, or because another
  /// op's rule covers it.
  ExchangeParts(int tag, std::vector<Give> gives, std::vector<Get> gets, bool constant = false)
      : tag_(tag), gives_(std::move(gives)), gets_(std::move(gets)), constant_(constant) {}
  int tag() const { return tag_; }
  const std::vector<Give>& gives() const { return gives_; }
  const std::vector<Get>& gets() const { return gets_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  bool gives_to_others() const override { return !gives_.empty() && !constant_; }
  /// Sends the outputs' gradients back, with the next tag: exchanges of a forward graph have even
  /// tags.
  std::vector<Value> grad(const GradArgs& args) const override;

 protected:
  bool constant() const { return constant_; }
  /// Returns an exchange of the same kind.
  virtual OpPtr like(int tag, std::vector<Give> gives, std::vector<Get> gets) const {
    return std::make_shared<ExchangeParts>(tag, std::move(gives), std::move(gets));
  }

 private:
  int tag_;
  std::vector<Give> gives_;
  std::vector<Get> gets_;
  bool constant_;
};

/// All-to-all exchange between the owners of tables and the ranks whose samples read them. It
/// begins at once, so that later ops are computed while it is under way.
class ExchangeBags final : public ExchangeParts {
 public:
  using ExchangeParts::ExchangeParts;
  std::string_view name() const override { return "exchange_bags"; }
  bool begins_at_once() const override { return true; }
  bool brings_trained() const override { return !constant(); }

 private:
  OpPtr like(int tag, std::vector<Give> gives, std::vector<Get> gets) const override {
    return std::make_shared<ExchangeBags>(tag, std::move(gives), std::move(gets));
  }
};

/// Sends a pipeline stage's values to later stages, or receives them from earlier ones; peers are
/// stages. A receiving op has no inputs and begins with the pass. The op ends a band, so that ops
/// that need other stages begin one.
class ExchangeStages final : public ExchangeParts {
 public:
  using ExchangeParts::ExchangeParts;
  std::string_view name() const override { return "exchange_stages"; }
  bool begins_at_once() const override { return true; }
  bool brings_trained() const override { return !constant(); }

 private:
  OpPtr like(int tag, std::vector<Give> gives, std::vector<Get> gets) const override {
    return std::make_shared<ExchangeStages>(tag, std::move(gives), std::move(gets));
  }
};

/// y = scale * (x[0] + x[1] + ...), unbatched f32 tensors of one shape, added in this order.
class SumParts : public NamedOp<"sum_parts", Walk::whole> {
 public:
  explicit SumParts(float scale) : scale_(scale) {}
  float scale() const { return scale_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  float scale_;
};

/// This rank's part of a batch norm whose statistics several ranks share: y -> (mean [C], variance
/// [C]), f32, the variance biased. BatchNormApply's gradient rule covers it.
class BatchNormMoments : public WithoutGradient<NamedOp<"batch_norm_moments", Walk::reduce>> {
 public:
  std::vector<ValueType> infer(Types in) const override;
};

/// The ranks that share the statistics of a batch norm.
struct NormGroup {
  std::vector<int> peers;       ///< in the order in which they are merged, this rank among them
  std::vector<int64_t> counts;  ///< number of values per channel of each rank
  size_t me = 0;                ///< this rank's index in peers
  int tag = 0;             ///< tag of the exchange of moments; the backward pass's exchange has the
                           ///< next one
  int64_t values() const;  ///< number of values per channel over all ranks
  double share() const;    ///< this rank's fraction of values()
};

/// Sends `mine`, a few tensors, to the other ranks of the group and returns the tensors of every
/// rank, in the group's order.
std::vector<std::vector<Value>> exchange_in_group(Graph& graph, const std::string& name,
                                                  const NormGroup& group, int tag,
                                                  const std::vector<Value>& mine);

/// (running_mean, running_var, then for each rank in order mean, variance) -> (mean [C], inv_std
/// [C]) over all ranks' values; updates the running averages as BatchNormStats does. A
/// BatchNormApply that reads them takes the sums of its backward pass over the same group; its
/// gradient rule covers this op, too.
class MergeMoments : public WithoutGradient<NamedOp<"merge_moments", Walk::whole>> {
 public:
  MergeMoments(NormGroup group, NormStatistics statistics)
      : group_(std::move(group)), statistics_(statistics) {}
  const NormGroup& group() const { return group_; }
  const NormStatistics& statistics() const { return statistics_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  bool mutates(int input) const override { return input < 2; }

 private:
  NormGroup group_;
  NormStatistics statistics_;
};

}  // namespace tutti::ops
