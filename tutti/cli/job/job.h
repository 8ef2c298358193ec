#pragma once
// The common parts of verbs that compute: the ranks they run as, the data they read, the machine
// they run on.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/cli/config/config.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/data/clicks/click_set.h"
#include "tutti/data/dataset.h"
#include "tutti/data/neurons/neuron_content.h"
#include "tutti/data/text/tokenizer.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/train/settings/run_data.h"

namespace tutti::cli {

struct JobOptions {
  double timeout = 60;         ///< seconds, for every wait
  bool shared_memory = true;   ///< false sends everything through MPI, also on one node
  std::string nodes = "auto";  ///< as comm.nodes
  std::string wire = "auto";   ///< as comm.wire
  std::string address = {};    ///< as comm.address
  int threads = 0;             ///< compute threads of a rank; 0: choose_threads decides
  std::string progress = "0";  ///< as comm.progress_threads
};

/// Returns the options of a run with these keys.
JobOptions job_options(const config::CommSection& comm, int threads);

/// Throws ConfigError if srun has started this process without anything that gives MPI its rank:
/// MPI would then end it. Call it before MPI is started.
void check_srun(const comm::Launcher& launcher);

/// This process as a rank: MPI under a launcher, alone otherwise (then MPI is not even
/// initialised). Logs how operations make progress.
class Job {
 public:
  explicit Job(const JobOptions& options);
  comm::Communicator& communicator() const { return *communicator_; }
  const comm::Launcher& launcher() const { return launcher_; }
  const device::Topology& topology() const { return topology_; }
  int threads() const { return threads_; }
  /// "1 thread on core 5"; empty for a single rank.
  const std::string& progress() const { return progress_; }

 private:
  comm::Launcher launcher_;
  device::Topology topology_;
  int threads_ = 1;
  std::string progress_;
  std::optional<comm::MpiSession> session_;
  std::unique_ptr<comm::Communicator> communicator_;  // destroyed before the session
};

/// Throws ConfigError where keys do not say where the data is, or name files that do not exist.
void require_data(const config::DataSection& data);

/// Returns the existing parts of the configured data set: of "train", "validation" and "test".
/// Validation samples are the data set's own, or data.validation takes them from the training set.
std::vector<std::string> configured_parts(const config::RunConfig& config);

/// Opens one part. Throws ConfigError where there is no part of that name, or where labels exceed
/// data.classes or model.classes, naming file, record, label and key.
std::unique_ptr<data::Dataset> open_configured(const config::RunConfig& config,
                                               const std::string& part);

/// Returns how click logs are read, without their files.
data::ClickSetSpec click_spec(const config::RunConfig& config);

/// Returns the files of one part.
std::vector<std::filesystem::path> files_of_part(const config::RunConfig& config,
                                                 const std::string& part);
/// Returns the files of all existing parts, below data.dir.
std::vector<std::filesystem::path> configured_files(const config::RunConfig& config);

/// The data of a training run: all existing parts.
struct ConfiguredData {
  std::unique_ptr<data::Dataset> train, validation, test;
  std::unique_ptr<data::Dataset> canvases;  ///< set where fields of view move
  /// The tokenizer of the training text, where it is known; for pairs the target's, and the
  /// source's.
  std::optional<data::Tokenizer::Files> tokenizer{}, source_tokenizer{};
  train::RunData view() const {
    return {train.get(), validation.get(), test.get(), canvases.get()};
  }
};

/// How volumes of neurons are read.
struct VolumeReading {
  int64_t quarantine = 0;            ///< how many may be left out of each part
  data::NodeMemory* node = nullptr;  ///< data::NeuronSetSpec
};

/// Opens all existing parts. Their samples must be of one size.
ConfiguredData open_configured(const config::RunConfig& config, const VolumeReading& volumes = {});

/// Returns "Intel Xeon, 2 cores, 23.5 GiB": the line that goes with every measurement.
std::string machine_line();

/// Returns "bound to 1 of 2 cores" or "not bound" for the calling process.
std::string binding_line(const device::Topology& topology);

/// Returns the file in which measurements on this machine are kept between runs, for plan.tuning =
/// `setting`: for "auto" it is in the user's cache folder (TUTTI_CACHE_DIR, XDG_CACHE_HOME/tutti or
/// HOME/.cache/tutti), one file per processor and build; for "off" and a homeless user it is empty.
std::filesystem::path tuning_file(const std::string& setting);

/// Returns the Unix time at which this process started, as the kernel reports it.
double process_start_time();

}  // namespace tutti::cli
