#include "tutti/cli/data/data_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/data/run_data_path.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/store/fetch.h"

namespace tutti::cli {
namespace {

struct StageVerb {
  ConfigFlags flags;
  std::string to;
  bool verify = false;
};

struct FetchVerb {
  std::string what, to;
};

int run_fetch(const FetchVerb& verb) {
  data::FetchSpec spec{.items = data::known_downloads(verb.what), .to = verb.to};
  std::error_code unknown;
  const auto& sets = data::known_datasets();
  const auto known = std::ranges::find(sets, verb.what, &data::KnownDataset::name);
  if (spec.items.empty() && known != sets.end() && !std::filesystem::exists(verb.what, unknown))
    throw ConfigError(fmt::format("{} is not published file by file: {}", verb.what,
                                  data::how_to_get(*known, verb.to)));
  if (spec.items.empty()) spec.items = data::read_url_list(verb.what);
  const data::FetchResult result = data::fetch_files(spec);
  fmt::print("{}: {} of {} files fetched, {:.1f} MiB; the others were there\n", verb.to,
             result.fetched_files, result.files,
             static_cast<double>(result.fetched_bytes) / (1 << 20));
  return 0;
}

int run_stage(const StageVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  const config::RunConfig& config = resolved.config;
  log::configure(log::Level::warn, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  const std::string to = verb.to.empty() ? config.staging.dir : verb.to;
  if (to.empty())
    throw ConfigError(
        "data stage needs a folder: give --to DIR, or data.staging.dir in the configuration");
  const data::StagingSpec spec = staging_spec(config, to);
  const data::StagingResult result = data::stage_files(spec);
  fmt::print("{}: {} of {} files copied, {:.1f} of {:.1f} MiB, in {:.2f} s\n", to,
             result.copied_files, result.files,
             static_cast<double>(result.copied_bytes) / (1 << 20),
             static_cast<double>(result.bytes) / (1 << 20), result.seconds);
  if (verb.verify)
    fmt::print("{}: {:.1f} MiB read again, and as they were\n", to,
               static_cast<double>(data::verify_staged(spec)) / (1 << 20));
  return 0;
}

}  // namespace

Verb data_stage_verb() {
  auto state = std::make_shared<StageVerb>();  // shared: std::function must be copyable
  return {.name = "stage",
          .summary = "Copy a data set's files to a faster place",
          .text =
              "Copies the files that data of the configuration names, under their names below "
              "data.dir, several at a time, with checksums. What is there already and belongs to "
              "the file as it is now is not copied again, so an interrupted staging goes on, and a "
              "second job finds all. `tutti train` with data.staging.dir does the same first, and "
              "reads the copies.",
          .arguments = {state->flags.file_argument("data stage", true)},
          .flags = joined(
              {named_flag(Names::folder, "--to", "DIR",
                          "The folder that gets them. Empty: data.staging.dir", &state->to),
               switch_flag("--verify", "Also read all copies again and compare their checksums",
                           &state->verify)},
              state->flags.flags({"data-dir"})),
          .examples = {{"tutti data stage run.toml --to /local/scratch/maps",
                        "Copy what run.toml trains on to this node's disk"}},
          .see_also = {"docs/samples.md"},
          .run = [state] { return run_stage(*state); }};
}

Verb data_fetch_verb() {
  auto state = std::make_shared<FetchVerb>();  // shared: std::function must be copyable
  return {
      .name = "fetch",
      .summary = "Download a data set's files, with checksums",
      .text =
          "NAME is mnist or fashion-mnist, or a file that lists URLs, one a line: \"URL [SHA256] "
          "[NAME]\". A broken connection is taken up again where it broke, also by a later call; "
          "a file gets its name when it is whole and its checksum is right.",
      .arguments = {required_flag(
                        Names::file, "NAME", {}, "A data set, or a list of URLs", &state->what,
                        "data fetch needs a data set or a list of URLs, for example: tutti data "
                        "fetch mnist data/mnist"),
                    required_flag(Names::folder, "DIR", {}, "The folder that gets the files",
                                  &state->to, "a folder is needed, for example: data/mnist")},
      .examples = {{"tutti data fetch fashion-mnist data/fashion-mnist",
                    "Four files, compared with their published checksums"},
                   {"tutti data fetch urls.txt data/maps", "The files of a list"}},
      .see_also = {"tutti data list", "docs/samples.md"},
      .run = [state] { return run_fetch(*state); }};
}

}  // namespace tutti::cli
