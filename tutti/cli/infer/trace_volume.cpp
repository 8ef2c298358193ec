#include "tutti/cli/infer/trace_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/data/neurons/neuron_set.h"
#include "tutti/train/infer/flood_fill.h"
#include "tutti/train/metrics/segmentation_score.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/plain_copy.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

/// The fields that the network reads and learns, without samples.
class FieldsOfView final : public data::Dataset {
 public:
  FieldsOfView(data::ElementType image, const std::vector<int64_t>& fov) {
    const Shape shape{1, fov[0], fov[1], fov[2]};
    fields_ = {{.name = "image", .element = image, .shape = shape},
               {.name = "label", .element = data::ElementType::u8, .shape = shape},
               {.name = "seed", .element = data::ElementType::f32, .shape = shape}};
  }
  int64_t size() const override { return 0; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t, data::Sample&) const override { CHECK(false, "fields without samples"); }

 private:
  std::vector<data::Field> fields_;
};

/// Returns the whole image after the configured transforms, without random ones.
std::vector<float> stepped_image(const data::Volume& volume, const config::RunConfig& config) {
  const data::Field field{.name = "image",
                          .element = volume.element,
                          .shape = {1, volume.extents[0], volume.extents[1], volume.extents[2]}};
  data::FieldSteps steps{.field = "image"};
  for (data::FieldSteps& own : train::field_steps(config.data))
    if (own.field == "image") steps = std::move(own);
  if (!steps.placement.permute.empty() || steps.placement.crops)
    throw ConfigError(
        "data.transforms: a volume is traced as it lies: leave permute and crop of 'image' out");
  steps.placement = {};  // flips and symmetries are random
  const data::FieldWriter writer(
      field, steps,
      {DType::f32, {1, 1, volume.extents[0], volume.extents[1], volume.extents[2]}, {}});
  std::vector<float> image(static_cast<size_t>(data::product(volume.extents)));
  writer.write(volume.image.data(), nullptr, 0, image.data());
  return image;
}

/// Runs the network on one field of view.
class Look {
 public:
  Look(const train::EvaluationNetwork& network, const backend::Backend& backend)
      : network_(network), executor_(plan::make_executor(network.plan, backend)) {
    for (const models::GraphInput& input : network.inputs) {
      const TensorDesc& desc = network.plan.desc(input.value);
      memory_.emplace_back(desc.bytes());
      executor_->bind_input(input.value, memory_.back().data());
    }
  }
  void bind(void* parameters, void* statistics) {
    executor_->bind({.parameters = parameters, .statistics = statistics});
    executor_->pack();
  }
  const float* operator()(const float* image, const float* logits) {
    for (size_t i = 0; i < network_.inputs.size(); ++i)
      write(i, network_.inputs[i].field == "seed" ? logits : image);
    executor_->run({});
    const graph::Value value = network_.predictions.front();
    train::to_plain(network_.plan.desc(value), static_cast<const float*>(executor_->result(value)),
                    prediction_);
    return prediction_.data();
  }

 private:
  void write(size_t input, const float* from) {
    const TensorDesc& desc = network_.plan.desc(network_.inputs[input].value);
    std::array<std::vector<int64_t>, 5> terms;
    for (int d = 0; d < 5; ++d) terms[static_cast<size_t>(d)] = desc.layout.terms(desc.shape, d);
    const auto copy = [&](auto* to) {
      for (const int64_t z : terms[2])
        for (const int64_t y : terms[3])
          for (const int64_t x : terms[4])
            to[z + y + x] = std::remove_cvref_t<decltype(*to)>(*from++);
    };
    if (desc.dtype == DType::bf16)
      copy(reinterpret_cast<bf16*>(memory_[input].data()));
    else
      copy(reinterpret_cast<float*>(memory_[input].data()));
  }

  const train::EvaluationNetwork& network_;
  std::unique_ptr<plan::Executor> executor_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<float> prediction_;
};

std::array<int64_t, 3> three(const std::vector<int64_t>& axes) {
  return {axes[0], axes[1], axes[2]};
}

/// Reports progress every few seconds.
class FillNews {
 public:
  void operator()(const train::FillCounts& counts) {
    const auto now = std::chrono::steady_clock::now();
    if (now - reported_ < std::chrono::seconds(5)) return;
    reported_ = now;
    log::info("{} objects after {} fields of view", counts.objects, counts.looks);
  }

 private:
  std::chrono::steady_clock::time_point reported_ = std::chrono::steady_clock::now();
};

void write_objects(const std::filesystem::path& output, const data::Volume& volume,
                   const std::vector<int32_t>& objects) {
  const data::RowArray array{.name = "segmentation",
                             .type = data::ElementType::i32,
                             .shape = {volume.extents.begin(), volume.extents.end()},
                             .dimensions = {"z", "y", "x"}};
  const auto writer = data::open_row_writer(output, array, "--output");
  writer->append(objects.data(), volume.extents[0]);
  writer->close();
}

void print_scores(const data::Volume& volume, const std::vector<int32_t>& objects) {
  const train::SegmentationScore s = train::score_segmentation(objects, volume.labels);
  fmt::print(
      "against its labels: VOI split {:.4f} merge {:.4f} bits, adapted Rand error {:.4f}, F1 "
      "{:.4f} ({} of {} objects found, {} segments)\n",
      s.voi_split, s.voi_merge, s.adapted_rand, s.f1, s.found, s.objects, s.segments);
}

}  // namespace

int trace_volume(const TracedFile& file, const GivenNames& given, const train::FoundWeights& found,
                 config::RunConfig& config, const EvaluationRanks& ranks) {
  if (ranks.communicator().size() > 1)
    throw ConfigError("a volume is traced by one rank: leave --ranks and parallel.spatial out");
  std::error_code unlike;
  if (std::filesystem::equivalent(file.input, file.output, unlike))
    throw ConfigError(
        fmt::format("--output: {} is the file that --input names: choose another "
                    "name",
                    file.output.string()));
  const data::VolumeArrays arrays =
      data::volume_arrays(data::parse_field_lines(config.data.fields));
  const bool known = data::has_labels(file.input, arrays);
  const data::Volume volume = data::read_volume(file.input, arrays, known);
  const FieldsOfView fields(volume.element, config.tracing.fov);
  const ComputeBackend compute = compute_backend(config);
  const backend::Backend& backend = compute.backend();
  const auto network =
      train::compile_evaluation(train::model_spec(config, fields, 1), train::split_settings(config),
                                backend, ranks.communicator(), plan_options_for(config, found));
  if (std::ranges::none_of(network->inputs,
                           [](const models::GraphInput& input) { return input.field == "seed"; }))
    throw ConfigError(
        fmt::format("model '{}' reads no seed: it cannot trace a volume; train "
                    "model.name = \"ffn\"",
                    config.model.name));
  train::Weights weights(network->plan.variables, 1);
  import_weights(given, found, weights);
  Look look(*network, backend);
  look.bind(weights.parameters(), weights.statistics(0));

  const std::vector<float> image = stepped_image(volume, config);
  const train::VolumeView view{volume.extents, image};
  const train::FillSpec fill{.fov = three(config.tracing.fov),
                             .deltas = three(config.tracing.deltas),
                             .move_threshold = config.tracing.move_threshold,
                             .segment_threshold = config.tracing.segment_threshold,
                             .min_segment = config.tracing.min_segment,
                             .settle_above = config.tracing.settle_above,
                             .join_above = config.tracing.join_above};
  const auto seeds = config.tracing.seed_points == config::SeedPoints::grid
                         ? train::grid_points(view.extents, fill.deltas)
                         : train::distance_peaks(view);
  const auto start = std::chrono::steady_clock::now();
  const train::Filled filled = train::flood_fill(fill, view, seeds, std::ref(look), FillNews());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_objects(file.output, volume, filled.objects);
  fmt::print(
      "{}: {} objects from {} seeds by {} fields of view in {:.1f} s; {} parts were joined, {} "
      "were "
      "too small, {} seeds too weak\n",
      file.output.string(), filled.counts.objects, seeds.size(), filled.counts.looks, seconds,
      filled.counts.joined, filled.counts.small, filled.counts.weak);
  if (known) print_scores(volume, filled.objects);
  return 0;
}

}  // namespace tutti::cli
