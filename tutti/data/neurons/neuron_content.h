#pragma once
// NeuronContent: the volumes that a data set's seeds lie in, and the seeds: of this process, or of
// a node, whose ranks then have them once.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/neurons/seed_points.h"

namespace tutti::data {

/// Memory that one rank of a node fills and all of them read.
class NodeMemory {
 public:
  struct Filled {
    std::string text;
    std::shared_ptr<const std::byte> memory;
  };
  using Take = std::function<std::byte*(size_t bytes)>;

  virtual ~NodeMemory() = default;
  /// One rank of each node does `fill`: it takes memory once, and returns a text about what it has
  /// put there. All ranks get both, or throw what one of them has thrown. Collective.
  virtual Filled share(const std::function<std::string(const Take& take)>& fill) = 0;
};

/// A volume of which only the arrays matter any more.
struct VolumeView {
  Voxels3 extents{};
  ElementType element = ElementType::u8;
  const uint8_t* image = nullptr;
  const uint32_t* labels = nullptr;
};

struct NeuronContent {
  std::vector<VolumeView> volumes;
  SeedPoints points;
  std::vector<std::string> left_out;   ///< what is wrong with volumes that could not be read
  std::shared_ptr<const void> keeper;  ///< of what the views show
};

struct NeuronFiles {
  std::vector<std::filesystem::path> files;
  VolumeArrays arrays;
  SeedRule rule;
  int64_t quarantine = 0;  ///< volumes that may be left out
};

/// `node`: null: this process reads for itself. BadFile, ConfigError as read_volume and SeedPoints;
/// IoError for one bad volume more than may be left out.
std::shared_ptr<const NeuronContent> read_neurons(const NeuronFiles& files, NodeMemory* node);

}  // namespace tutti::data
