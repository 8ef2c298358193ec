#pragma once
// A NeuronSet has seeds in labelled volumes as samples. A sample is the surroundings of a seed:
//
//   image  as stored, [1, z, y, x]
//   label  u8, 1 where the voxel belongs to the seed's object, else 0
//   seed   f32, the initial knowledge, as logits: 0.95 in the middle and 0.05 elsewhere

#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/neurons/neuron_content.h"

namespace tutti::data {

/// Returns log(p / (1 - p)).
float logit(double p);
/// Probabilities where no network has looked yet, and at a seed.
inline constexpr double kUnknown = 0.05, kSeed = 0.95;

struct NeuronSetSpec {
  std::vector<std::filesystem::path> files{};
  std::vector<FieldLine> fields{};
  Voxels3 fov{33, 33, 33}, deltas{8, 8, 8};
  int64_t min_object = 1;
  std::vector<double> partitions{};
  int64_t count = 0;           ///< number of seeds; 0: one per voxel at which training may begin
  uint64_t seed = 1;           ///< seed of the draw
  int64_t quarantine = 0;      ///< volumes that may be left out if they cannot be read
  NodeMemory* node = nullptr;  ///< lets ranks of a node share volumes; used only while it opens
};

class NeuronSet final : public Dataset {
 public:
  /// BadFile and ConfigError as for read_volume and SeedPoints; IoError if more volumes are bad
  /// than may be left out.
  explicit NeuronSet(const NeuronSetSpec& spec);

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;

  const NeuronSetSpec& spec() const { return spec_; }
  /// Returns the errors of the volumes that were left out.
  const std::vector<std::string>& left_out() const { return content_->left_out; }
  /// Returns the same seeds with larger surroundings: all that a field of view sees when it moves
  /// once in each direction, which is its extents plus twice the moves.
  std::unique_ptr<NeuronSet> canvases() const;

 private:
  NeuronSet(const NeuronSet& other, const Voxels3& extents);
  void describe_fields();

  NeuronSetSpec spec_;
  Voxels3 extents_;
  std::shared_ptr<const NeuronContent> content_;  // shared with the canvases
  int64_t size_ = 0;
  std::vector<Field> fields_;
  std::vector<float> seed_;
};

}  // namespace tutti::data
