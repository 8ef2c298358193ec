// cudnn_ways [--model NAME]... [--types f32,bf16] [--check FILE]:
// asks cuDNN, without a GPU, for the convolutions of registered models on the devices that
// devices/*.json describe, and prints which of its ways would be taken: the first one that is
// offered within 256 MiB of workspace, else none. --check: compares them with the lines of a file
// that was printed before; exit code 77 if that is of another cuDNN, 1 if they differ.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/gpu/cudnn/convolutions.h"
#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/cudnn.h"
#include "tutti/models/registry.h"

namespace tutti::test {
namespace {

using device::Cudnn, device::LayerProduct, device::LibraryConvolution, device::LibraryType,
    device::LibraryWay;

constexpr size_t kMostWorkspace = size_t{256} << 20;  // as backend/gpu/library allows
constexpr int kOther = 77;

struct Type {
  LibraryType type;
  std::string_view name;
};
constexpr Type kTypes[] = {{LibraryType::f32, "f32"},
                           {LibraryType::tf32, "tf32"},
                           {LibraryType::bf16, "bf16"},
                           {LibraryType::f16, "f16"}};
constexpr std::pair<LayerProduct, std::string_view> kProducts[] = {
    {LayerProduct::y, "y"}, {LayerProduct::x, "x"}, {LayerProduct::w, "w"}};

struct Asked {
  std::vector<std::string> models;
  std::vector<Type> types;
  std::string kept;  ///< file to compare with; empty: print
};

/// By file name, without its ending.
using Devices = std::map<std::string, Cudnn>;

/// The ways that are taken for a product of a convolution, by "type@device".
using Taken = std::map<std::string, std::string>;
/// By the convolution's words and the product's name, "n128 ... y".
using Lines = std::map<std::string, Taken>;

/// Returns whether a list "a,b" has an entry.
bool lists(const std::string& list, std::string_view entry) {
  return ("," + list + ",").find(fmt::format(",{},", entry)) != std::string::npos;
}

Devices described_devices() {
  Devices devices;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_DEVICES)) {
    std::ifstream file(entry.path());
    const std::string name = entry.path().stem();
    devices.try_emplace(
        name,
        device::CudnnDevice{.words = name, .properties = {std::istreambuf_iterator(file), {}}});
  }
  return devices;
}

/// Returns each reason with the number of ways that it holds for.
std::string refusals(const std::vector<LibraryWay>& ways) {
  std::vector<std::pair<std::string, int>> counts;
  for (const LibraryWay& way : ways) {
    const auto same = std::ranges::find(counts, way.refusal, &std::pair<std::string, int>::first);
    if (same == counts.end())
      counts.emplace_back(way.refusal, 1);
    else
      ++same->second;
  }
  std::string text;
  for (const auto& [reason, count] : counts)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", reason, count);
  std::ranges::replace(text, '|', '/');  // which parts a line
  return text;
}

std::string taken_of(const std::vector<LibraryWay>& ways) {
  size_t least = SIZE_MAX;
  for (const LibraryWay& way : ways) {
    if (!way.refusal.empty()) continue;
    least = std::min(least, way.workspace_bytes);
    if (way.workspace_bytes <= kMostWorkspace)
      return fmt::format("{} | {}", way.name, way.workspace_bytes);
  }
  return "gpu:products | " +
         (least < SIZE_MAX ? fmt::format("workspace of {} at least", least) : refusals(ways));
}

/// Notes that `what` is taken by `who`, too, in the order in which it is first taken.
void add_to(std::vector<std::pair<std::string, std::string>>& list, const std::string& what,
            const std::string& who) {
  for (auto& [same, names] : list)
    if (same == what) {
      names += "," + who;
      return;
    }
  list.emplace_back(what, who);
}

/// Asks for the three products of a convolution.
void ask(Lines& lines, Devices& devices, const std::vector<Type>& types, LibraryConvolution c) {
  const std::string words = words_of(c);
  for (const auto& [makes, product] : kProducts) {
    Taken& taken = lines[fmt::format("{} {}", words, product)];
    for (const Type& type : types)
      for (auto& [name, cudnn] : devices) {
        c.makes = makes;
        c.type = type.type;
        taken[fmt::format("{}@{}", type.name, name)] = taken_of(cudnn.ways(c));
      }
  }
}

/// Prints a line for each type, and one for types that are alike: " y f32,tf32 | WAY | BYTES", or
/// with devices that differ " y bf16 a100 | WAY | BYTES || h100,h200 | WAY | BYTES".
void print(const std::string& product, const Taken& taken, const Devices& devices) {
  std::vector<std::pair<std::string, std::string>> lines;  // texts, and their types
  for (const Type& type : kTypes) {
    std::vector<std::pair<std::string, std::string>> ways;  // texts, and their devices
    for (const auto& [device, cudnn] : devices)
      add_to(ways, taken.at(fmt::format("{}@{}", type.name, device)), device);
    std::string line;
    for (const auto& [what, names] : ways)
      line += fmt::format("{}{} | {}", line.empty() ? "" : " ||",
                          ways.size() == 1 ? "" : " " + names, what);
    add_to(lines, line, std::string(type.name));
  }
  for (const auto& [what, types] : lines) fmt::print(" {} {}{}\n", product, types, what);
}

void print_all(Devices& devices, const Asked& asked) {
  fmt::print(
      "# {}\n"
      "# Written by cudnn_ways (tests/gpu/cudnn/README.md): ways that would be taken, and their "
      "workspace.\n"
      "# Devices: {}, from tests/gpu/devices/; the H200 is described from the H100's.\n",
      devices.begin()->second.version(), fmt::join(std::views::keys(devices), ", "));
  std::set<std::string> printed;
  for (const std::string& model : asked.models) {
    std::vector<LibraryConvolution> convolutions = convolutions_of(model);
    const size_t all = convolutions.size();
    std::erase_if(convolutions,
                  [&](const LibraryConvolution& c) { return !printed.insert(words_of(c)).second; });
    fmt::print("# {}, {} samples: {} convolutions, {} of them above\n", model, batch_of(model), all,
               all - convolutions.size());
    for (const LibraryConvolution& c : convolutions) {
      const std::string words = words_of(c);
      Lines lines;
      ask(lines, devices, asked.types, c);
      fmt::print("{}\n", words);
      for (const auto& [makes, product] : kProducts)
        print(std::string(product), lines.at(fmt::format("{} {}", words, product)), devices);
    }
    std::fflush(stdout);
  }
}

/// Adds what a line of print() says of a convolution.
void read_line(std::string line, const std::string& words, const Devices& devices, Lines& lines) {
  std::istringstream start(line.substr(0, line.find(" | ")));
  std::string product, types;
  start >> product >> types;
  Taken& taken = lines[fmt::format("{} {}", words, product)];
  for (line = line.substr(2 + product.size() + types.size()); !line.empty();) {
    const size_t bar = line.find(" | "), end = line.find(" || ");
    const std::string on = line.substr(0, bar);
    for (const Type& type : kTypes)
      for (const auto& [device, cudnn] : devices)
        if (lists(types, type.name) && (on.empty() || lists(on.substr(1), device)))
          taken[fmt::format("{}@{}", type.name, device)] = line.substr(bar + 3, end - bar - 3);
    line = end == std::string::npos ? "" : line.substr(end + 3);
  }
}

/// Reads what print_all() has printed, and its first line without "# ".
std::pair<std::string, Lines> read(const std::string& path, const Devices& devices) {
  std::ifstream file(path);
  std::string line, version, words;
  std::getline(file, version);
  Lines lines;
  while (std::getline(file, line)) {
    if (line.starts_with(" "))
      read_line(line, words, devices, lines);
    else
      words = line;
  }
  return {version.substr(std::min<size_t>(2, version.size())), std::move(lines)};
}

int check(Devices& devices, const Asked& asked) {
  const auto [version, kept] = read(asked.kept, devices);
  const std::string here = devices.begin()->second.version();
  if (version != here) {
    fmt::print("not compared: {} is of {}, and here is {}\n", asked.kept, version, here);
    return kOther;
  }
  Lines lines;
  for (const std::string& model : asked.models)
    for (const LibraryConvolution& c : convolutions_of(model)) ask(lines, devices, asked.types, c);
  int compared = 0, different = 0;
  for (const auto& [words, taken] : lines)
    for (const auto& [place, what] : taken) {
      ++compared;
      const auto of = kept.find(words);
      const std::string before =
          of == kept.end() || !of->second.contains(place) ? "nothing" : of->second.at(place);
      if (before == what) continue;
      ++different;
      fmt::print("{} {}: {}, and was {}\n", words, place, what, before);
    }
  fmt::print("{} compared, {} differ\n", compared, different);
  return compared > 0 && different == 0 ? 0 : 1;
}

/// Reads the arguments. Returns whether they make sense.
bool read_arguments(int argc, char** argv, Asked& asked) {
  std::string types = "f32,tf32,bf16,f16";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--model")
      asked.models.emplace_back(argv[i + 1]);
    else if (flag == "--types")
      types = argv[i + 1];
    else if (flag == "--check")
      asked.kept = argv[i + 1];
    else
      return false;
  }
  for (const Type& type : kTypes)
    if (lists(types, type.name)) asked.types.push_back(type);
  if (asked.models.empty())
    for (const models::ModelInfo& model : models::models())
      if (!model.takes_layers) asked.models.push_back(model.name);
  return argc % 2 == 1 && !asked.types.empty() &&
         (!asked.kept.empty() || std::size(asked.types) == std::size(kTypes));
}

int run(int argc, char** argv) {
  Asked asked;
  if (!read_arguments(argc, argv, asked)) {
    fmt::print(stderr, "usage: cudnn_ways [--model NAME]... [--check FILE [--types f32,bf16]]\n");
    return 2;
  }
  Devices devices = described_devices();
  for (const auto& [name, cudnn] : devices)
    if (!cudnn.version().starts_with("cuDNN"))
      throw DeviceError(fmt::format("{}: {}", name, cudnn.version()));
  if (!asked.kept.empty()) return check(devices, asked);
  print_all(devices, asked);
  return 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) try {
  return tutti::test::run(argc, argv);
} catch (const std::exception& failed) {
  fmt::print(stderr, "cudnn_ways: {}\n", failed.what());
  return 1;
}
