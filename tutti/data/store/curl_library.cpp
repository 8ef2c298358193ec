#include "tutti/data/store/curl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

constexpr const char* kFile = "libcurl.so.4";

template <class F>
void load(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  if (!function) throw IoError(fmt::format("{} has no function {}", kFile, name));
}

CurlLibrary load_library() {
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw IoError(
        fmt::format("cannot load libcurl, which fetches files: {}; install it (Debian: "
                    "libcurl4)",
                    dlerror()));
  CurlLibrary curl;
  load(library, "curl_global_init", curl.global_init);
  load(library, "curl_easy_init", curl.easy_init);
  load(library, "curl_easy_cleanup", curl.easy_cleanup);
  load(library, "curl_easy_perform", curl.easy_perform);
  load(library, "curl_easy_strerror", curl.easy_strerror);
  load(library, "curl_slist_append", curl.slist_append);
  load(library, "curl_slist_free_all", curl.slist_free_all);
  load(library, "curl_easy_setopt", curl.easy_setopt);
  load(library, "curl_easy_getinfo", curl.easy_getinfo);
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary curl = load_library();
  return curl;
}

}  // namespace tutti::data
