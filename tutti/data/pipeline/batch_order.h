#pragma once
// A BatchOrder is the sequence of minibatches that a Pipeline fills: it says which samples batch k
// has, and for which replica. It is fixed, or grows while it is filled.

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>

#include "tutti/data/pipeline/sampler.h"

namespace tutti::data {

/// Identifies a minibatch.
struct BatchId {
  Position position;  ///< for evaluation: epoch 0, step k, replica 0
  int64_t count = 0;  ///< samples; below the capacity only in the last batch of an evaluation
  bool augment = false;
};

/// Functions of k whose results never change; callable from any thread.
class BatchOrder {
 public:
  virtual ~BatchOrder() = default;
  virtual int64_t batches() const = 0;   ///< k lies in [0, batches()), which may grow
  virtual int64_t capacity() const = 0;  ///< samples of a full batch
  virtual BatchId id(int64_t k) const = 0;
  /// Gets the indices of samples first, first + 1, ... of batch k.
  virtual void indices(int64_t k, int64_t first, std::span<int64_t> out) const = 0;
};

/// The replicas of one rank, [first_replica, first_replica + replicas), and the step at which the
/// run starts or resumes.
struct TrainingStart {
  int64_t epoch = 0;
  int64_t step = 0;  ///< may equal steps_per_epoch(): the start of the next epoch
  int first_replica = 0;
  int replicas = 1;
};

/// An order of a sampler's batches, with augmentation. `sampler` must outlive it.
class SampledOrder : public BatchOrder {
 public:
  explicit SampledOrder(const Sampler& sampler) : sampler_(sampler) {}
  int64_t capacity() const override { return sampler_.spec().local_batch; }
  void indices(int64_t k, int64_t first, std::span<int64_t> out) const override {
    sampler_.indices(id(k).position, first, out);
  }

 protected:
  const Sampler& sampler_;
};

/// An endless order: each step has one batch per local replica, in the order of replicas, epoch
/// after epoch.
class TrainingOrder final : public SampledOrder {
 public:
  TrainingOrder(const Sampler& sampler, const TrainingStart& start);
  int64_t batches() const override;
  BatchId id(int64_t k) const override;

 private:
  int64_t first_step_;  // counted from epoch 0
  int first_replica_, replicas_;
};

/// An order of training batches that are dealt out one after another.
class DealtOrder final : public SampledOrder {
 public:
  /// A batch's number is not asked for any more once `kept` further batches were added.
  DealtOrder(const Sampler& sampler, int64_t kept) : SampledOrder(sampler), kept_(kept) {}
  /// Appends the next batch.
  void add(const Position& position);
  int64_t batches() const override;
  BatchId id(int64_t k) const override;

 private:
  const int64_t kept_;
  mutable std::mutex mutex_;
  std::deque<Position> dealt_;  // the last positions added
  int64_t forgotten_ = 0;
};

/// A range of samples in order, once, without augmentation; its last batch may be partial.
class EvaluationOrder final : public BatchOrder {
 public:
  EvaluationOrder(const Range& range, int64_t batch);
  int64_t batches() const override { return (range_.size() + batch_ - 1) / batch_; }
  int64_t capacity() const override { return batch_; }
  BatchId id(int64_t k) const override;
  void indices(int64_t k, int64_t first, std::span<int64_t> out) const override;

 private:
  Range range_;
  int64_t batch_;
};

}  // namespace tutti::data
