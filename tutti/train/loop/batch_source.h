#pragma once
// BatchSource: where the trainer's minibatches come from. They are read ahead by a Pipeline, or
// they depend on what the network has made of those before them (moving_fields.h).

#include <functional>
#include <memory>
#include <vector>

#include "tutti/data/pipeline/pipeline.h"
#include "tutti/keep/named_tensor.h"

namespace tutti {

/// Of one rank; used by its thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// The batch of the next local turn (train/step/training_step.h), in their order, step after
  /// step. Hands the previous one back.
  virtual const data::Batch& next() = 0;
  /// How long that took from the step.
  virtual double last_wait_seconds() const = 0;
  /// Threads that read ahead, and the seconds of processor time that they have taken so far.
  virtual int readers() const { return 0; }
  virtual double reading_seconds() const { return 0; }
  /// Where batches are dealt out (DealtBatches): the next one is this.
  virtual void add(const data::Position& /*position*/) {}
  /// After the network has run on that batch. `prediction`: what it predicts, in the plain layout;
  /// for the time of the call.
  virtual void learn(const std::function<const float*()>& /*prediction*/) {}
  /// What a checkpoint must keep of this rank's turns, f32, besides the step; a row each.
  virtual std::vector<NamedTensor> state() const { return {}; }
};

/// Of a rank that reads nothing of a sample, as the inner stages of a pipeline.
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
  /// As Pipeline's; all of them must outlive this.
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

/// Batches of which it becomes known, while the run goes on, that they are this rank's.
class DealtBatches final : public BatchSource {
 public:
  /// As Pipeline's; all of them must outlive this. `ahead`: at most so many batches are known
  /// before next() has given the first of them.
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
  data::DealtOrder& order_;  // of the pipeline
  data::Pipeline pipeline_;
};

}  // namespace tutti
