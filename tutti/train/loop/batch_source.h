#pragma once
// BatchSource: supplies the trainer's minibatches. They are read ahead by a Pipeline, or depend on
// the network's predictions for earlier ones (moving_fields.h).

#include <functional>
#include <memory>
#include <vector>

#include "tutti/data/pipeline/pipeline.h"
#include "tutti/keep/named_tensor.h"

namespace tutti::train {

/// Supplies one rank; used by its thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Returns the batch of the next local micro-batch (train/step/training_step.h), in their order,
  /// step after step. The previous batch becomes invalid.
  virtual const data::Batch& next() = 0;
  /// Returns how long the step had to wait for that batch.
  virtual double last_wait_seconds() const = 0;
  /// Returns the number of threads that read ahead, and the seconds of processor time that they
  /// have used so far.
  virtual int readers() const { return 0; }
  virtual double reading_seconds() const { return 0; }
  /// For DealtBatches: `position` is this rank's next batch.
  virtual void add(const data::Position& /*position*/) {}
  /// Call after the network has run on that batch. `prediction` returns the network's prediction in
  /// the plain layout; it is valid during the call.
  virtual void learn(const std::function<const float*()>& /*prediction*/) {}
  /// Returns the state of this rank's micro-batches, f32, that a checkpoint must keep besides the
  /// step; a row each.
  virtual std::vector<keep::NamedTensor> state() const { return {}; }
};

/// For a rank that reads no part of a sample, such as the inner stages of a pipeline.
class NoBatches final : public BatchSource {
 public:
  const data::Batch& next() override { return nothing_; }
  double last_wait_seconds() const override { return 0; }

 private:
  data::Batch nothing_;
};

/// Batches that depend on the step alone.
class ReadBatches final : public BatchSource {
 public:
  /// The arguments are those of Pipeline; all of them must outlive this object.
  ReadBatches(const data::Dataset& dataset, const data::SampleWriter& writer,
              std::unique_ptr<data::BatchOrder> order, const data::PipelineSpec& spec)
      : pipeline_(dataset, writer, std::move(order), spec) {}
  const data::Batch& next() override { return pipeline_.next(); }
  double last_wait_seconds() const override { return pipeline_.last_wait_seconds(); }
  int readers() const override { return pipeline_.readers(); }
  double reading_seconds() const override { return pipeline_.reading_seconds(); }

 private:
  data::Pipeline pipeline_;
};

/// Batches that are assigned to this rank while the run goes on.
class DealtBatches final : public BatchSource {
 public:
  /// The arguments are those of Pipeline; all of them must outlive this object. At most `ahead`
  /// batches are assigned before next() has returned the first of them.
  DealtBatches(const data::Dataset& dataset, const data::SampleWriter& writer,
               const data::Sampler& sampler, const data::PipelineSpec& spec, int64_t ahead)
      : DealtBatches(dataset, writer,
                     std::make_unique<data::DealtOrder>(sampler, ahead + spec.slots), spec) {}
  void add(const data::Position& position) override {
    order_.add(position);
    pipeline_.look_again();
  }
  const data::Batch& next() override { return pipeline_.next(); }
  double last_wait_seconds() const override { return pipeline_.last_wait_seconds(); }
  int readers() const override { return pipeline_.readers(); }
  double reading_seconds() const override { return pipeline_.reading_seconds(); }

 private:
  DealtBatches(const data::Dataset& dataset, const data::SampleWriter& writer,
               std::unique_ptr<data::DealtOrder> order, const data::PipelineSpec& spec)
      : order_(*order), pipeline_(dataset, writer, std::move(order), spec) {}
  data::DealtOrder& order_;  // owned by the pipeline
  data::Pipeline pipeline_;
};

}  // namespace tutti::train
