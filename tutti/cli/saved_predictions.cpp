#include "tutti/cli/saved_predictions.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/picture.h"
#include "tutti/data/format/row_writer.h"
#include "tutti/train/settings.h"

namespace tutti {
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

/// One sample as the network sees it, in the plain layout.
class SeenSample {
 public:
  explicit SeenSample(const SavedPredictions& saved)
      : saved_(saved), sample_(saved.dataset.fields()),
        writer_(sample_writer(saved.config, saved.dataset, plain_fields(saved))) {
    for (size_t i = 0; i < writer_.size(); ++i) memory_.emplace_back(writer_.desc(i).bytes());
  }
  void read(int64_t index) {
    saved_.dataset.read(index, sample_);
    std::vector<void*> tensors;
    for (std::vector<std::byte>& tensor : memory_) tensors.push_back(tensor.data());
    writer_.write(sample_, std::nullopt, index, 0, tensors);
  }
  const float* input() const { return reinterpret_cast<const float*>(memory_[0].data()); }
  const float* numbers() const { return reinterpret_cast<const float*>(memory_[1].data()); }
  const int32_t* classes() const { return reinterpret_cast<const int32_t*>(memory_[1].data()); }
  Shape input_shape() const { return sample_shape(writer_.desc(0).shape); }
  int64_t target_elements() const { return writer_.desc(1).elements(); }

 private:
  static Shape sample_shape(const Shape& batch) {
    return Shape(std::span(batch.begin() + 1, batch.end()));
  }
  static std::vector<data::BatchField> plain_fields(const SavedPredictions& saved) {
    std::vector<data::BatchField> fields = saved.network.batch();
    fields = {fields.front(), fields[saved.network.inputs.size()]};
    for (size_t i = 0; i < 2; ++i) {
      std::vector<int64_t> extents(fields[i].desc.shape.begin(), fields[i].desc.shape.end());
      extents.front() = 1;
      fields[i].desc.shape = Shape(std::span<const int64_t>(extents));
      fields[i].desc.layout = Layout::plain();
      fields[i].rows.reset();
      if (i == 0) fields[i].desc.dtype = DType::f32;
    }
    return fields;
  }

  const SavedPredictions& saved_;
  data::Sample sample_;
  data::SampleWriter writer_;
  std::vector<std::vector<std::byte>> memory_;
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

std::vector<Panel> panels_of(const SavedPredictions& saved, const SeenSample& seen,
                             const float* y) {
  const Shape shape = seen.input_shape();
  std::vector<Panel> panels;
  const int64_t channels = shape.rank() == 4 ? std::min<int64_t>(shape[0], 4) : 1;
  for (int64_t c = 0; c < channels; ++c)
    panels.push_back({.sheet = sheet_of(seen.input(), shape, c)});
  if (*saved.model.task != TaskKind::segment || shape.rank() != 3) return panels;
  Sheet truth{.height = shape[1], .width = shape[2]}, guess = truth;
  truth.values.assign(seen.classes(), seen.classes() + seen.target_elements());
  guess.values = largest(y, saved.model.classes, shape[1] * shape[2]);
  panels.push_back({.sheet = std::move(truth), .scale = false});
  panels.push_back({.sheet = std::move(guess), .scale = false});
  return panels;
}

}  // namespace

void save_predictions(const std::filesystem::path& folder, const SavedPredictions& saved) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("{}: cannot make the folder: {}", folder.string(), failed.message()));
  save_fields(folder, saved);
  const Shape& batch = saved.network.plan.desc(saved.network.predictions.front()).shape;
  const Shape sample(std::span(batch.begin() + 1, batch.end()));
  const auto writer =
      data::open_npy_rows(folder / "prediction.npy", {.shape = extents_of(saved.samples, sample)});
  writer->append(saved.predictions.data(), saved.samples);
  writer->close();

  SeenSample seen(saved);
  const bool numbers = *saved.model.task == TaskKind::regress;
  std::vector<float> truth;
  for (int64_t i = 0; i < saved.samples && (numbers || i < kPictures); ++i) {
    seen.read(i);
    if (numbers) truth.insert(truth.end(), seen.numbers(), seen.numbers() + seen.target_elements());
    if (i >= kPictures) continue;
    const float* y = saved.predictions.data() + i * sample.elements();
    side_by_side(panels_of(saved, seen, y)).save(folder / fmt::format("sample_{:04}.png", i));
  }
  if (numbers) scatter(truth, saved.predictions).save(folder / "scatter.png");
}

}  // namespace tutti
