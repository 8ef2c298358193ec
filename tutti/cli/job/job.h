#pragma once
// What verbs that compute share: the ranks they run as, the data they read, the machine they run
// on.

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

namespace tutti {

struct JobOptions {
  double timeout = 60;         ///< seconds; of every wait
  bool shared_memory = true;   ///< false sends everything through MPI, also on one node
  std::string nodes = "auto";  ///< as comm.nodes
  std::string wire = "auto";   ///< as comm.wire
  std::string address = {};    ///< as comm.address
  int threads = 0;             ///< compute threads of a rank; 0: as choose_threads says
  std::string progress = "0";  ///< as comm.progress_threads
};

/// Throws ConfigError where srun has started this process without anything that tells MPI its rank,
/// and MPI would end it for that. Before MPI is started.
void check_srun(const comm::Launcher& launcher);

/// This process as a rank: MPI under a launcher, alone otherwise (then MPI is not even
/// initialised). Logs how operations are moved forward.
class Job {
 public:
  explicit Job(const JobOptions& options);
  comm::Communicator& communicator() const { return *communicator_; }
  const comm::Launcher& launcher() const { return launcher_; }
  const Topology& topology() const { return topology_; }
  int threads() const { return threads_; }
  /// "1 thread on core 5"; empty for a single rank.
  const std::string& progress() const { return progress_; }

 private:
  comm::Launcher launcher_;
  Topology topology_;
  int threads_ = 1;
  std::string progress_;
  std::optional<comm::MpiSession> session_;
  std::unique_ptr<comm::Communicator> communicator_;  // gone before the session
};

/// ConfigError where keys do not say where the data is, or name files that are not there.
void require_data(const DataSection& data);

/// The parts of the configured data set that there are: of "train", "validation" and "test". One
/// for validation is the data set's own, or data.validation takes it from the training set.
std::vector<std::string> configured_parts(const RunConfig& config);

/// One of them. ConfigError where there is none of that name, or where labels exceed data.classes
/// or model.classes, naming file, record, label and key.
std::unique_ptr<data::Dataset> open_configured(const RunConfig& config, const std::string& part);

/// How click logs are read; without their files.
data::ClickSetSpec click_spec(const RunConfig& config);

/// The files that one of them consists of.
std::vector<std::filesystem::path> files_of_part(const RunConfig& config, const std::string& part);
/// The files that all parts that there are consist of, below data.dir.
std::vector<std::filesystem::path> configured_files(const RunConfig& config);

/// What a training run reads: all parts that there are.
struct ConfiguredData {
  std::unique_ptr<data::Dataset> train, validation, test;
  std::unique_ptr<data::Dataset> canvases;  ///< where fields of view move
  /// Of the training text, where it is known; of pairs the target's, and the source's.
  std::optional<data::Tokenizer::Files> tokenizer{}, source_tokenizer{};
  RunData view() const { return {train.get(), validation.get(), test.get(), canvases.get()}; }
};

/// How volumes of neurons are read.
struct VolumeReading {
  int64_t quarantine = 0;            ///< that may be left out of each part
  data::NodeMemory* node = nullptr;  ///< data::NeuronSetSpec
};

/// Their samples must be of one size.
ConfiguredData open_configured(const RunConfig& config, const VolumeReading& volumes = {});

/// "Intel Xeon, 2 cores, 23.5 GiB": the line that goes with every measurement.
std::string machine_line();

/// "bound to 1 of 2 cores" or "not bound": of the calling process.
std::string binding_line(const Topology& topology);

/// Where measurements on this machine are kept between runs, for plan.tuning = `setting`: "auto" is
/// the user's cache folder (TUTTI_CACHE_DIR, XDG_CACHE_HOME/tutti or HOME/.cache/tutti), one file
/// per processor and build; "off" and a homeless user: empty.
std::filesystem::path tuning_file(const std::string& setting);

/// Unix time at which this process started, from the kernel's books.
double process_start_time();

}  // namespace tutti
