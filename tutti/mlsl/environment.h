#pragma once
// Environment: a process's part in the job: its world, its settings, and the objects it has made.

#include <optional>

#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/mlsl/heap.h"
#include "tutti/mlsl/session.h"

namespace tutti::mlsl {

/// Not thread-safe. The comments of the public class describe its calls; here errors are thrown.
class Environment final : public api::Environment {
 public:
  /// `variables` returns the values of environment variables.
  explicit Environment(comm::Environment variables) : variables_(std::move(variables)) {}
  ~Environment();

  void configure(const char* text);
  /// Starts MPI, or uses it if the program has started it. Throws CommError if MPI has ended,
  /// because it starts only once in a process.
  void init();
  /// Starts on ranks that communicate already; `ranks` outlives finalize(). Collective.
  void init(comm::Communicator& ranks);
  void finalize();
  bool initialized() const { return heap_ != nullptr; }  ///< false after an init() that failed
  /// The calls below are only allowed between init() and finalize().
  Job& job();
  size_t process_index() { return static_cast<size_t>(job().world().rank()); }
  size_t process_count() { return static_cast<size_t>(job().world().size()); }
  RequestTable& requests() { return requests_; }

  Session& create_session(api::PhaseType phase);
  void remove_session(const Session* session);
  /// Collective.
  Distribution& create_distribution(size_t data_parts, size_t model_parts);
  Distribution& create_distribution(const layout::Colours& colours);
  void remove_distribution(const Distribution* distribution);

  void* allocate(size_t bytes, size_t alignment);
  void free(void* memory);
  void set_quantization(const api::QuantParams* params);
  const Quantizer* quantizer() const { return quantizer_.get(); }
  api::QuantParams* quantization() { return quantizer_ ? quantizer_->params() : nullptr; }

  /// Returns " rank 3", or nothing before init(), for messages.
  std::string who() const;

 private:
  Distribution& add(layout::Distribution layout);
  void start_servers(int local_rank);
  void tell_ignored_settings() const;

  comm::Environment variables_;
  std::optional<int> colour_;
  std::unique_ptr<Quantizer> quantizer_;
  std::unique_ptr<comm::MpiSession> mpi_;
  std::unique_ptr<comm::Communicator> own_world_;
  std::optional<Job> job_;
  std::shared_ptr<Group> world_;  // shared with the distributions
  std::unique_ptr<Heap> heap_;
  RequestTable requests_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<std::shared_ptr<Distribution>> distributions_;
};

}  // namespace tutti::mlsl
