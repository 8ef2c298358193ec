#include "tutti/cli/job/job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tutti/backend/cpu/onednn/version.h"
#include "tutti/base/build_id.h"
#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/base/process_state.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/flags/version.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/job/progress.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/data/arrays/field_line.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/open.h"
#include "tutti/data/subset.h"
#include "tutti/data/text/pair_set.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/trace/record.h"

namespace tutti::cli {

JobOptions job_options(const config::CommSection& comm, int threads) {
  return {.timeout = comm.timeout_s,
          .nodes = comm.nodes,
          .wire = comm.wire,
          .address = comm.address,
          .threads = threads,
          .progress = comm.progress_threads};
}

void check_srun(const comm::Launcher& launcher) {
  if (launcher.name != "srun" || launcher.size == 1 || std::getenv("PMIX_RANK") != nullptr ||
      comm::MpiSession::starts_without_pmix())
    return;
  throw ConfigError(comm::disagreement(launcher, 0, 1, comm::MpiSession::library_version()));
}

Job::Job(const JobOptions& options)
    : launcher_(read_launcher()), topology_(device::read_topology()) {
  if (const std::string warning = team_warning(topology_); launcher_.rank == 0 && !warning.empty())
    log::warn("{}", warning);
  const int omp_threads = read_surroundings().omp_num_threads;
  if (launcher_.name == "none") {
    communicator_ = comm::make_single_communicator();
    communicator_->set_timeout(options.timeout);
    threads_ = choose_threads(options.threads, omp_threads, topology_, 1);
    return;
  }
  check_srun(launcher_);
  // MPI needs to know before it starts. If the launcher does not report how many ranks share the
  // node, there are at most as many threads as for one rank.
  const int neighbours = std::max(1, launcher_.local_size);
  const int threads = choose_threads(options.threads, omp_threads, topology_, neighbours);
  const bool multiple =
      count_progress_threads(options.progress, threads, cores_of_rank(topology_, neighbours)) > 0;
  session_.emplace(
      multiple ? comm::MpiSession::Threads::multiple : comm::MpiSession::Threads::funneled, nullptr,
      nullptr, std::max(options.timeout, comm::MpiSession::kStartSeconds));
  communicator_ = session_->communicator({.shared_memory = options.shared_memory,
                                          .timeout = options.timeout,
                                          .nodes = comm::nodes_named(options.nodes),
                                          .wire = comm::wire_named(options.wire),
                                          .address = options.address});
  if (const std::string wrong =
          comm::disagreement(launcher_, communicator_->rank(), communicator_->size(),
                             comm::MpiSession::library_version());
      !wrong.empty())
    throw ConfigError(wrong);
  threads_ = choose_threads(options.threads, omp_threads, topology_, communicator_->local_size());
  const ProgressChoice choice =
      start_progress(*communicator_, options.progress, threads_, topology_);
  if (choice.line.empty()) return;
  progress_ = choice.line.substr(choice.line.find(' ') + 1);
  if (launcher_.rank == 0)
    log::write(choice.doubtful ? log::Level::warn : log::Level::info, choice.line);
}

namespace {

/// Returns the limit of labels: data.classes, or the model's outputs where they are fewer.
data::ClassLimit class_limit(const config::RunConfig& config) {
  const int64_t own = data::known_dataset(config.data.dataset).classes;
  const int64_t set = config.data.classes > 0 ? config.data.classes : own;
  if (config.model.classes > 0 && config.model.classes < set)
    return {.count = config.model.classes, .key = "model.classes"};
  return {.count = config.data.classes};
}

data::ArraysSpec arrays_spec(const config::DataSection& data) {
  return {.train = data.train_files,
          .validation = data.validation_files,
          .test = data.test_files,
          .fields = data.fields,
          .statistics = data.statistics};
}

int64_t samples_of(const config::RunConfig& config, bool train) {
  if (config.data.dataset == "neurons")
    return train ? config.tracing.seeds : config.tracing.validation_seeds;
  return train ? config.data.generate_train : config.data.generate_test;
}

data::NeuronSetSpec neuron_spec(const config::RunConfig& config) {
  const config::TracingSection& tracing = config.tracing;
  const auto along = [](const std::vector<int64_t>& axes) {
    return data::Voxels3{axes[0], axes[1], axes[2]};
  };
  return {.fov = along(tracing.fov),
          .deltas = along(tracing.deltas),
          .min_object = tracing.min_object,
          .partitions = tracing.partitions,
          .seed = static_cast<uint64_t>(config.data.split_seed)};
}

data::TextSetSpec text_spec(const config::RunConfig& config) {
  using Kind = data::TextSetSpec::Kind;
  const config::DataSection& own = config.data;
  return {.kind = own.tokenizer == config::TextTokens::bytes ? Kind::bytes : Kind::characters,
          .window = own.window,
          .segments = own.segments,
          .cut = own.validation,
          .vocabulary = own.vocabulary};
}

data::DatasetSpec dataset_spec(const config::RunConfig& config, const std::string& part) {
  return {.name = config.data.dataset,
          .dir = config.data.dir,
          .split = part,
          .classes = class_limit(config),
          .seed = static_cast<uint64_t>(config.data.generate_seed),
          .count = samples_of(config, part == "train"),
          .threads = static_cast<int>(config.run.threads),
          .when_read = config.data.generate_when_read,
          .arrays = arrays_spec(config.data),
          .neurons = neuron_spec(config),
          .clicks = click_spec(config),
          .text = text_spec(config)};
}

/// The end of a text is for validation, since adjacent windows show the same scene.
data::ValidationCut cut_text(data::DatasetSpec spec, bool training) {
  data::ValidationCut cut;
  spec.text.part = data::TextSetSpec::Part::behind_cut;
  cut.validation = data::open_dataset(spec);
  spec.text.part = data::TextSetSpec::Part::before_cut;
  spec.text.anywhere = training;
  cut.train = data::open_dataset(spec);
  return cut;
}

/// Opens the training set with and without the samples that data.validation takes out. `training`:
/// it is trained on.
data::ValidationCut open_cut(const config::RunConfig& config, bool training) {
  if (data::has_split(dataset_spec(config, "validation")))
    throw ConfigError(
        fmt::format("data.validation = {}: {} has a validation set of its own; leave the key out",
                    config.data.validation, config.data.dataset));
  if (config::is_text(config.data)) return cut_text(dataset_spec(config, "train"), training);
  auto whole = data::open_dataset(dataset_spec(config, "train"));
  if (std::ranges::any_of(data::parse_field_lines(config.data.fields), [](const auto& line) {
        return line.place == data::FieldLine::Place::cut;
      }))
    log::warn(
        "data.validation takes blocks out of boxes that training sees as well, and neighbours "
        "look alike: name boxes of their own in data.validation_files");
  const int64_t count = data::validation_count(config.data.validation, whole->size());
  return data::cut_validation(std::move(whole), count,
                              static_cast<uint64_t>(config.data.split_seed));
}

}  // namespace

void require_data(const config::DataSection& data) {
  if (data.dir.empty() && data.dataset != "lattices" && data.train_files.empty())
    throw ConfigError(fmt::format(
        "data.dir is empty: give --data-dir, the folder with the files of {}", data.dataset));
  if (!data.statistics.empty()) require_path("data.statistics", data.statistics);
  if (!data.vocabulary.empty()) require_path("data.vocabulary", data.vocabulary);
}

std::vector<std::string> configured_parts(const config::RunConfig& config) {
  require_data(config.data);
  std::vector<std::string> parts = {"train"};
  for (const char* part : {"validation", "test"})
    if (data::has_split(dataset_spec(config, part)) ||
        (config.data.validation > 0 && std::string_view(part) == "validation"))
      parts.emplace_back(part);
  return parts;
}

std::vector<std::filesystem::path> files_of_part(const config::RunConfig& config,
                                                 const std::string& part) {
  return data::dataset_files(dataset_spec(config, part));
}

std::vector<std::filesystem::path> configured_files(const config::RunConfig& config) {
  std::vector<std::filesystem::path> files;
  for (const std::string& part : configured_parts(config)) {
    const data::DatasetSpec spec = dataset_spec(config, part);
    if (!data::has_split(spec))
      continue;  // data.validation takes this part out of the training
                 // set
    const auto more = data::dataset_files(spec);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

data::ClickSetSpec click_spec(const config::RunConfig& config) {
  return {.rows = config.data.table_rows,
          .bags = config.data.bag_length,
          .weighted = config.data.bag_weights,
          .vocabulary = config.data.vocabulary};
}

std::unique_ptr<data::Dataset> open_configured(const config::RunConfig& config,
                                               const std::string& part) {
  require_data(config.data);
  if (config.data.validation > 0 && part != "test") {
    data::ValidationCut cut = open_cut(config, false);
    return part == "train" ? std::move(cut.train) : std::move(cut.validation);
  }
  return data::open_dataset(dataset_spec(config, part));
}

ConfiguredData open_configured(const config::RunConfig& config, const VolumeReading& volumes) {
  require_data(config.data);
  ConfiguredData data;
  const auto open = [&](const std::string& part) {
    data::DatasetSpec spec = dataset_spec(config, part);
    spec.neurons.quarantine = volumes.quarantine;
    spec.neurons.node = volumes.node;
    spec.text.anywhere = part == "train";
    return data::open_dataset(spec);
  };
  if (config.data.validation > 0) {
    data::ValidationCut cut = open_cut(config, true);
    data.train = std::move(cut.train);
    data.validation = std::move(cut.validation);
  } else {
    data.train = open("train");
  }
  for (const std::string& part : configured_parts(config)) {
    if (part == "validation" && !data.validation) data.validation = open(part);
    if (part == "test") data.test = open(part);
  }
  if (!data.validation && !data.test)
    throw ConfigError(
        "nothing judges the run: name data.validation_files or data.test_files, or let "
        "data.validation take samples from the training set");
  if (const auto* neurons = dynamic_cast<const data::NeuronSet*>(data.train.get()))
    data.canvases = neurons->canvases();
  if (const auto* text = dynamic_cast<const data::TextSet*>(data.train.get());
      text && text->tokenizer())
    data.tokenizer = text->tokenizer()->files();
  if (const data::PairSet* pairs = data::pairs_in(*data.train)) {
    if (pairs->tokenizer()) data.tokenizer = pairs->tokenizer()->files();
    if (pairs->source_tokenizer()) data.source_tokenizer = pairs->source_tokenizer()->files();
  }
  const auto say_left_out = [](const data::Dataset* set, const char* part) {
    const auto* pairs = dynamic_cast<const data::PairSet*>(set);
    if (pairs && pairs->left_out() > 0)
      log::info(
          "{}: {} of {} pairs are left out: one of both is empty, or too long for data.window",
          part, pairs->left_out(), pairs->left_out() + pairs->size());
  };
  say_left_out(data.train.get(), "train");
  say_left_out(data.validation.get(), "validation");
  say_left_out(data.test.get(), "test");
  const auto check_same = [&](const data::Dataset& other, const char* part) {
    data::check_same_fields(*data.train, other, part);
    data::check_same_tokens(*data.train, other, part);
  };
  if (data.validation) check_same(*data.validation, "validation");
  if (data.test) check_same(*data.test, "test");
  return data;
}

std::string machine_line() {
  const device::Topology topology = device::read_topology();
  return fmt::format("{}, {} cores, {:.1f} GiB", topology.cpu_model, topology.cores,
                     static_cast<double>(topology.memory_bytes) / (1 << 30));
}

std::string binding_line(const device::Topology& topology) {
  return topology.bound_cores < topology.cores
             ? fmt::format("bound to {} of {} cores", topology.bound_cores, topology.cores)
             : "not bound";
}

std::filesystem::path tuning_file(const std::string& setting) {
  if (setting != "auto")
    return setting == "off" ? std::filesystem::path() : std::filesystem::path(setting);
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value ? value : "");
  };
  std::filesystem::path folder = variable("TUTTI_CACHE_DIR");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty())
    folder = variable("XDG_CACHE_HOME") / "tutti";
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") / ".cache" / "tutti";
  if (folder.empty()) return {};
  // The key contains the build itself, not only its commit: kernels change between two commits, and
  // measurements of the old ones would hide the new.
  const uint64_t key = fnv1a(device::read_topology().cpu_model + backend::onednn_version() +
                             backend::onednn_effective_isa() + version_short() + build_id());
  return folder / fmt::format("tuning-{:016x}.txt", key);
}

double process_start_time() {
  double up = 0;
  std::ifstream("/proc/uptime") >> up;
  const auto self = process_state(getpid());
  if (!self || up <= 0) return trace::unix_now();
  const auto ticks = static_cast<double>(self->began);
  return trace::unix_now() - (up - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace tutti::cli
