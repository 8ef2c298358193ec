#include <xxhash.h>

#include <array>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tutti/base/json.h"
#include "tutti/cli/config.h"
#include "tutti/models/model.h"
#include "tutti/models/registry.h"
#include "tutti/trace/record.h"
#include "tutti/train/manifest.h"
#include "tutti/train/safetensors.h"

namespace tutti::fuzz {
namespace {

void safetensors(Bytes bytes) {
  answer([&] {
    const SafetensorsFile file(as_file("x.safetensors", bytes));
    for (const auto& entry : file.entries()) file.read_as_f32(entry);
  });
}

void record(Bytes bytes) {
  const std::string path = as_file("record.jsonl", bytes);
  answer([&] { read_run(path); });
  answer([&] { read_readable(path); });
  answer([&] { read_run_id(path); });
}

/// As it is, and with the checksum that it should have, which no search would find.
void manifest(Bytes bytes) {
  answer([&] { read_manifest(as_file("manifest.json", bytes)); });
  std::string mended;
  try {
    Json json = parse_json(std::string(bytes.begin(), bytes.end()));
    if (!json.is_object()) return;
    json.erase("manifest_xxh64");
    const std::string text = print_json(json);
    json["manifest_xxh64"] = fmt::format("{:016x}", XXH64(text.data(), text.size(), 0));
    mended = print_json(json);
  } catch (const Json::exception&) {
    return;
  } catch (const IoError&) {
    return;
  }
  answer([&] {
    read_manifest(
        as_file("manifest.json", {reinterpret_cast<const uint8_t*>(mended.data()), mended.size()}));
  });
}

void config(Bytes bytes) {
  answer([&] {
    read_config({.file = as_file("config.toml", bytes), .environment = {}, .flags = {}});
  });
}

/// The layers of a configuration, up to the graph of a network that reads images.
void layers(Bytes bytes) {
  answer([&] {
    const ResolvedConfig read =
        read_config({.file = as_file("config.toml", bytes), .environment = {}, .flags = {}});
    ModelSpec spec{.name = "layers", .input = {3, 16, 16}, .classes = 10};
    spec.layers = read.config.model.layer;
    build_model(spec);
  });
}

constexpr std::array<Target, 5> kTargets = {{{"safetensors", safetensors},
                                             {"record", record},
                                             {"manifest", manifest},
                                             {"config", config},
                                             {"layers", layers}}};

}  // namespace

std::span<const Target> run_targets() { return kTargets; }

}  // namespace tutti::fuzz
