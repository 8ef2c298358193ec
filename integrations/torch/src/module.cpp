// Defines the Python module tutti_torch._backend.

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"
#include "progress_thread.h"

namespace {

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                         int size, std::chrono::duration<double> timeout) {
  return c10::make_intrusive<tutti_torch::TuttiBackend>(tutti_torch::Group::Options{
      .store = store,
      .rank = rank,
      .size = size,
      .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout)});
}

}  // namespace

PYBIND11_MODULE(_backend, module) {
  module.doc() = "torch.distributed over libtutticomm";
  module.def("create", &create, "A process group; collective over its ranks.",
             pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"),
             pybind11::arg("timeout"), pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def(
      "stop", [] { tutti_torch::ProgressThread::get().stop(); }, "Ends the thread of its own.",
      pybind11::call_guard<pybind11::gil_scoped_release>());
}
