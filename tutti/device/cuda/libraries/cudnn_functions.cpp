#include "tutti/device/cuda/libraries/cudnn_functions.h"

#include <fmt/format.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/device/cuda/libraries/opened_library.h"

namespace tutti::device {
namespace {

CudnnFunctions find_functions() {
  OpenedLibrary library(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
  CudnnFunctions f;
  library.find("cudnnGetVersion", f.version);
  library.find("cudnnGetErrorString", f.error_text);
  library.find("cudnnGetLastErrorString", f.last_error);
  library.find("cudnnCreate", f.create);
  library.find("cudnnDestroy", f.destroy);
  library.find("cudnnSetStream", f.set_stream);
  library.find("cudnnBackendCreateDescriptor", f.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", f.destroy_descriptor);
  library.find("cudnnBackendFinalize", f.finalize);
  library.find("cudnnBackendSetAttribute", f.set_attribute);
  library.find("cudnnBackendGetAttribute", f.get_attribute);
  library.find("cudnnBackendExecute", f.execute);
  f.problem = library.problem();
  return f;
}

}  // namespace

const CudnnFunctions& cudnn_functions() {
  static const CudnnFunctions functions = find_functions();
  return functions;
}

void check_cudnn(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> words = {};
  cudnn_functions().last_error(words.data(), words.size());
  std::string text = words.data();
  text = text.substr(0, text.find('\n'));
  throw DeviceError(fmt::format("cuDNN, {}: {}{}{}", doing, cudnn_functions().error_text(status),
                                text.empty() ? "" : ": ", text));
}

}  // namespace tutti::device
