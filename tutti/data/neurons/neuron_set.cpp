#include "tutti/data/neurons/neuron_set.h"

#include <cmath>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

Voxels3 wider(const NeuronSetSpec& spec) {
  Voxels3 extents = spec.fov;
  for (size_t i = 0; i < 3; ++i) extents[i] += 2 * spec.deltas[i];
  return extents;
}

SeedRule rule_of(const NeuronSetSpec& spec) {
  return {.surroundings = wider(spec),
          .min_object = spec.min_object,
          .bounds = spec.partitions,
          .seed = spec.seed};
}

}  // namespace

float logit(double p) { return static_cast<float>(std::log(p / (1 - p))); }

NeuronSet::NeuronSet(const NeuronSetSpec& spec)
    : spec_(spec), extents_(spec.fov), content_(read_neurons({.files = spec.files,
                                                              .arrays = volume_arrays(spec.fields),
                                                              .rule = rule_of(spec),
                                                              .quarantine = spec.quarantine},
                                                             spec.node)),
      size_(spec.count > 0 ? spec.count : content_->points.voxels()) {
  spec_.node = nullptr;  // valid only during opening
  describe_fields();
}

NeuronSet::NeuronSet(const NeuronSet& other, const Voxels3& extents)
    : spec_(other.spec_), extents_(extents), content_(other.content_), size_(other.size_) {
  describe_fields();
}

std::unique_ptr<NeuronSet> NeuronSet::canvases() const {
  return std::unique_ptr<NeuronSet>(new NeuronSet(*this, wider(spec_)));
}

void NeuronSet::describe_fields() {
  const Shape shape{1, extents_[0], extents_[1], extents_[2]};
  fields_ = {{.name = "image", .element = content_->volumes.front().element, .shape = shape},
             {.name = "label", .element = ElementType::u8, .shape = shape},
             {.name = "seed", .element = ElementType::f32, .shape = shape}};
  seed_.assign(static_cast<size_t>(product(extents_)), logit(kUnknown));
  seed_[static_cast<size_t>(((extents_[0] / 2) * extents_[1] + extents_[1] / 2) * extents_[2] +
                            extents_[2] / 2)] = logit(kSeed);
}

void NeuronSet::read(int64_t index, Sample& sample) const {
  const SeedPoint point = content_->points[index];
  const VolumeView& volume = content_->volumes[point.volume];
  const size_t element = size_of(volume.element);
  auto* image = static_cast<uint8_t*>(sample.own(0));
  auto* label = static_cast<uint8_t*>(sample.own(1));
  sample.show(2, seed_.data());
  const auto place = [&](int64_t z, int64_t y, int64_t x) {
    return static_cast<size_t>((z * volume.extents[1] + y) * volume.extents[2] + x);
  };
  const uint32_t own = volume.labels[place(point.at[0], point.at[1], point.at[2])];
  const auto row = static_cast<size_t>(extents_[2]);
  for (int64_t z = 0; z < extents_[0]; ++z)
    for (int64_t y = 0; y < extents_[1]; ++y) {
      const size_t from = place(point.at[0] - extents_[0] / 2 + z,
                                point.at[1] - extents_[1] / 2 + y, point.at[2] - extents_[2] / 2);
      std::memcpy(image, volume.image + from * element, row * element);
      for (size_t x = 0; x < row; ++x) label[x] = volume.labels[from + x] == own;
      image += row * element;
      label += row;
    }
}

}  // namespace tutti::data
