#include "tutti/data/neurons/neuron_content.h"

#include <algorithm>
#include <span>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {
namespace {

constexpr size_t kAlignment = 64;

void require_one_type(const Volume& volume, const std::vector<Volume>& before) {
  if (!before.empty() && volume.element != before.front().element)
    throw BadFile("{}: its image is {}, that of {} {}: all volumes have one type", volume.name,
                  name_of(volume.element), before.front().name, name_of(before.front().element));
}

std::vector<Volume> read_volumes(const NeuronFiles& from, std::vector<std::string>& left_out) {
  std::vector<Volume> volumes;
  for (const std::filesystem::path& file : from.files) try {
      Volume volume = read_volume(file, from.arrays);
      require_one_type(volume, volumes);
      volumes.push_back(std::move(volume));
    } catch (const IoError& error) {
      if (std::ssize(left_out) >= from.quarantine) {
        if (from.quarantine == 0) throw;
        throw IoError(
            fmt::format("{}; data.quarantine goes on without {} bad volumes, and this is one more: "
                        "look at the data, or let it be larger",
                        error.what(), from.quarantine));
      }
      left_out.emplace_back(error.what());
      log::warn("left out, training goes on without this volume: {}", error.what());
    }
  if (volumes.empty())
    throw IoError(
        fmt::format("data.quarantine: none of the {} volumes can be read", from.files.size()));
  return volumes;
}

/// Places arrays one after the other, and says where each begins.
class Packing {
 public:
  /// Returns where the next array of that many bytes begins.
  size_t add(size_t bytes) {
    const size_t at = end_;
    end_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  size_t bytes() const { return end_; }

 private:
  size_t end_ = 0;
};

/// Copies everything into the node's memory. The text says where each array lies.
std::string put(const std::vector<Volume>& volumes, const SeedPoints& points,
                const std::vector<std::string>& left_out, const NodeMemory::Take& take) {
  Packing packing;
  Json text = {{"volumes", Json::array()}, {"parts", Json::array()}, {"left_out", left_out}};
  for (const Volume& volume : volumes)
    text["volumes"].push_back({{"extents", volume.extents},
                               {"element", static_cast<int>(volume.element)},
                               {"image", packing.add(volume.image.size())},
                               {"labels", packing.add(volume.labels.size() * sizeof(uint32_t))}});
  for (const std::span<const uint64_t> part : points.parts())
    text["parts"].push_back({{"first", packing.add(part.size_bytes())}, {"count", part.size()}});
  std::byte* memory = take(packing.bytes());
  const auto copy = [&](const Json& at, const auto& array) {
    std::ranges::copy(std::as_bytes(std::span(array)), memory + json_value<size_t>(at));
  };
  for (size_t v = 0; v < volumes.size(); ++v) {
    copy(text["volumes"][v]["image"], volumes[v].image);
    copy(text["volumes"][v]["labels"], volumes[v].labels);
  }
  for (size_t k = 0; k < points.parts().size(); ++k)
    copy(text["parts"][k]["first"], points.parts()[k]);
  return print_json(text);
}

std::shared_ptr<const NeuronContent> content_of(const NodeMemory::Filled& filled, uint64_t seed) {
  const Json text = parse_json(filled.text);
  const std::byte* memory = filled.memory.get();
  std::vector<VolumeView> volumes;
  std::vector<Voxels3> extents;
  for (const Json& volume : text.at("volumes")) {
    extents.push_back(volume.at("extents").get<Voxels3>());
    volumes.push_back(
        {.extents = extents.back(),
         .element = static_cast<ElementType>(json_value<int>(volume.at("element"))),
         .image = reinterpret_cast<const uint8_t*>(memory + json_value<size_t>(volume.at("image"))),
         .labels =
             reinterpret_cast<const uint32_t*>(memory + json_value<size_t>(volume.at("labels")))});
  }
  std::vector<std::span<const uint64_t>> parts;
  for (const Json& part : text.at("parts"))
    parts.emplace_back(
        reinterpret_cast<const uint64_t*>(memory + json_value<size_t>(part.at("first"))),
        json_value<size_t>(part.at("count")));
  return std::make_shared<const NeuronContent>(NeuronContent{
      std::move(volumes), SeedPoints(seed, std::move(extents), std::move(parts), filled.memory),
      text.at("left_out").get<std::vector<std::string>>(), filled.memory});
}

}  // namespace

std::shared_ptr<const NeuronContent> read_neurons(const NeuronFiles& files, NodeMemory* node) {
  std::vector<std::string> left_out;
  if (node != nullptr)
    return content_of(node->share([&](const NodeMemory::Take& take) {
      const std::vector<Volume> volumes = read_volumes(files, left_out);
      return put(volumes, SeedPoints(volumes, files.rule), left_out, take);
    }),
                      files.rule.seed);
  const auto own = std::make_shared<const std::vector<Volume>>(read_volumes(files, left_out));
  std::vector<VolumeView> volumes;
  for (const Volume& volume : *own)
    volumes.push_back({.extents = volume.extents,
                       .element = volume.element,
                       .image = volume.image.data(),
                       .labels = volume.labels.data()});
  return std::make_shared<const NeuronContent>(
      NeuronContent{std::move(volumes), SeedPoints(*own, files.rule), std::move(left_out), own});
}

}  // namespace tutti::data
