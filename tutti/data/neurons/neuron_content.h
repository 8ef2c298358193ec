#pragma once
// NeuronContent holds the volumes of a data set and the seeds in them. It belongs to this process,
// or to a node, whose ranks then share one copy.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/neurons/seed_points.h"

namespace tutti::data {

/// Memory that one rank of a node fills and all of its ranks read.
class NodeMemory {
 public:
  struct Filled {
    std::string text;
    std::shared_ptr<const std::byte> memory;
  };
  using Take = std::function<std::byte*(size_t bytes)>;

  virtual ~NodeMemory() = default;
  /// One rank of each node calls `fill`, which takes memory once and returns a text that describes
  /// its contents. All ranks get both, or throw the exception of one of them. Collective.
  virtual Filled share(const std::function<std::string(const Take& take)>& fill) = 0;
};

/// A volume reduced to its arrays.
struct VolumeView {
  Voxels3 extents{};
  ElementType element = ElementType::u8;
  const uint8_t* image = nullptr;
  const uint32_t* labels = nullptr;
};

struct NeuronContent {
  std::vector<VolumeView> volumes;
  SeedPoints points;
  std::vector<std::string> left_out;   ///< errors of the volumes that could not be read
  std::shared_ptr<const void> keeper;  ///< owner of the memory that the views show
};

struct NeuronFiles {
  std::vector<std::filesystem::path> files;
  VolumeArrays arrays;
  SeedRule rule;
  int64_t quarantine = 0;  ///< volumes that may be left out
};

/// Reads the volumes and finds the seeds. `node`: null: this process reads for itself. BadFile and
/// ConfigError as for read_volume and SeedPoints; IoError if more volumes are bad than may be left
/// out.
std::shared_ptr<const NeuronContent> read_neurons(const NeuronFiles& files, NodeMemory* node);

}  // namespace tutti::data
