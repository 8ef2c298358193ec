#pragma once
// What ranks that share a sample, or the statistics of a batch norm, exchange with each other
// within a step. Peers are ranks of the group that shares.

#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/ops/batch_norm.h"

namespace tutti {

/// Sends inputs to peers and receives others' as outputs. Inputs that are not given say what the
/// outputs depend on. Between two ranks messages of one `tag`
/// are matched in the order of `gives` and `gets`. Run by parallel/, not by a kernel.
class ExchangeParts : public Op {
 public:
  struct Give {
    int input = 0, peer = 0;
  };
  struct Get {
    int peer = 0;
    ValueType type;
  };
  /// `constant`: its gradient is none, because the caller alone reads what is received, or because
  /// another op's rule covers it.
  ExchangeParts(int tag, std::vector<Give> gives, std::vector<Get> gets, bool constant = false)
      : tag_(tag), gives_(std::move(gives)), gets_(std::move(gets)), constant_(constant) {}
  int tag() const { return tag_; }
  const std::vector<Give>& gives() const { return gives_; }
  const std::vector<Get>& gets() const { return gets_; }
  std::string_view name() const override { return "exchange_parts"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::exchange; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  bool gives_to_others() const override { return !gives_.empty() && !constant_; }
  /// What was received goes back, with the next tag: exchanges of a forward graph have even ones.
  std::vector<Value> grad(const GradArgs& args) const override;

 protected:
  bool constant() const { return constant_; }
  /// An exchange of the same kind.
  virtual OpPtr like(int tag, std::vector<Give> gives, std::vector<Get> gets) const {
    return std::make_shared<ExchangeParts>(tag, std::move(gives), std::move(gets));
  }

 private:
  int tag_;
  std::vector<Give> gives_;
  std::vector<Get> gets_;
  bool constant_;
};

/// All to all: what the owners of tables and those whose samples read them send each other. Begun
/// at once, so that what follows is computed while it is under way.
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

/// What a stage of a pipeline gives to later ones, or gets from earlier ones; peers are stages.
/// What receives has no inputs and begins with the pass. Ends a band, so that what needs other
/// stages begins one.
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
class SumParts : public Op {
 public:
  explicit SumParts(float scale) : scale_(scale) {}
  float scale() const { return scale_; }
  std::string_view name() const override { return "sum_parts"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::whole; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

 private:
  float scale_;
};

/// Of a batch norm whose statistics several ranks share, this rank's: y -> (mean [C], variance
/// [C]), f32, the variance biased.
class BatchNormMoments : public Op {
 public:
  std::string_view name() const override { return "batch_norm_moments"; }
  Walk walk(std::span<const ValueType>) const override { return Walk::reduce; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(
      const GradArgs& args) const override;  // none: BatchNormApply's rule covers it
};

/// Who shares the statistics of a batch norm.
struct NormGroup {
  std::vector<int> peers;       ///< in the order in which they are merged, this rank among them
  std::vector<int64_t> counts;  ///< values of each in a channel
  size_t me = 0;                ///< this rank's place
  int tag = 0;             ///< of the exchange of moments; that of the backward pass has the next
  int64_t values() const;  ///< of all in a channel
  double share() const;    ///< this rank's part of them
};

/// What the ranks of a group have, in its order: each gives `mine`, a few tensors, to all others.
std::vector<std::vector<Value>> exchange_in_group(Graph& graph, const std::string& name,
                                                  const NormGroup& group, int tag,
                                                  const std::vector<Value>& mine);

/// (running_mean, running_var, then for each rank in order mean, variance) -> (mean [C], inv_std
/// [C]) of all their values; updates the running averages as BatchNormStats does. A BatchNormApply
/// that reads them takes the sums of its backward pass over the same group.
class MergeMoments : public Op {
 public:
  MergeMoments(NormGroup group, NormStatistics statistics)
      : group_(std::move(group)), statistics_(statistics) {}
  const NormGroup& group() const { return group_; }
  const NormStatistics& statistics() const { return statistics_; }
  std::string_view name() const override { return "merge_moments"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::whole; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(
      const GradArgs& args) const override;  // none: BatchNormApply's rule covers it
  bool mutates(int input) const override { return input < 2; }

 private:
  NormGroup group_;
  NormStatistics statistics_;
};

}  // namespace tutti
