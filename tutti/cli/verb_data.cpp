// tutti data list | fetch | generate | verify | inspect | stats | stage

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/data_inspect.h"
#include "tutti/cli/data_stage.h"
#include "tutti/cli/data_stats.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/suggest.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/format/catalog.h"
#include "tutti/data/format/verify.h"
#include "tutti/data/generate/lattices.h"
#include "tutti/data/generate/pictures/picture_set.h"
#include "tutti/data/generate/sample_sets.h"

namespace tutti {
namespace {

struct DataVerb {
  std::string name, dir;
  int64_t train = -1, test = -1, classes = 0;  // -1: the set's usual number
  int side = 0, classes_made = 10, particles = 1, height = 192, width = 288;
  data::ChainSpec chain;
  double cell = 1, spread = data::kPublishedSpread, radius = 7, noise = 12;
  uint64_t seed = 1;
  int64_t per_tar = 0;
  int threads = 0;
  bool json = false, force = false;
};

int run_list(const DataVerb& verb) {
  if (verb.json) {
    Json out = Json::array();
    for (const data::KnownDataset& set : data::known_datasets())
      out.push_back({{"name", set.name},
                     {"description", set.description},
                     {"train_files", set.train_files},
                     {"validation_files", set.validation_files},
                     {"test_files", set.test_files},
                     {"how_to_get", set.how_to_get}});
    fmt::print("{}\n", print_json(out, 2));
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

/// Of a folder where the data set's files would fit the pattern. A killed run leaves such a one.
bool lacks_samples(const std::filesystem::path& folder, const std::filesystem::path& pattern) {
  std::error_code unknown;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unknown))
    if (entry.path().extension() == pattern.extension()) return false;
  return !unknown;
}

std::vector<std::string> files_of_set(const std::string& name) {
  if (name == "protein") return {"train.h5", "validation.h5", "native.pdb"};
  const data::KnownDataset& known = data::known_dataset(name);
  std::vector<std::string> all;
  for (const auto& files : {known.train_files, known.validation_files, known.test_files})
    all.insert(all.end(), files.begin(), files.end());
  return all;
}

/// All files are looked at, whichever is asked for: a set is a pair.
void refuse_to_replace(const DataVerb& verb) {
  for (const std::string& file : files_of_set(verb.name)) {
    auto path = std::filesystem::path(verb.dir) / file;
    std::error_code unknown;                    // writing it says why
    if (file.find('*') != std::string::npos) {  // of a file a sample
      path = path.parent_path();
      if (!std::filesystem::is_directory(path, unknown) || lacks_samples(path, file)) continue;
    }
    if (std::filesystem::exists(path, unknown))
      throw ConfigError(
          fmt::format("{} exists: choose another folder, or replace the data set there with "
                      "--force",
                      path.string()));
  }
}

/// How many samples of each part, where no flag says so.
data::SampleCounts usual_counts(const std::string& name) {
  if (name == "lattices") return {.train = 10000, .test = 2000};
  if (name == "cosmoflow") return {.train = 512, .test = 128};
  if (name == "deepcam") return {.train = 64, .test = 16};
  if (name == "imagenet") return {.train = 5000, .test = 1000};
  if (name == "protein") return {.train = 8000, .test = 2000};
  if (name == "neurons") return {.train = 2, .test = 1};
  const auto& all = data::known_datasets();
  const auto known = std::ranges::find(all, name, &data::KnownDataset::name);
  throw ConfigError(fmt::format("'{}' is not a data set that can be generated{}: {} are{}", name,
                                did_you_mean(name, data::generated_sets()),
                                data::names_of_generated(),
                                known == all.end() ? "" : ". " + known->how_to_get));
}

/// Training needs both parts, whatever the set.
data::SampleCounts wanted_counts(const DataVerb& verb) {
  const data::SampleCounts usual = usual_counts(verb.name);
  const auto wanted = [](const char* flag, int64_t given, int64_t otherwise, const char* what) {
    if (given == 0)
      throw ConfigError(fmt::format("{0} 0: {1}; give at least 1, or leave {0} out for {2}", flag,
                                    what, otherwise));
    return given > 0 ? given : otherwise;
  };
  return {.train = wanted("--train", verb.train, usual.train,
                          "without samples to train on this is no data set"),
          .test = wanted("--test", verb.test, usual.test,
                         "training evaluates on these samples, so it could not read the set")};
}

/// Sets of one file a sample.
void generate_samples(const DataVerb& verb, const data::SampleCounts& counts, int threads) {
  if (verb.name == "cosmoflow")
    data::write_cosmoflow(verb.dir,
                          {.side = verb.side > 0 ? verb.side : 64,
                           .cell = verb.cell,
                           .seed = verb.seed,
                           .spread = verb.spread,
                           .particles = verb.particles},
                          counts, threads);
  else if (verb.name == "imagenet")
    data::write_pictures(
        verb.dir,
        {.classes = verb.classes_made, .side = verb.side > 0 ? verb.side : 128, .seed = verb.seed},
        counts, verb.per_tar, verb.force, threads);
  else "protein") {
    data::ChainSpec spec = verb.chain;
    spec.seed = verb.seed;
    data::write_protein(verb.dir, spec, counts, threads);
  } else "neurons")
    data::write_neurons(
        verb.dir,
        {.side = verb.side, .radius = verb.radius, .noise = verb.noise, .seed = verb.seed}, counts,
        threads);
  else
    data::write_deepcam(verb.dir,
                        {.grid = {.rows = verb.height, .columns = verb.width}, .seed = verb.seed},
                        counts, threads);
  fmt::print("{}: {} training and {} validation samples of seed {}\n", verb.dir, counts.train,
             counts.test, verb.seed);
}

int run_generate(const DataVerb& verb) {
  const data::SampleCounts counts = wanted_counts(verb);
  if (!verb.force) refuse_to_replace(verb);
  std::error_code failed;
  std::filesystem::create_directories(verb.dir, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}", verb.dir, failed.message()));
  const int threads = choose_threads(verb.threads, 0, read_topology(), 1);
  if (verb.name != "lattices") return generate_samples(verb, counts, threads), 0;
  const auto write = [&](const std::string& file, int64_t first, int64_t count) {
    const auto path = std::filesystem::path(verb.dir) / file;
    data::write_lattices(path, {.seed = verb.seed, .first = first, .count = count}, threads);
    fmt::print("{}: {} images of seed {}\n", path.string(), count, verb.seed);
  };
  const data::KnownDataset& known = data::known_dataset(verb.name);
  write(known.train_files.front(), 0, counts.train);
  write(known.test_files.front(), data::kFirstTestLattice, counts.test);
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
                     {"class_counts", file.class_counts}});
  fmt::print("{}\n", print_json({{"sound", report.sound()}, {"files", files}}, 2));
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
  return {.names = "DIR",
          .help = "The data set's folder",
          .bind = &state->dir,
          .kind = Names::folder,
          .required = "a folder is needed, for example: data/lattices"};
}

Verb generate_verb(const std::shared_ptr<DataVerb>& state) {
  return {
      .name = "generate",
      .summary = "Write a data set made from a seed",
      .arguments = {{.names = "NAME",
                     .help = "lattices, cosmoflow, deepcam or imagenet", protein", neurons",
                     .bind =
                         [state](const std::string& name) {
                           usual_counts(name);  // refuses others, before any flag of one
                           state->name = name;
                         },
                     .kind = Names::generated,
                     .required = "data generate needs a data set, for example: tutti data generate "
                                 "lattices data/lattices"},
                    folder_argument(state)},
      .flags =
          {{.names = "--train",
            .value = "N",
            .help = "Training samples. -1: lattices 10000, cosmoflow 512, deepcam 64, "
                         "imagenet 5000",
                         "neurons 2",
                 .bind protein 8000",
            .bind = &state->train,
            .least = -1},
           {.names = "--test",
            .value = "N",
            .help = "Test samples, none of them a training sample. -1: lattices 2000, "
                    "cosmoflow 128, deepcam 16, imagenet 1000",
                 .bind protein 2000",
            .bind = &state->test,
            .least = -1},
           {.names = "--side",
            .value = "N",
            .help =
                     "Cells of a volume along each axis, or pixels of a picture's shorter side. "
                     "0: cosmoflow 64, imagenet 128",
                 .bind axis",
            .bind = &state->side,
            .least = 0,
                 .greatest = 4096,
                 .only_for = {"cosmoflow", "imagenet"}},
                {.names = "--picture-classes",
                 .value = "N",
                 .help = "Classes of pictures: shapes, then textures, then colours", them a training sample. -1: lattices 2000, "
                         "cosmoflow 128, deepcam 16, neurons 1",
                 .bind = &state->classes_made,
                 .least = 2,
            .greatest = data::kMostPictureClasses,
                 .only_for = {"imagenet"}}, {"cosmoflow", "neurons"}},
                {.names = "--radius",
                 .value = "X",
                 .help = "Radius of a typical neuron's tube, in voxels",
                 .bind = &state->radius,
                 .least = 2,
                 .greatest = 256,
                 .only_for = {"neurons"}},
                {.names = "--noise",
                 .value = "X",
                 .help = "Standard deviation of the image's noise, of 255",
                 .bind = &state->noise,
                 .least = 0,
                 .greatest = 255,
                 .only_for = {"neurons"}},
                {.names = "--per-tar",
                 .value = "N",
                 .help = "Pictures in a tar shard, each a KEY.jpg and a KEY.cls. 0: class folders",
                 .bind = &state->per_tar,
                 .least = 0,
                 .only_for = {"imagenet"}},
                {.names 1024,
            .only_for = {"cosmoflow"}},
           {.names = "--cell",
            .value = "X",
            .help = "Side of a cell in Mpc/h (published: 1)",
            .bind = &state->cell,
            .least = 0.01,
            .greatest = 1000,
            .only_for = {"cosmoflow"}},
           {.names = "--spread",
            .value = "X",
            .help = "Parameters lie within this share of Planck's values "
                    "(published: 0.3)",
            .bind = &state->spread,
            .least = 0.01,
            .greatest = data::kGreatestSpread,
            .only_for = {"cosmoflow"}},
           {.names = "--particles",
            .value = "N",
            .help = "Particles along a cell's axis, so N^3 in a cell (published: 1)",
            .bind = &state->particles,
            .least = 1,
            .greatest = data::kMostParticles,
            .only_for = {"cosmoflow"}},
           {.names = "--height",
            .value = "N",
            .help = "Rows of a map (published: 768)",
            .bind = &state->height,
            .least = 1,
            .greatest = 16384,
            .only_for = {"deepcam"}},
           {.names = "--width",
            .value = "N",
            .help = "Columns of a map (published: 1152)",
            .bind = &state->width,
            .least = 1,
            .greatest = 16384,
            .only_for = {"deepcam"}},
           {.names = "--residues",
            .value = "N",
            .help = "Length of the chain",
            .bind = &state->chain.residues,
            .least = data::kFewestResidues,
            .greatest = 999,
            .only_for = {"protein"}},
           {.names = "--stride",
            .value = "N",
            .help = "Steps of Langevin dynamics from frame to frame",
            .bind = &state->chain.stride,
            .least = 1,
            .greatest = 1000000,
            .only_for = {"protein"}},
           {.names = "--temperature",
            .value = "X",
            .help = "Temperature in the model's unit; the default is near that of folding",
            .bind = &state->chain.temperature,
            .least = 0.01,
            .greatest = 2,
            .only_for = {"protein"}},
           {.names = "--swing",
            .value = "X",
            .help = "Share of the temperature by which it rises and falls, every 200 frames; "
                    "0: constant",
            .bind = &state->chain.swing,
            .least = 0,
            .greatest = 0.9,
            .only_for = {"protein"}},
           {.names = "--seed",
            .value = "N",
            .help = "The files are a function of it",
            .bind = &state->seed},
           {.names = "--threads",
            .value = "N",
            .help = "Threads; the files do not depend on them. 0: all cores",
            .bind = &state->threads,
            .least = 0},
           {.names = "--force",
            .help = "Replace a data set that lies in the folder",
            .bind = &state->force}},
      .examples = {{"tutti data generate lattices data/lattices --train 20000 --seed 7",
                    "20,000 training images and the usual number of test images"}},
      .run = [state] { return run_generate(*state); }};
}

Verb verify_verb(const std::shared_ptr<DataVerb>& state) {
  return {
      .name = "verify",
      .summary = "Read every file of a data set and report on each",
      .arguments = {{.names = "NAME",
                     .help = "See tutti data list",
                     .bind = &state->name,
                     .kind = Names::dataset,
                     .required = "data verify needs a data set, for example: tutti data verify "
                                 "cifar10 data/cifar10"},
                    folder_argument(state)},
      .flags = {{.names = "--classes",
                 .value = "N",
                 .help =
                     "Number of classes of files that have another number than the published set",
                 .bind = &state->classes,
                 .least = 0},
                json_flag(state->json)},
      .examples = {{"tutti data verify cifar10 data/cifar10", "Are these files whole?"}},
      .run = [state] { return run_verify(*state); }};
}

Verb inspect_verb(const std::shared_ptr<DataVerb>& state) {
  return {
      .name = "inspect",
      .summary = "Show what a file or folder holds, and a configuration to start from",
      .text =
          "Reads NumPy, HDF5, NetCDF, TFRecord files, trajectories (DCD, XTC, TRR), raw binary "
          "described by a .toml, folders "
          "of such files, and folders of the data sets that are known by name. What is printed is "
          "a "
          "configuration that trains; fields, types, shapes and ranges stand in comments.",
      .arguments = {{.names = "PATH",
                     .help = "A file, or the folder of a data set",
                     .bind = &state->dir,
                     .kind = Names::file,
                     .required = "data inspect needs a file or folder, for example: tutti data "
                                 "inspect climate.nc"}},
      .examples = {{"tutti data inspect train/data-00000000.h5", "What is in this file?"},
                   {"tutti data inspect maps > run.toml && tutti train run.toml",
                    "Train on a folder of files at once"},
                   {"tutti data inspect data/cosmoflow",
                    "What does a sample of this set have, and how is it trained on?"}},
      .run = [state] {
        log::configure(log::Level::warn, 0, 1);  // the text is a configuration, and nothing else
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
                  .run = [state] { return run_list(*state); }};
  return {.name = "data",
          .summary = "List, generate, fetch, verify, inspect or stage data sets",
          .verbs = {list, generate_verb(state), verify_verb(state), inspect_verb(state),
                    data_stats_verb(), data_stage_verb(), data_fetch_verb()}};
}

}  // namespace tutti
