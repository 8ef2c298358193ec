#include "tutti/comm/mpi/session.h"

#include <array>
#include <exception>

#include "tutti/base/error.h"
#include "tutti/comm/mpi/mpi_call.h"
#include "tutti/comm/mpi/mpi_communicator.h"

namespace tutti::comm {

MpiSession::MpiSession(Threads wanted) {
  if (running()) return;
  int over = 0;
  MPI_CALL(MPI_Finalized(&over));
  if (over != 0) throw CommError("MPI has been finalised, and cannot be started a second time in a process");
  int provided = 0;
  MPI_CALL(MPI_Init_thread(nullptr, nullptr, wanted == Threads::multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided));
  started_ = true;
  if (provided < MPI_THREAD_FUNNELED) throw CommError("this MPI library does not allow threads beside the one that communicates (MPI_THREAD_FUNNELED)");
  MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

MpiSession::~MpiSession() {
  if (started_ && std::uncaught_exceptions() == 0) MPI_Finalize();
}

std::unique_ptr<Communicator> MpiSession::communicator(const MpiOptions& options) {
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD, options);
}

bool MpiSession::running() {
  int started = 0;
  int over = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&over);
  return started != 0 && over == 0;
}

void MpiSession::end_job(int code) {
  if (running()) MPI_Abort(MPI_COMM_WORLD, code);
}

std::string MpiSession::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_CALL(MPI_Get_library_version(text.data(), &length));
  std::string version(text.data(), static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace tutti::comm
