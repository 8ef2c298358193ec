#include "tutti/cli/data/data_verbs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/microscope_flags.h"
#include "tutti/cli/flags/sequence_flags.h"
#include "tutti/cli/flags/suggest.h"
#include "tutti/cli/job/launch.h"
#include "tutti/data/format/sets/lattices.h"
#include "tutti/data/open/catalog.h"
#include "tutti/generate/pictures/picture_set.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

/// The values of the flags. Settings that are flags of one set only are in that set's spec.
struct Generate {
  std::string name, dir;
  int64_t train = -1, test = -1;  // -1: the set's usual number
  int side = 0;                   // 0: the set's usual one
  uint64_t seed = 1;
  int threads = 0;
  bool force = false;
  generate::VolumeSpec cosmology{.cell = 1, .spread = generate::kPublishedSpread, .particles = 1};
  int height = 192, width = 288;
  generate::PictureSpec pictures{.classes = 10};
  int64_t per_tar = 0;
  generate::ChainSpec chain;
  generate::TissueSpec neurons{.radius = 7, .noise = 12};
  generate::CbedSpec cbed{};
  generate::StemSpec stem{};
  generate::ClickSpec clicks;
  generate::SentenceSpec text;
  generate::SequenceSpec pairs;
  generate::VibrationSpec vibrations;

  int side_or(int usual) const {
    if (side == 1) throw ConfigError("--side 1: give at least 2, or 0 for the usual side");
    return side > 0 ? side : usual;
  }
};

void write_lattice_files(const Generate& g, const generate::SampleCounts& counts, int threads) {
  const auto write = [&](const std::string& file, int64_t first, int64_t count) {
    const auto path = fs::path(g.dir) / file;
    data::write_lattices(path, {.seed = g.seed, .first = first, .count = count}, threads);
    fmt::print("{}: {} images of seed {}\n", path.string(), count, g.seed);
  };
  const data::KnownDataset& known = data::known_dataset(g.name);
  write(known.train_files.front(), 0, counts.train);
  write(known.test_files.front(), data::kFirstTestLattice, counts.test);
}

template <class Spec>
Spec seeded(Spec spec, uint64_t seed) {
  spec.seed = seed;
  return spec;
}

/// Writes a set whose spec is this member. `kSide`: the usual side; 0: the set has none.
template <auto kSpec, auto kWrite, int kSide = 0>
void write_set(const Generate& g, const generate::SampleCounts& counts, int threads) {
  auto spec = seeded(g.*kSpec, g.seed);
  if constexpr (kSide > 0) spec.side = g.side_or(kSide);
  kWrite(g.dir, spec, counts, threads);
}

struct GeneratedSet {
  std::string name;
  generate::SampleCounts usual;  ///< samples in each part, where no flag sets them
  void (*write)(const Generate&, const generate::SampleCounts&, int threads);
};

const std::vector<GeneratedSet>& sets() {
  static const std::vector<GeneratedSet> all{
      {"lattices", {.train = 10000, .test = 2000}, write_lattice_files},
      {"cosmoflow",
       {.train = 512, .test = 128},
       write_set<&Generate::cosmology, generate::write_cosmoflow, 64>},
      {"deepcam",
       {.train = 64, .test = 16},
       [](const Generate& g, const generate::SampleCounts& counts, int threads) {
         generate::write_deepcam(g.dir,
                                 {.grid = {.rows = g.height, .columns = g.width}, .seed = g.seed},
                                 counts, threads);
       }},
      {"imagenet",
       {.train = 5000, .test = 1000},
       [](const Generate& g, const generate::SampleCounts& counts, int threads) {
         generate::PictureSpec spec = seeded(g.pictures, g.seed);
         spec.side = g.side_or(128);
         generate::write_pictures(g.dir, spec, counts, g.per_tar, g.force, threads);
       }},
      {"neurons",
       {.train = 2, .test = 1},
       write_set<&Generate::neurons, generate::write_neurons, 64>},
      {"cbed", {.train = 2048, .test = 512}, write_set<&Generate::cbed, generate::write_cbed, 64>},
      {"stem",
       {.train = 2048, .test = 512},
       [](const Generate& g, const generate::SampleCounts& counts, int threads) {
         generate::StemSpec spec = seeded(g.stem, g.seed);
         spec.side = g.side_or(64);
         spec.crystal = g.cbed.crystal;  // one flag for both
         generate::write_stem(g.dir, spec, counts, threads);
       }},
      {"clicks",
       {.train = 200000, .test = 50000},
       write_set<&Generate::clicks, generate::write_clicks>},
      {"text", {.train = 20000, .test = 2000}, write_set<&Generate::text, generate::write_text>},
      {"token-pairs",
       {.train = 20000, .test = 1000},
       [](const Generate& g, const generate::SampleCounts& counts, int) {
         generate::write_token_pairs(g.dir, seeded(g.pairs, g.seed), counts);
       }},
      {"protein",
       {.train = 8000, .test = 2000},
       write_set<&Generate::chain, generate::write_protein>},
      {"vibrations",
       {.train = 8192, .test = 1024},
       write_set<&Generate::vibrations, generate::write_vibrations>},
  };
  return all;
}

/// Refuses a set that cannot be generated, and names its source.
const GeneratedSet& set_called(const std::string& name) {
  const auto found = std::ranges::find(sets(), name, &GeneratedSet::name);
  if (found != sets().end()) return *found;
  const auto& all = data::known_datasets();
  const auto known = std::ranges::find(all, name, &data::KnownDataset::name);
  throw ConfigError(fmt::format("'{}' is not a data set that can be generated{}: {} are{}", name,
                                did_you_mean(name, data::generated_sets()),
                                data::names_of_generated(),
                                known == all.end() ? "" : ". " + known->how_to_get));
}

/// Returns "lattices 10000, cosmoflow 512" and so on.
std::string usual_numbers(int64_t generate::SampleCounts::*part) {
  std::vector<std::string> numbers;
  for (const GeneratedSet& set : sets())
    numbers.push_back(fmt::format("{} {}", set.name, set.usual.*part));
  return fmt::format("{}", fmt::join(numbers, ", "));
}

/// True for a folder without files of a data set's pattern. A killed run leaves such a folder.
bool lacks_samples(const fs::path& folder, const fs::path& pattern) {
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder, unknown))
    if (entry.path().extension() == pattern.extension()) return false;
  return !unknown;
}

std::vector<std::string> files_of_set(const std::string& name) {
  if (name == "text") return {"train.txt", "validation.txt"};
  if (name == "token-pairs") return {"source/train-00000.tokens", "target/train-00000.tokens"};
  if (name == "protein") return {"train.h5", "validation.h5", "native.pdb"};
  if (name == "vibrations") return {"train.h5", "validation.h5"};
  const data::KnownDataset& known = data::known_dataset(name);
  std::vector<std::string> all;
  for (const auto& files : {known.train_files, known.validation_files, known.test_files})
    all.insert(all.end(), files.begin(), files.end());
  return all;
}

/// Checks all files, whichever are requested: a set is a pair.
void refuse_to_replace(const Generate& g) {
  for (const std::string& file : files_of_set(g.name)) {
    auto path = fs::path(g.dir) / file;
    std::error_code unknown;                    // writing it reports why
    if (file.find('*') != std::string::npos) {  // one file for each sample
      path = path.parent_path();
      if (!fs::is_directory(path, unknown) || lacks_samples(path, file)) continue;
    }
    if (fs::exists(path, unknown))
      throw ConfigError(
          fmt::format("{} exists: choose another folder, or replace the data set there with "
                      "--force",
                      path.string()));
  }
}

/// Refuses 0: training needs both parts, whatever the set.
generate::SampleCounts wanted_counts(const Generate& g) {
  const generate::SampleCounts usual = set_called(g.name).usual;
  const auto wanted = [](const char* flag, int64_t given, int64_t otherwise, const char* what) {
    if (given == 0)
      throw ConfigError(fmt::format("{0} 0: {1}; give at least 1, or leave {0} out for {2}", flag,
                                    what, otherwise));
    return given > 0 ? given : otherwise;
  };
  return {.train = wanted("--train", g.train, usual.train,
                          "without samples to train on this is no data set"),
          .test = wanted("--test", g.test, usual.test,
                         "training evaluates on these samples, so it could not read the set")};
}

int generate_data(const Generate& g) {
  const generate::SampleCounts counts = wanted_counts(g);
  if (!g.force) refuse_to_replace(g);
  std::error_code failed;
  fs::create_directories(g.dir, failed);
  if (failed) throw IoError(fmt::format("cannot make the folder {}: {}", g.dir, failed.message()));
  set_called(g.name).write(g, counts, choose_threads(g.threads, 0, device::read_topology(), 1));
  if (g.name != "lattices")
    fmt::print("{}: {} training and {} validation samples of seed {}\n", g.dir, counts.train,
               counts.test, g.seed);
  return 0;
}

std::vector<Flag> volume_flags(const std::shared_ptr<Generate>& state) {
  return {
      flag("--cell", "X", "Side of a cell in Mpc/h (published: 1)", &state->cosmology.cell,
           {0.01, 1000}, {"cosmoflow"}),
      flag("--spread", "X", "Parameters lie within this share of Planck's values (published: 0.3)",
           &state->cosmology.spread, {0.01, generate::kGreatestSpread}, {"cosmoflow"}),
      flag("--particles", "N", "Particles along a cell's axis, so N^3 in a cell (published: 1)",
           &state->cosmology.particles, {1, generate::kMostParticles}, {"cosmoflow"})};
}

std::vector<Flag> map_flags(const std::shared_ptr<Generate>& state) {
  return {flag("--height", "N", "Rows of a map (published: 768)", &state->height, {1, 16384},
               {"deepcam"}),
          flag("--width", "N", "Columns of a map (published: 1152)", &state->width, {1, 16384},
               {"deepcam"})};
}

std::vector<Flag> picture_flags(const std::shared_ptr<Generate>& state) {
  return {flag("--picture-classes", "N", "Classes of pictures: shapes, then textures, then colours",
               &state->pictures.classes, {2, generate::kMostPictureClasses}, {"imagenet"}),
          flag("--per-tar", "N",
               "Pictures in a tar shard, each a KEY.jpg and a KEY.cls. 0: class folders",
               &state->per_tar, {0}, {"imagenet"})};
}

std::vector<Flag> neuron_flags(const std::shared_ptr<Generate>& state) {
  return {flag("--radius", "X", "Radius of a typical neuron's tube, in voxels",
               &state->neurons.radius, {2, 256}, {"neurons"}),
          flag("--noise", "X", "Standard deviation of the image's noise, of 255",
               &state->neurons.noise, {0, 255}, {"neurons"})};
}

/// Flags of all sets, or of more than one.
std::vector<Flag> common_flags(const std::shared_ptr<Generate>& state) {
  return {
      flag("--train", "N", "Training samples. -1: " + usual_numbers(&generate::SampleCounts::train),
           &state->train, {-1}),
      flag("--test", "N",
           "Test samples, none of them a training sample. -1: " +
               usual_numbers(&generate::SampleCounts::test),
           &state->test, {-1}),
      flag("--seed", "N", "The files are a function of it", &state->seed),
      flag("--threads", "N", "Threads; the files do not depend on them. 0: all cores",
           &state->threads, {0}),
      switch_flag("--force", "Replace a data set that lies in the folder", &state->force),
      flag("--side", "N",
           "Cells of a volume along each axis, or pixels of a picture's shorter side. 0: "
           "cosmoflow, neurons, cbed and stem 64, imagenet 128",
           &state->side, {0, 4096}, {"cosmoflow", "imagenet", "neurons", "cbed", "stem"})};
}

}  // namespace

Verb data_generate_verb() {
  const auto state = std::make_shared<Generate>();
  std::vector<Flag> flags = common_flags(state);
  for (const auto& more :
       {volume_flags(state), map_flags(state), picture_flags(state), neuron_flags(state),
        sequence_flags({state->clicks, state->text, state->pairs, state->chain, state->vibrations}),
        microscope_flags(state->cbed, state->stem)})
    flags.insert(flags.end(), more.begin(), more.end());
  return {
      .name = "generate",
      .summary = "Write a data set made from a seed",
      .arguments = {required_flag(
                        Names::generated, "NAME", {}, data::names_of_generated(),
                        [state](const std::string& name) {
                          set_called(name);  // refuses unknown sets before a set's own flag
                          state->name = name;
                        },
                        "data generate needs a data set, for example: tutti data generate lattices "
                        "data/lattices"),
                    required_flag(Names::folder, "DIR", {}, "The data set's folder", &state->dir,
                                  "a folder is needed, for example: data/lattices")},
      .flags = std::move(flags),
      .examples = {{"tutti data generate lattices data/lattices --train 20000 --seed 7",
                    "20,000 training images and the usual number of test images"}},
      .run = [state] { return generate_data(*state); }};
}

}  // namespace tutti::cli
