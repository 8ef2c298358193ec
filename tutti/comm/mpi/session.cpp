#include "tutti/comm/mpi/session.h"

#include <fmt/format.h>

#include <array>
#include <exception>

#include "tutti/base/error.h"
#include "tutti/comm/mpi/alarm.h"
#include "tutti/comm/mpi/deadline.h"
#include "tutti/comm/mpi/mpi_call.h"
#include "tutti/comm/mpi/mpi_communicator.h"

namespace tutti::comm {

Nodes nodes_named(std::string_view name) {
  if (name == "auto") return Nodes::kernel;
  if (name == "hostname") return Nodes::hostname;
  throw ConfigError(fmt::format("nodes are told apart by 'auto' or by 'hostname', not by '{}'", name));
}

MpiSession::MpiSession(Threads wanted) {
  int running = 0;
  MPI_CALL(MPI_Initialized(&running));
  CHECK(running == 0, "one MPI session per process");
  int provided = 0;
  MPI_CALL(MPI_Init_thread(nullptr, nullptr, wanted == Threads::multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided));
  if (provided < MPI_THREAD_FUNNELED) throw CommError("this MPI library does not allow threads beside the one that communicates (MPI_THREAD_FUNNELED)");
  MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > 0) return;
  const Deadline deadline(who_ + ": ending MPI", timeout_);
  MPI_Finalize();
}

std::unique_ptr<Communicator> MpiSession::communicator(const MpiOptions& options) {
  timeout_ = options.timeout;
  auto communicator = std::make_unique<MpiCommunicator>(MPI_COMM_WORLD, options);
  who_ = communicator->who();
  return communicator;
}

void MpiSession::end_job(int code) {
  int running = 0;
  int over = 0;
  MPI_Initialized(&running);
  MPI_Finalized(&over);
  if (running == 0 || over != 0) return;
  Alarm::linger();
  MPI_Abort(MPI_COMM_WORLD, code);
}

std::string MpiSession::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_CALL(MPI_Get_library_version(text.data(), &length));
  std::string version(text.data(), static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace tutti::comm
