#include "tutti/keep/manifest.h"

#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/json_words.h"

namespace tutti::keep {
namespace {

// 1: without run_id, optimizer, state_kinds, settings. 2: ranks' own data lay in the state file.
constexpr int kSchema = 3;
constexpr const char* kChecksum = "manifest_xxh64";

std::string hex(uint64_t value) { return fmt::format("{:016x}", value); }

uint64_t from_hex(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size())
    throw IoError(fmt::format("'{}' is not a checksum", text));
  return value;
}

/// Hashes everything but the checksum itself, in the one form in which equal content in equal order
/// is printed: no spaces.
std::string checksum_of(Json json) {
  json.erase(kChecksum);
  const std::string text = print_json(json);
  return hex(XXH64(text.data(), text.size(), 0));
}

LearnedField learned_from_json(const Json& json) {
  constexpr int64_t kMostClasses = 1 << 24;
  LearnedField field{
      .name = json.at("name").get<std::string>(),
      .shape = json_value<std::vector<int64_t>>(json.at("shape")),
      .classes = json_value<int64_t>(json.at("classes")),
      .unit = json.value("unit", ""),
      .statistics = json.value("statistics", std::map<std::string, std::vector<float>>{})};
  if (field.classes < 0 || field.classes > kMostClasses ||
      field.shape.size() > static_cast<size_t>(Shape::kMaxRank) ||
      std::ranges::any_of(field.shape, [](int64_t extent) { return extent < 1; }))
    throw IoError(fmt::format("'learned' has no field '{}' of {} classes and shape {}", field.name,
                              field.classes, fmt::join(field.shape, "x")));
  return field;
}

Manifest from_json(const Json& json) {
  Manifest m;
  m.serial = json_value<int64_t>(json.at("serial"));
  m.info = {.step = json_value<int64_t>(json.at("step")),
            .epoch = json_value<int64_t>(json.at("epoch")),
            .epoch_position = json_value<int64_t>(json.at("epoch_position")),
            .seed = json_value<uint64_t>(json.at("seed")),
            .replicas = json_value<int64_t>(json.at("replicas")),
            .ranks = json_value<int64_t>(json.at("ranks")),
            .precision = json.at("precision").get<std::string>(),
            .plan_choices = json.at("plan_choices").get<std::string>(),
            .config = json.at("config").get<std::string>(),
            .run_id = json.value("run_id", ""),
            .optimizer = json.value("optimizer", ""),
            .state_kinds = json.value("state_kinds", std::vector<std::string>{}),
            .settings = json.value("settings", std::map<std::string, std::string>{}),
            .metrics = {}};
  for (const Json& field : json.value("learned", Json::array()))
    m.info.learned.push_back(learned_from_json(field));
  for (const auto& [name, value] :
       json.at("metrics").items())  // JSON has no NaN; it is written as null
    m.info.metrics[name] =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  for (const auto& [name, file] : json.at("files").items()) {
    // A manifest may come from anyone: only files in its own folder are accepted.
    if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos)
      throw IoError(fmt::format("'{}' is no name of a file beside it", name));
    m.files[name] = {json_value<uint64_t>(file.at("bytes")),
                     from_hex(file.at("xxh64").get<std::string>())};
  }
  if (const auto ranks = json.find("rank_files"); ranks != json.end())
    m.rank_files = {json_value<int64_t>(ranks->at("count")), ranks->at("id").get<std::string>()};
  return m;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  const CheckpointInfo& info = manifest.info;
  Json json = {
      {"schema", kSchema},
      {"serial", manifest.serial},
      {"step", info.step},
      {"epoch", info.epoch},
      {"seed", info.seed},
      {"epoch_position", info.epoch_position},
      {"replicas", info.replicas},
      {"ranks", info.ranks},
      {"precision", info.precision},
      {"config", info.config},
      {"plan_choices", info.plan_choices},
      {"run_id", info.run_id},
      {"optimizer", info.optimizer},
      {"state_kinds", info.state_kinds},
      {"settings", info.settings},
      {"metrics", info.metrics},
      {"learned", Json::array()},
      {"files", Json::object()},
      {"rank_files", {{"count", manifest.rank_files.count}, {"id", manifest.rank_files.id}}}};
  for (const LearnedField& field : info.learned)
    json["learned"].push_back({{"name", field.name},
                               {"shape", field.shape},
                               {"classes", field.classes},
                               {"unit", field.unit},
                               {"statistics", field.statistics}});
  for (const auto& [name, digest] : manifest.files)
    json["files"][name] = {{"bytes", digest.bytes}, {"xxh64", hex(digest.xxh64)}};
  json[kChecksum] = checksum_of(parse_json(print_json(json)));
  return print_json(json, 2) + "\n";
}

Manifest read_manifest(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  try {
    const Json json = parse_json(text);
    if (const int schema = json_value<int>(json.at("schema")); schema > kSchema)
      throw IntactFileError(
          fmt::format("{}: its schema {} is that of a later version of Tutti, and this one reads "
                      "up to {}: go on with the version that wrote it",
                      path.string(), schema, kSchema));
    if (json.at(kChecksum) != checksum_of(json))
      throw IoError("its checksum does not match its content");
    Manifest manifest = from_json(json);
    manifest.checksum = json.at(kChecksum);
    return manifest;
  } catch (const IntactFileError&) {
    throw;
  } catch (const Json::exception& error) {
    throw IoError(fmt::format("{}: damaged: {}", path.string(), json_words(error)));
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}: damaged: {}", path.string(), error.what()));
  }
}

}  // namespace tutti::keep
