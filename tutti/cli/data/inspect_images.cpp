#include "tutti/cli/data/inspect_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/data/data_suggestion.h"
#include "tutti/config/config.h"
#include "tutti/data/images/coded_image.h"
#include "tutti/data/images/image_set.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool is_image_set(const fs::path& path) {
  const data::ImageSource source = data::image_source(path, "train");
  if (!source.tars.empty()) return true;
  return source.found() && data::has_class_folders(source.folder);
}

InspectedData inspect_images(const fs::path& path) {
  const auto train = data::open_image_set(path, "train", {}, {});
  const std::vector<std::string>& classes = train->fields()[1].class_names;
  std::vector<int64_t> heights, widths;
  data::Sample sample(train->fields());
  constexpr int64_t kLookedAt = 256;
  const int64_t looked = std::min(train->size(), kLookedAt);
  int64_t bytes = 0, png = 0;
  std::string damaged;
  for (int64_t i = 0; i < looked; ++i) {
    train->read(i * train->size() / looked, sample);
    bytes += std::ssize(sample.coded_at(0));
    try {
      const data::ImageSize size = data::image_size(sample.coded_at(0));
      heights.push_back(size.height);
      widths.push_back(size.width);
      png += data::is_png(sample.coded_at(0)) ? 1 : 0;
    } catch (const IoError& error) {
      damaged += fmt::format("  {} {}\n", sample.origin(), error.what());
    }
  }
  const auto range = [](const std::vector<int64_t>& values) {
    if (values.empty()) return std::string("unknown");
    const auto [least, greatest] = std::ranges::minmax(values);
    return least == greatest ? fmt::to_string(least) : fmt::format("{} to {}", least, greatest);
  };
  const auto shown = std::span(classes).first(std::min<size_t>(classes.size(), 12));
  const std::string names =
      fmt::format("{}{}", fmt::join(shown, ", "), shown.size() < classes.size() ? ", ..." : "");
  InspectedData report;
  report.listing = fmt::format("{}: {} training images of {} classes", path.string(), train->size(),
                               classes.size());
  bool judged = false;
  for (const char* part : {"validation", "test"})
    if (data::image_source(path, part).found()) {
      judged = true;
      report.listing +=
          fmt::format(", {} {} images", data::open_image_set(path, part, {}, {})->size(), part);
    }
  report.listing += fmt::format(
      "\n  image  coded image  height {}, width {}; {} kB each; {} JPEG and {} PNG of {} looked "
      "at\n  label  i32          0 to {}: {}\n{}",
      range(heights), range(widths), bytes / std::max<int64_t>(looked, 1) / 1000,
      std::ssize(heights) - png, png, looked, classes.size() - 1, names, damaged);
  // The crop does not enlarge most images; networks halve it five times.
  int64_t shorter = 256;
  for (size_t i = 0; i < heights.size(); ++i) shorter = std::min({shorter, heights[i], widths[i]});
  const int64_t crop = std::clamp<int64_t>(shorter * 7 / 8 / 32 * 32, 32, 224);
  const HeldOut held = judged ? HeldOut{"", train->size()} : held_out(train->size());
  report.configuration = fmt::format(
      "[data]\ndataset = \"imagenet\"\ndir = {}\n{}transforms = [\"image: resized-crop {}, flip "
      "x, divide 255, normalise\"]  # evaluation: the middle of the whole image\n\n[model]\nname = "
      "\"{}\"\n\n[batch]\nglobal = {}\n\n[run]\nepochs = 1\n",
      toml_of_path(fs::absolute(path).lexically_normal()), held.line, crop,
      crop < 128 ? "resnet20" : "resnet18", std::min<int64_t>(held.left, 16));
  return report;
}

}  // namespace tutti::cli
