#include "tutti/capi/status.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "tutti/comm/run/plan_error.h"

// The build passes the project's version.
static_assert(TUTTI_COMM_VERSION == TUTTI_PROJECT_VERSION,
              "tutti_comm.h carries another version than the project");

namespace tutti::capi {
namespace {

// No std::string: keeping the text of an error must not fail.
thread_local std::array<char, 4096> last_error{};

int keep(int status, std::string_view text) noexcept {
  const size_t n = std::min(text.size(), last_error.size() - 1);
  std::memcpy(last_error.data(), text.data(), n);
  last_error[n] = 0;
  return status;
}

}  // namespace

int fail(std::atomic<bool>* failed) noexcept {
  try {
    throw;
  } catch (const comm::PlanError& error) {
    return keep(TUTTI_COMM_ERROR_ARGUMENT, error.what());
  } catch (const ConfigError& error) {
    return keep(TUTTI_COMM_ERROR_ARGUMENT, error.what());
  } catch (const StateError& error) {
    return keep(TUTTI_COMM_ERROR_STATE, error.what());
  } catch (const CommError& error) {
    if (failed != nullptr) *failed = true;
    return keep(TUTTI_COMM_ERROR_FAILED, error.what());
  } catch (const IoError& error) {
    return keep(TUTTI_COMM_ERROR_FILE, error.what());
  } catch (const std::bad_alloc&) {
    return keep(TUTTI_COMM_ERROR_MEMORY, "not enough memory");
  } catch (const std::exception& error) {
    return keep(TUTTI_COMM_ERROR_INTERNAL, error.what());
  } catch (...) {
    return keep(TUTTI_COMM_ERROR_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace tutti::capi

int tutti_comm_version(void) { return TUTTI_COMM_VERSION; }

const char* tutti_comm_last_error(void) { return tutti::capi::last_error.data(); }

const char* tutti_comm_status_name(int status) {
  switch (status) {
    case TUTTI_COMM_OK: return "TUTTI_COMM_OK";
    case TUTTI_COMM_ERROR_ARGUMENT: return "TUTTI_COMM_ERROR_ARGUMENT";
    case TUTTI_COMM_ERROR_STATE: return "TUTTI_COMM_ERROR_STATE";
    case TUTTI_COMM_ERROR_FAILED: return "TUTTI_COMM_ERROR_FAILED";
    case TUTTI_COMM_ERROR_FILE: return "TUTTI_COMM_ERROR_FILE";
    case TUTTI_COMM_ERROR_MEMORY: return "TUTTI_COMM_ERROR_MEMORY";
    case TUTTI_COMM_ERROR_INTERNAL: return "TUTTI_COMM_ERROR_INTERNAL";
    default: return "unknown status";
  }
}
