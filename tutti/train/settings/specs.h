#pragma once
// Specifications that a configuration gives to the model, the network, the exchange and the data. A
// section that a part takes as it is needs no function here.

#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/exchange/exchange.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/models/block/model.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/schedule.h"

namespace tutti::train {

/// Returns the specification without what depends on the batch, the data set or the model's sizes.
models::ModelSpec model_alone(const config::RunConfig& config);
models::ModelSpec model_spec(const config::RunConfig& config, const data::Dataset& dataset,
                             int64_t batch);
/// Does the same without a data set: fields, a sample's shape and, if model.classes is 0, outputs
/// are the model's own.
models::ModelSpec model_spec(const config::RunConfig& config, int64_t batch);
/// Returns the fields that the network learns: those in data.target, else the data set's second.
std::vector<data::Field> target_fields(const config::RunConfig& config,
                                       const data::Dataset& dataset);
/// Describes the fields as a checkpoint stores them.
std::vector<keep::LearnedField> learned_fields(const std::vector<data::Field>& targets);
/// Reverses that, as far as a network depends on them: for classes the number, but no names.
std::vector<data::Field> fields_of(const std::vector<keep::LearnedField>& learned);
/// Returns how the ranks of a run share its replicas.
split::PartGrid part_grid(const config::ParallelSection& parallel, int64_t ranks, int64_t rank);
/// Returns how a run cuts large samples.
split::SplitSettings split_settings(const config::RunConfig& config);
/// Returns everything except the choices. `batch` is a replica's number of samples.
NetworkSpec network_spec(const config::RunConfig& config, const data::Dataset& dataset,
                         int64_t batch);
/// Returns everything except the compression, which depends on the network's buckets.
exchange::ExchangeSettings exchange_settings(const config::CommSection& comm);
/// The schedule spans run.epochs; run.max_steps cuts a run short without changing it, unless
/// run.epochs is 0.
LearningRateSchedule learning_rate_schedule(const config::RunConfig& config,
                                            int64_t steps_per_epoch, int64_t global_batch);
/// Returns the steps for the data set's fields: data.transforms and, for fields without any there,
/// the data set's own. Throws ConfigError naming a line that cannot be parsed.
std::vector<data::FieldSteps> field_steps(const config::DataSection& data);
/// Returns a writer that fills the tensors of a batch from a data set.
data::SampleWriter sample_writer(const config::RunConfig& config, const data::Dataset& dataset,
                                 const std::vector<data::BatchField>& batch);

}  // namespace tutti::train
