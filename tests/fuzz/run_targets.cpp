#include <xxhash.h>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/data/data_inspect.h"
#include "tutti/cli/job/machine_file.h"
#include "tutti/comm/schedule/selection.h"
#include "tutti/keep/checkpoint_folder.h"
#include "tutti/keep/manifest.h"
#include "tutti/keep/rank_file.h"
#include "tutti/keep/safetensors.h"
#include "tutti/models/block/model.h"
#include "tutti/models/registry.h"
#include "tutti/plan/choices.h"
#include "tutti/trace/record.h"
#include "tutti/train/network/optimizer.h"
#include "tutti/train/network/table_files.h"
#include "tutti/train/network/weights.h"

namespace tutti::fuzz {
namespace {

void safetensors(Bytes bytes) {
  const keep::SafetensorsFile file(as_file("x.safetensors", bytes));
  for (const auto& entry : file.entries()) file.read_as_f32(entry);
}

/// Returns the variables of a small network: parameters in each form of files, one of them frozen,
/// a statistic, a table of which it has the middle rows, and the state of the table's update.
plan::Variables small_network() {
  plan::Variables variables;
  variables.parameters = {
      {"a", {DType::f32, {2, 3, 1}, {}}, 0, {.stored = graph::Init::Stored::transposed}},
      {"b", {DType::f32, {16}, {}}, 64, {}},
      {"c", {DType::f32, {2, 2, 1}, {}}, 128, {.stored = graph::Init::Stored::matrix}}};
  variables.statistics = {{"d", {DType::f32, {3}, {}}, 0, {}}};
  variables.state_kinds = {"momentum", std::string(train::kAverageState)};
  variables.parameter_bytes = 192;
  variables.trained_bytes = 128;
  variables.statistic_bytes = 64;
  variables.tables = {{.variable = {"t", {DType::f32, {2, 3}, {}}, 0, {}}, .rows = {1, 4}},
                      {.variable = {"t.sum", {DType::f32, {2, 1}, {}}, 64, {}},
                       .rows = {1, 4},
                       .kept_by_update = true}};
  variables.table_bytes = 128;
  return variables;
}

/// Reads into a network: as a file of weights, of the optimizer's state, and of a checkpoint's
/// rank.
void weights(Bytes bytes) {
  static const plan::Variables kNetwork = small_network();
  static const keep::RankFiles kRankFiles{.count = 1, .id = "i"};
  static const ScratchDirectory kCheckpoint;
  static const bool kMade = [] {
    log::configure(log::Level::error, 0, 1);
    std::filesystem::create_directory(kCheckpoint.path() / keep::kRankFolder);
    kCheckpoint.write(keep::kManifest,
                      keep::to_json({.info = {}, .files = {}, .rank_files = kRankFiles}));
    return true;
  }();
  CHECK(kMade);
  kCheckpoint.write(fmt::format("{}/0.safetensors", keep::kRankFolder), bytes);
  const keep::SafetensorsFile file(keep::rank_file_path(kCheckpoint.path(), 0));
  const keep::SafetensorsFile* const files[] = {&file};
  const train::ArenaRange kept[] = {{0, 20}, {100, 128}};
  train::Weights same(kNetwork, 1), apart(kNetwork, 2, train::Weights::Replicas::apart);
  answer([&] { same.import_model(file); });
  answer([&] { same.import_state(file, kept); });
  answer([&] { same.import_average(file, kept); });
  answer([&] { same.import_raw(file, false); });
  answer([&] { same.import_named_statistics(file, 0, 1); });
  answer([&] { apart.import_rows(files, 1, 2); });
  answer([&] { train::read_tables(file, kCheckpoint.path(), same); });
  answer([&] { keep::verify_rank_file(kCheckpoint.path(), kRankFiles, 0); });
}

void record(Bytes bytes) {
  const std::string path = as_file("record.jsonl", bytes);
  answer([&] { trace::read_run(path); });
  answer([&] { trace::read_readable(path); });
  answer([&] { trace::read_run_id(path); });
}

/// Reads the bytes unchanged, and with the correct checksum, which no search would find.
void manifest(Bytes bytes) {
  answer([&] { keep::read_manifest(as_file("manifest.json", bytes)); });
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
  }
  keep::read_manifest(
      as_file("manifest.json", {reinterpret_cast<const uint8_t*>(mended.data()), mended.size()}));
}

void config(Bytes bytes) {
  cli::read_config({.file = as_file("config.toml", bytes), .environment = {}, .flags = {}});
}

/// Reads the layers of a configuration, up to the graph of a network that reads images.
void layers(Bytes bytes) {
  const cli::ResolvedConfig read =
      cli::read_config({.file = as_file("config.toml", bytes), .environment = {}, .flags = {}});
  models::ModelSpec spec{.name = "layers", .input = {3, 16, 16}, .classes = 10};
  spec.layers = read.config.model.layer;
  models::build_model(spec);
}

/// Reads a machine for replays, and estimates a step with its numbers.
void machine(Bytes bytes) {
  const comm::Machine machine = cli::read_machine(as_file("machine.toml", bytes));
  for (const int devices : {1, 3, 1 << 20}) {
    machine.compute_seconds(1e12, devices - 1, 1, 1);
    machine.message_seconds(1e6, 0, devices - 1);
    machine.allreduce_seconds(1e6, devices);
  }
}

/// Reads a table of algorithms, and checks that its printed form has the same meaning.
void algorithms(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const std::string printed = comm::Selection::parse(text, "input").to_string();
  CHECK(comm::Selection::parse(printed, "printed").to_string() == printed, "{}", printed);
}

/// Reads measured kernels, as a tuning file and a checkpoint hold them.
void choices(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const std::string printed = plan::Choices::parse(text).to_string();
  CHECK(plan::Choices::parse(printed).to_string() == printed, "{}", printed);
}

/// The first byte selects the file's name.
void inspect(Bytes bytes) {
  static constexpr const char* kNames[] = {"x.npy", "x.npz",      "x.toml", "x.dcd", "x.xtc",
                                           "x.trr", "x.nc",       "x.tif",  "x.tar", "x.txt",
                                           "x.csv", "x.tfrecord", "x.gz",   "x",     "x.tokens"};
  if (bytes.empty()) return;
  const auto path = as_file(kNames[bytes[0] % std::size(kNames)], bytes.subspan(1));
  answer([&] { cli::inspect_data(path); });
  std::filesystem::remove(path);  // otherwise it would be one of the folder's files
}

constexpr Target kTargets[] = {{"safetensors", safetensors}, {"weights", weights},
                               {"record", record},           {"manifest", manifest},
                               {"config", config},           {"layers", layers},
                               {"machine", machine},         {"algorithms", algorithms},
                               {"choices", choices},         {"inspect", inspect}};

}  // namespace

std::span<const Target> run_targets() { return kTargets; }

}  // namespace tutti::fuzz
