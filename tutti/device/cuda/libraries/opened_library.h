#pragma once
// A shared library of the maker's that is loaded when it is asked for, since nodes without a GPU
// have none.

#include <string>

namespace tutti::device {

/// It stays loaded as long as the process, because its own threads and data would have to end
/// before it.
class OpenedLibrary {
 public:
  /// Looks for `name` ("libcudnn.so.9") as the loader does (LD_LIBRARY_PATH, ldconfig), then beside
  /// the file that this code is in.
  explicit OpenedLibrary(const std::string& name);

  /// Sets `function` to the one of that name. A missing one is a problem.
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(find(name));
  }
  /// Returns why it cannot be used; empty: it can.
  const std::string& problem() const { return problem_; }

 private:
  void* find(const char* name);

  std::string name_, problem_;
  void* file_ = nullptr;
};

}  // namespace tutti::device
