#include "tutti/cli/infer/saved_predictions.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/infer/picture.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/models/registry.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

constexpr int64_t kPictures = 16;

std::vector<int64_t> extents_of(int64_t samples, const Shape& sample) {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return extents;
}

void save_fields(const std::filesystem::path& folder, const SavedPredictions& saved) {
  data::Sample sample(saved.dataset.fields());
  std::vector<std::unique_ptr<data::RowWriter>> writers;
  for (const data::Field& field : saved.dataset.fields())
    writers.push_back(data::open_npy_rows(
        folder / (field.name + ".npy"),
        {.type = field.element, .shape = extents_of(saved.samples, field.shape)}));
  for (int64_t i = 0; i < saved.samples; ++i) {
    saved.dataset.read(i, sample);
    for (size_t f = 0; f < writers.size(); ++f) writers[f]->append(sample.at(f), 1);
  }
  for (const auto& writer : writers) writer->close();
}

/// One sample as the network reads it, in the plain layout.
class SeenSample {
 public:
  explicit SeenSample(const SavedPredictions& saved)
      : saved_(saved), sample_(saved.dataset.fields()),
        writer_(train::sample_writer(saved.config, saved.dataset, plain_fields(saved))) {
    for (size_t i = 0; i < writer_.size(); ++i) memory_.emplace_back(writer_.desc(i).bytes());
    back_.assign(memory_.size(), false);
    for (size_t o = 0; o < saved.network.target_of.size(); ++o)
      if (saved.network.of_data[o]) back_[truth_at(o)] = true;
  }
  void read(int64_t index) {
    saved_.dataset.read(index, sample_);
    std::vector<void*> tensors;
    for (std::vector<std::byte>& tensor : memory_) tensors.push_back(tensor.data());
    writer_.write(sample_, std::nullopt, index, 0, tensors);
    for (size_t i = 0; i < memory_.size(); ++i)
      if (back_[i])
        writer_.values(i).invert(
            {reinterpret_cast<float*>(memory_[i].data()), memory_[i].size() / sizeof(float)});
  }
  /// Returns the first input.
  const float* input() const { return reinterpret_cast<const float*>(memory_[0].data()); }
  Shape input_shape() const { return sample_of(writer_.desc(0).shape); }
  /// The truth in the type of prediction `output`: f32 in the units of the data, or i32.
  const void* truth(size_t output) const { return memory_[truth_at(output)].data(); }
  const TensorDesc& truth_desc(size_t output) const { return writer_.desc(truth_at(output)); }

  static Shape sample_of(const Shape& batch) {
    return Shape(std::span(batch.begin() + 1, batch.end()));
  }

 private:
  size_t truth_at(size_t output) const {
    return saved_.network.inputs.size() + saved_.network.target_of[output];
  }
  static std::vector<data::BatchField> plain_fields(const SavedPredictions& saved) {
    std::vector<data::BatchField> fields = saved.network.batch();
    for (size_t i = 0; i < fields.size(); ++i) {
      std::vector<int64_t> extents(fields[i].desc.shape.begin(), fields[i].desc.shape.end());
      extents.front() = 1;
      fields[i].desc.shape = Shape(std::span<const int64_t>(extents));
      fields[i].desc.layout = Layout::plain();
      fields[i].rows.reset();
      if (i < saved.network.inputs.size()) fields[i].desc.dtype = DType::f32;
    }
    return fields;
  }

  const SavedPredictions& saved_;
  data::Sample sample_;
  data::SampleWriter writer_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<bool> back_;  // by value: convert it to the units of the data
};

/// Channel `c` of [C, H, W], or its middle slice of [C, D, H, W].
Sheet sheet_of(const float* x, const Shape& shape, int64_t c) {
  const int rank = shape.rank();
  Sheet sheet{.height = rank > 1 ? shape[rank - 2] : 1, .width = shape[rank - 1]};
  const int64_t area = sheet.height * sheet.width;
  const int64_t depth = rank == 4 ? shape[1] : 1;
  const float* from = x + (c * depth + depth / 2) * area;
  sheet.values.assign(from, from + area);
  return sheet;
}

/// The largest of K outputs at each position of [K, positions].
std::vector<float> largest(const float* y, int64_t outputs, int64_t positions) {
  std::vector<float> classes(static_cast<size_t>(positions), 0);
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t k = 1; k < outputs; ++k)
      if (y[k * positions + p] >
          y[static_cast<int64_t>(classes[static_cast<size_t>(p)]) * positions + p])
        classes[static_cast<size_t>(p)] = static_cast<float>(k);
  return classes;
}

std::vector<Panel> panels_of(models::TaskKind task, const Shape& prediction, const SeenSample& seen,
                             const float* y) {
  const Shape shape = seen.input_shape();
  std::vector<Panel> panels;
  const int64_t channels = shape.rank() == 4 ? std::min<int64_t>(shape[0], 4) : 1;
  for (int64_t c = 0; c < channels; ++c)
    panels.push_back({.sheet = sheet_of(seen.input(), shape, c)});
  if (task == models::TaskKind::regress && prediction.rank() == 3) {
    panels.push_back({.sheet = sheet_of(static_cast<const float*>(seen.truth(0)), prediction, 0)});
    panels.push_back({.sheet = sheet_of(y, prediction, 0)});
  }
  if (task != models::TaskKind::segment || prediction.rank() != 3) return panels;
  Sheet truth{.height = prediction[1], .width = prediction[2]}, guess = truth;
  const auto* classes = static_cast<const int32_t*>(seen.truth(0));
  const int64_t positions = truth.height * truth.width;
  truth.values.assign(classes, classes + positions);
  guess.values = largest(y, prediction[0], positions);
  panels.push_back({.sheet = std::move(truth), .scale = false});
  panels.push_back({.sheet = std::move(guess), .scale = false});
  return panels;
}

Shape prediction_shape(const SavedPredictions& saved, size_t output) {
  return SeenSample::sample_of(saved.network.plan.desc(saved.network.predictions[output]).shape);
}

std::unique_ptr<data::RowWriter> rows_named(const std::filesystem::path& file, size_t output,
                                            const SavedPredictions& saved, DType type,
                                            const Shape& sample) {
  const std::string& name = saved.network.names[output];
  RowAttributes attributes = attributes_of(saved.source, name);
  if (file.stem() == "truth") attributes["values"].text = "what the network should predict";
  return data::open_npy_rows(
      path_of_output(file, name),
      {.name = file.stem().string(),
       .type = type == DType::i32 ? data::ElementType::i32 : data::ElementType::f32,
       .shape = extents_of(saved.samples, sample),
       .attributes = std::move(attributes),
       .columns = row_columns(saved.dataset.origins(), saved.samples)});
}

void save_outputs(const std::filesystem::path& folder, const SavedPredictions& saved) {
  for (size_t o = 0; o < saved.predictions.size(); ++o) {
    const auto writer =
        rows_named(folder / "prediction.npy", o, saved, DType::f32, prediction_shape(saved, o));
    writer->append(saved.predictions[o].data(), saved.samples);
    writer->close();
  }
}

/// Saves truth.npy and the pictures, which need the samples as the network reads them.
void save_seen(const std::filesystem::path& folder, const SavedPredictions& saved) {
  SeenSample seen(saved);
  std::vector<std::unique_ptr<data::RowWriter>> writers;
  for (size_t o = 0; o < saved.network.target_of.size(); ++o)
    writers.push_back(rows_named(folder / "truth.npy", o, saved, seen.truth_desc(o).dtype,
                                 SeenSample::sample_of(seen.truth_desc(o).shape)));
  const Shape sample = prediction_shape(saved, 0);
  const models::TaskKind task = *models::objectives_of(saved.model).front().task;
  std::vector<float> numbers;
  for (int64_t i = 0; i < saved.samples; ++i) {
    seen.read(i);
    for (size_t o = 0; o < writers.size(); ++o) writers[o]->append(seen.truth(o), 1);
    if (task == models::TaskKind::regress) {
      const auto* truth = static_cast<const float*>(seen.truth(0));
      numbers.insert(numbers.end(), truth, truth + seen.truth_desc(0).elements());
    }
    if (i >= kPictures) continue;
    const float* y = saved.predictions[0].data() + i * sample.elements();
    side_by_side(panels_of(task, sample, seen, y))
        .save(folder / fmt::format("sample_{:04}.png", i));
  }
  for (const auto& writer : writers) writer->close();
  if (task == models::TaskKind::regress)
    scatter(numbers, saved.predictions[0]).save(folder / "scatter.png");
}

}  // namespace

std::filesystem::path path_of_output(std::filesystem::path path, const std::string& name) {
  if (!name.empty()) path.replace_extension("." + name + path.extension().string());
  return path;
}

void require_output(const std::filesystem::path& file, const std::string& key) {
  data::require_row_ending(file, key);
  const std::filesystem::path folder = file.parent_path();
  std::error_code unknown;
  if (!folder.empty() && !std::filesystem::is_directory(folder, unknown))
    throw IoError(fmt::format("{}: {} cannot be written: there is no folder {}; make it first", key,
                              file.string(), folder.string()));
}

void require_empty_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::exists(folder, failed) && !std::filesystem::is_empty(folder, failed))
    throw ConfigError(fmt::format(
        "--save-predictions: {} is not an empty folder: name a new one, or empty it first",
        folder.string()));
}

void save_predictions(const std::filesystem::path& folder, const SavedPredictions& saved) {
  for (const data::Field& field : saved.dataset.fields())
    if (field.name == "prediction" || field.name == "truth")
      throw ConfigError(fmt::format(
          "--save-predictions: {}.npy would be two files: call the field '{}' otherwise",
          field.name, field.name));
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("{}: cannot make the folder: {}", folder.string(), failed.message()));
  save_fields(folder, saved);
  save_outputs(folder, saved);
  save_seen(folder, saved);
}

}  // namespace tutti::cli
