// tutti data list | generate | verify

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/format/catalog.h"
#include "tutti/data/format/verify.h"
#include "tutti/data/generate/lattices.h"

namespace tutti {
namespace {

struct DataVerb {
  std::string name, dir;
  int64_t train = 10000, test = 2000, classes = 0;
  uint64_t seed = 1;
  int threads = 0;
};

int run_list() {
  for (const data::KnownDataset& set : data::known_datasets()) {
    fmt::print("{:<14} {}\n", set.name, set.description);
    fmt::print("{:<14} files: {}\n", "", fmt::join(set.train_files, " "));
    fmt::print("{:<14}        {}\n", "", fmt::join(set.test_files, " "));
    fmt::print("{:<14} {}\n", "", set.how_to_get);
  }
  return 0;
}

int run_generate(const DataVerb& verb) {
  if (verb.name != "lattices")
    throw ConfigError(
        fmt::format("'{}' is not a data set that can be generated: only lattices is. {}", verb.name,
                    data::known_dataset(verb.name).how_to_get));
  if (verb.train < 0 || verb.test < 0) throw ConfigError("--train and --test must be at least 0");
  const data::KnownDataset& known = data::known_dataset(verb.name);
  std::error_code failed;
  std::filesystem::create_directories(verb.dir, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}", verb.dir, failed.message()));
  const int threads = choose_threads(verb.threads, 0, read_topology(), 1);
  const auto write = [&](const std::string& file, int64_t first, int64_t count) {
    if (count == 0) return;
    const auto path = std::filesystem::path(verb.dir) / file;
    data::write_lattices(path, {.seed = verb.seed, .first = first, .count = count}, threads);
    fmt::print("{}: {} images of seed {}\n", path.string(), count, verb.seed);
  };
  write(known.train_files.front(), 0, verb.train);
  write(known.test_files.front(), data::kFirstTestLattice, verb.test);
  return 0;
}

int run_verify(const DataVerb& verb) {
  if (verb.classes < 0) throw ConfigError("--classes must be at least 0");
  const data::VerifyReport report = data::verify_dataset(verb.name, verb.dir, verb.classes);
  fmt::print("{}", report.to_text());
  if (!report.sound())
    throw IoError(fmt::format("{} in {} is not sound: see the lines that begin with BAD", verb.name,
                              verb.dir));
  return 0;
}

}  // namespace

RunVerb add_data(CLI::App& verb) {
  auto state = std::make_shared<DataVerb>();  // shared: std::function must be copyable
  verb.require_subcommand(1);
  CLI::App* list = verb.add_subcommand(
      "list", "The data sets known by name, their files and where they come from");
  CLI::App* generate = verb.add_subcommand("generate", "Write a data set made from a seed");
  generate->add_option("name", state->name, "lattices")->type_name("NAME")->required();
  generate->add_option("dir,--data-dir", state->dir, "Folder to write into")
      ->type_name("DIR")
      ->required();
  generate->add_option("--train", state->train, "Training images")
      ->type_name("N")
      ->capture_default_str();
  generate->add_option("--test", state->test, "Test images; none of them is a training image")
      ->type_name("N")
      ->capture_default_str();
  generate->add_option("--seed", state->seed, "Seed; the files are a function of it")
      ->type_name("N")
      ->capture_default_str();
  generate
      ->add_option("--threads", state->threads,
                   "Threads; the files do not depend on them. 0: all cores")
      ->type_name("N");
  CLI::App* verify =
      verb.add_subcommand("verify", "Read every file of a data set and report on each");
  verify->add_option("name", state->name, "See `tutti data list`")->type_name("NAME")->required();
  verify->add_option("dir,--data-dir", state->dir, "Its folder")->type_name("DIR")->required();
  verify
      ->add_option("--classes", state->classes,
                   "Number of classes of files that have another number than the published set")
      ->type_name("N");
  return [=] {
    if (list->parsed()) return run_list();
    return generate->parsed() ? run_generate(*state) : run_verify(*state);
  };
}

}  // namespace tutti
