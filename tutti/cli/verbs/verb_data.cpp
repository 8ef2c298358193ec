// tutti data list | fetch | generate | verify | inspect | stats | tokenize | vocabulary | stage

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/data/data_inspect.h"
#include "tutti/cli/data/data_verbs.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/verify.h"

namespace tutti::cli {
namespace {

struct DataVerb {
  std::string name, dir;
  int64_t classes = 0;
  bool json = false;
};

int list_data_sets(const DataVerb& verb) {
  if (verb.json) {
    Json out = Json::array();
    for (const data::KnownDataset& set : data::known_datasets())
      out.push_back({{"name", set.name},
                     {"description", set.description},
                     {"train_files", set.train_files},
                     {"validation_files", set.validation_files},
                     {"test_files", set.test_files},
                     {"how_to_get", set.how_to_get}});
    print_json_output(out);
    return 0;
  }
  for (const data::KnownDataset& set : data::known_datasets()) {
    fmt::print("{:<14} {}\n", set.name, set.description);
    fmt::print("{:<14} files: {}\n", "", fmt::join(set.train_files, " "));
    if (!set.validation_files.empty())
      fmt::print("{:<14}        {}\n", "", fmt::join(set.validation_files, " "));
    fmt::print("{:<14}        {}{}\n", "", fmt::join(set.test_files, " "),
               set.test_files_may_lack ? " (if there are any)" : "");
    fmt::print("{:<14} {}\n", "", set.how_to_get);
  }
  return 0;
}

void print_verification(const data::VerifyReport& report) {
  Json files = Json::array();
  for (const data::FileReport& file : report.files)
    files.push_back({{"file", file.file.string()},
                     {"sound", file.problem.empty()},
                     {"problem", file.problem},
                     {"bytes", file.bytes},
                     {"xxhash64", file.xxhash64},
                     {"sha256_is_listed", !file.expected_sha256.empty()},
                     {"records", file.records},
                     {"class_counts", file.class_counts},
                     {"counts_as_published", file.counts_as_published}});
  print_json_output(Json{{"sound", report.sound()}, {"files", files}});
}

int run_verify(const DataVerb& verb) {
  const data::VerifyReport report = data::verify_dataset(verb.name, verb.dir, verb.classes);
  if (verb.json)
    print_verification(report);
  else
    fmt::print("{}", report.to_text());
  if (!report.sound())
    throw IoError(fmt::format(
        "{} in {} is not sound: see the {}; to have it whole again, {}", verb.name, verb.dir,
        verb.json ? "files that are not \"sound\"" : "lines that begin with BAD",
        data::how_to_get(data::known_dataset(verb.name), verb.dir)));
  return 0;
}

Flag folder_argument(const std::shared_ptr<DataVerb>& state) {
  return required_flag(Names::folder, "DIR", {}, "The data set's folder", &state->dir,
                       "a folder is needed, for example: data/lattices");
}

Verb verify_verb(const std::shared_ptr<DataVerb>& state) {
  return {
      .name = "verify",
      .summary = "Read every file of a data set and report on each",
      .arguments = {required_flag(
                        Names::dataset, "NAME", {}, "See tutti data list", &state->name,
                        "data verify needs a data set, for example: tutti data verify cifar10 "
                        "data/cifar10"),
                    folder_argument(state)},
      .flags = {flag("--classes", "N",
                     "Number of classes of files that have another number than the published set",
                     &state->classes, {0}),
                json_flag(state->json)},
      .examples = {{"tutti data verify cifar10 data/cifar10", "Are these files whole?"}},
      .run = [state] { return run_verify(*state); }};
}

Verb inspect_verb(const std::shared_ptr<DataVerb>& state) {
  return {
      .name = "inspect",
      .summary = "Show what a file or folder holds, and a configuration to start from",
      .text =
          "Reads NumPy, HDF5, NetCDF, TIFF, TFRecord files, trajectories (DCD, XTC, TRR), raw "
          "binary described by a .toml, folders of such files, class folders and .tar archives of "
          "images, texts and token files, and folders of the data sets that are known by name. "
          "What is printed is a "
          "configuration that trains; fields, types, shapes and ranges stand in comments.",
      .arguments = {required_flag(
          Names::file, "PATH", {}, "A file, or the folder of a data set", &state->dir,
          "data inspect needs a file or folder, for example: tutti data inspect climate.nc")},
      .flags = {json_flag(state->json)},
      .examples = {{"tutti data inspect train/data-00000000.h5", "What is in this file?"},
                   {"tutti data inspect maps > run.toml && tutti train run.toml",
                    "Train on a folder of files at once"},
                   {"tutti data inspect data/cosmoflow",
                    "What does a sample of this set have, and how is it trained on?"}},
      .run = [state] {
        log::configure(log::Level::warn, 0, 1);  // the output is a configuration and nothing else
        if (state->json)
          print_output(inspect_data(state->dir, true));
        else
          fmt::print("{}", inspect_data(state->dir));
        return 0;
      }};
}

}  // namespace

Verb data_verb() {
  auto state = std::make_shared<DataVerb>();  // shared: std::function must be copyable
  const Verb list{.name = "list",
                  .summary = "List the data sets known by name, their files and their origin",
                  .flags = {json_flag(state->json)},
                  .examples = {{"tutti data list", "All data sets, and where to get them"}},
                  .run = [state] { return list_data_sets(*state); }};
  return {.name = "data",
          .summary = "List, generate, fetch, verify, inspect or stage data sets",
          .verbs = {list, data_generate_verb(), verify_verb(state), inspect_verb(state),
                    data_stats_verb(), data_tokenize_verb(), data_vocabulary_verb(),
                    data_stage_verb(), data_fetch_verb()}};
}

}  // namespace tutti::cli
