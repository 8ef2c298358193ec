#include "tutti/data/store/fetch.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/sha256.h"
#include "tutti/base/own_file.h"
#include "tutti/base/small_text.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

std::string sha256_of(const fs::path& file) {
  Sha256 hash;
  FileBytes::open(file).walk(0,
                             [&](std::span<const uint8_t> block, int64_t) { hash.update(block); });
  return hash.digest();
}

int64_t size_on_disk(const fs::path& file) {
  std::error_code none;
  const auto bytes = fs::file_size(file, none);
  return none ? 0 : static_cast<int64_t>(bytes);
}

/// libcurl, loaded at the first fetch: it loads two dozen libraries, which every rank of every run
/// would load otherwise.
class Curl {
 public:
  static const Curl& get() {
    static const Curl curl;
    return curl;
  }
  decltype(&curl_easy_init) init;
  decltype(&curl_easy_cleanup) cleanup;
  decltype(&curl_easy_setopt) set;
  decltype(&curl_easy_getinfo) info;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_strerror) words;
  decltype(&curl_slist_append) append;
  decltype(&curl_slist_free_all) free_all;

 private:
  Curl() : library_(::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_)
      throw IoError(fmt::format(
          "tutti data fetch needs libcurl, and it cannot be loaded: {}; install it (Debian: "
          "libcurl4), or download the files in another way",
          ::dlerror()));
    decltype(&curl_global_init) start = nullptr;
    load("curl_global_init", start);
    load("curl_easy_init", init);
    load("curl_easy_cleanup", cleanup);
    load("curl_easy_setopt", set);
    load("curl_easy_getinfo", info);
    load("curl_easy_perform", perform);
    load("curl_easy_strerror", words);
    load("curl_slist_append", append);
    load("curl_slist_free_all", free_all);
    if (const CURLcode code = start(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
      throw IoError(fmt::format("libcurl does not start: {}", words(code)));
  }
  template <class Function>
  void load(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (!function) throw IoError(fmt::format("libcurl.so.4 has no {}: it is another one", name));
  }
  void* library_;  // stays until the process ends
};

/// Sets an option. An option that libcurl refuses or does not know is an error: without the
/// protocols a list could name local files, and without the range another file's rest could follow.
template <class Value>
void set_option(CURL* curl, CURLoption option, Value value) {
  const CURLcode code = Curl::get().set(curl, option, value);
  if (code != CURLE_OK)
    throw IoError(fmt::format(
        "libcurl.so.4 refuses option {}: {}; tutti data fetch needs libcurl 7.85 or a later one",
        static_cast<int>(option), Curl::get().words(code)));
}

/// Removes a file that need not exist.
void remove_file(const fs::path& file) {
  std::error_code failed;
  fs::remove(file, failed);
  if (failed)
    throw IoError(fmt::format("{}: cannot be removed: {}", file.string(), failed.message()));
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct CloseCurl {
  void operator()(CURL* curl) const { Curl::get().cleanup(curl); }
};
struct FreeHeaders {
  void operator()(curl_slist* list) const { Curl::get().free_all(list); }
};

/// Fetches one file.
class Fetch {
 public:
  Fetch(const FetchItem& item, const FetchSpec& spec)
      : item_(item), spec_(spec), target_(spec.to / item.name), part_(target_.string() + ".part"),
        tag_(part_.string() + ".tag") {}

  /// Returns the bytes that came over the network; -1 where the file existed.
  int64_t run() {
    if (is_there(target_)) {
      expect_regular_file(target_);
      check_sum(target_, "is there already and");
      return -1;
    }
    int64_t came = 0;
    double wait = spec_.wait_seconds;
    for (int failed = 0;;) {
      const int64_t before = size_on_disk(part_), held = remove_foreign() ? 0 : before;
      const std::string problem = attempt();
      const int64_t now = size_on_disk(part_);
      came += std::max<int64_t>(now - held, 0);
      if (problem.empty()) break;
      failed = now > before ? 0 : failed + 1;
      if (failed >= spec_.tries || for_ever_)
        throw IoError(fmt::format("{}: {}; {} bytes are in {}: the same command goes on there",
                                  item_.url, problem, now, part_.string()));
      log::warn("{}: {} after {} bytes; trying again", item_.url, problem, now);
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      wait = now > before ? spec_.wait_seconds : wait * 2;
    }
    finish();
    return came;
  }

 private:
  /// Removes a part that belongs to another user, or is reported so by the file system (NFS shows
  /// root's as nobody's): it is not continued. Returns whether there was one.
  bool remove_foreign() const {
    const auto foreign = [](const fs::path& file) {
      struct stat status {};
      return ::lstat(file.c_str(), &status) == 0 && is_foreign_owner(status.st_uid);
    };
    if (!foreign(part_) && !foreign(tag_)) return false;
    remove_file(part_);
    remove_file(tag_);
    return true;
  }

  /// Returns the problem, or an empty string.
  std::string attempt() {
    const std::unique_ptr<CURL, CloseCurl> curl(Curl::get().init());
    CHECK(curl, "libcurl does not start");
    std::string tag;
    if (std::ifstream noted = own_input(tag_)) std::getline(noted, tag);
    // Without a tag that proves it the same, the rest may be another file's.
    int64_t held = tag.empty() && item_.sha256.empty() ? 0 : size_on_disk(part_);
    open_part(held);
    std::unique_ptr<curl_slist, FreeHeaders> headers;
    if (held > 0 && !tag.empty()) {
      headers.reset(Curl::get().append(nullptr, ("If-Range: " + tag).c_str()));
      CHECK(headers, "no memory for a header");
    }
    set_options(curl.get(), held, headers.get());
    const CURLcode code = Curl::get().perform(curl.get());
    close_part();
    long status = 0;
    Curl::get().info(curl.get(), CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK) return "";
    if (code == CURLE_RANGE_ERROR || status == 416) {
      // The file differs, or the server does not support ranges: start over.
      remove_file(part_);
      remove_file(tag_);
      if (std::exchange(restarted_, true)) for_ever_ = true;
      return "the server has another file than before or cannot go on within it";
    }
    for_ever_ = code == CURLE_HTTP_RETURNED_ERROR && status >= 400 && status < 500;
    for_ever_ |= code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT;
    return code == CURLE_HTTP_RETURNED_ERROR ? fmt::format("the server answers {}", status)
                                             : Curl::get().words(code);
  }

  /// A file that starts over has no tag until its first bytes come. The old one is removed, not
  /// emptied, so that the new file belongs to this process.
  void open_part(int64_t held) {
    answer_ = {};
    wants_tag_ = held == 0;
    if (wants_tag_) remove_file(tag_), remove_file(part_);
    const int flags = O_WRONLY | (held > 0 ? O_APPEND : O_CREAT | O_EXCL);
    const int file = open_own_file(part_, flags, 0666);
    file_.reset(::fdopen(file, "w"));
    if (!file_) ::close(file);
    CHECK(file_, "no memory for a stream");
  }

  /// Some file systems report only now that the disk is full.
  void close_part() {
    if (std::fclose(file_.release()) != 0 && write_error_ == 0) write_error_ = errno;
    if (write_error_ != 0)
      throw IoError(fmt::format("{}: cannot be written: {}; then the same command goes on",
                                part_.string(), file_error(write_error_)));
  }

  void set_options(CURL* curl, int64_t held, curl_slist* headers) {
    set_option(curl, CURLOPT_URL, item_.url.c_str());
    set_option(curl, CURLOPT_PROTOCOLS_STR, "http,https,ftp");
    set_option(curl, CURLOPT_REDIR_PROTOCOLS_STR, redirections_of(item_.url));
    set_option(curl, CURLOPT_FOLLOWLOCATION, 1L);
    set_option(curl, CURLOPT_FAILONERROR, 1L);
    set_option(curl, CURLOPT_NOSIGNAL, 1L);
    set_option(curl, CURLOPT_CONNECTTIMEOUT, 30L);
    set_option(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    set_option(curl, CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(spec_.stall_seconds)));
    set_option(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(held));
    if (headers) set_option(curl, CURLOPT_HTTPHEADER, headers);
    set_option(curl, CURLOPT_WRITEFUNCTION, &Fetch::take);
    set_option(curl, CURLOPT_WRITEDATA, this);
    set_option(curl, CURLOPT_HEADERFUNCTION, &Fetch::look);
    set_option(curl, CURLOPT_HEADERDATA, this);
  }

  static size_t take(const char* bytes, size_t, size_t count, void* self) {
    auto* fetch = static_cast<Fetch*>(self);
    if (std::exchange(fetch->wants_tag_, false)) fetch->keep_tag();
    const size_t done = std::fwrite(bytes, 1, count, fetch->file_.get());
    if (done < count) fetch->write_error_ = errno;
    return done;
  }

  /// Stores the tag beside a new file. A later response may be about another state of the file, and
  /// must not become the tag of the bytes already held.
  void keep_tag() const noexcept try {
    if (answer_.status == 200 && !answer_.tag.empty()) output_stream(tag_) << answer_.tag << '\n';
  } catch (const std::exception&) {
    // Without a tag the next command starts over.
  }

  /// Notes the server's name for this state of the file: its ETag, or its time of modification.
  /// Redirects come before the final response, so each response starts without a tag.
  static size_t look(const char* bytes, size_t, size_t count, void* self) {
    auto* fetch = static_cast<Fetch*>(self);
    const std::string line(bytes, count);
    if (line.starts_with("HTTP/")) {
      const size_t blank = line.find(' ');
      fetch->answer_ = {.status = blank == line.npos ? 0 : std::atoi(line.c_str() + blank)};
      return count;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos) return count;
    std::string key = line.substr(0, colon);
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
    const size_t first = line.find_first_not_of(" \t", colon + 1),
                 last = line.find_last_not_of(" \t\r\n");
    if (first == line.npos || last < first) return count;
    const std::string value = line.substr(first, last - first + 1);
    const bool better = key == "etag" && !value.starts_with("W/");
    if (better || (key == "last-modified" && fetch->answer_.tag.empty()))
      fetch->answer_.tag = value;
    return count;
  }

  void finish() {
    check_sum(part_, "has come, and");
    std::error_code failed;
    fs::rename(part_, target_, failed);
    if (failed)
      throw IoError(fmt::format("{}: cannot get its name: {}", target_.string(), failed.message()));
    fs::remove(tag_, failed);
    if (!item_.sha256.empty()) note_sum();
    warn_of_another_file();
  }

  /// The fetch succeeds even where a colleague's list in the folder cannot be written.
  void note_sum() const try {
    const fs::path sums = spec_.to / "SHA256SUMS";
    auto out = output_stream(sums, std::ios::app);
    out << item_.sha256 << "  " << item_.name << '\n';
    out.close();
    if (!out)
      throw IoError(fmt::format("{}: cannot be written: {}", sums.string(), file_error(errno)));
  } catch (const IoError& error) {
    log::warn("{}; {} has come and is sound, and is not listed there", error.what(),
              target_.string());
  }

  /// A server may answer with a login page, or hold a pointer file instead of the content.
  void warn_of_another_file() const {
    const FileBytes file = FileBytes::open(target_);
    const Content content = first_bytes_of(file).content;
    const bool page = content == Content::html && !target_.extension().string().starts_with(".htm");
    if (page || is_pointer(content)) log::warn("{}: {}", file.name(), found_instead(file));
  }

  void check_sum(const fs::path& file, const char* how) const {
    if (item_.sha256.empty()) return;
    std::string wanted = item_.sha256;
    std::ranges::transform(wanted, wanted.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string found = sha256_of(file);
    if (found == wanted) return;
    std::error_code ignored;
    if (file == part_) fs::remove(part_, ignored), fs::remove(tag_, ignored);
    throw IoError(fmt::format("{}: {} {} its SHA-256 is {}, and should be {}: {}", item_.url,
                              file.string(), how, found, wanted,
                              file == part_ ? "it was thrown away; try again, or another source"
                                            : "remove it, or fetch into another folder"));
  }

  const FetchItem& item_;
  const FetchSpec& spec_;
  const fs::path target_, part_, tag_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  struct Answer {
    int status = 0;
    std::string tag{};
  };
  Answer answer_;  // the server's last response
  int write_error_ = 0;
  bool wants_tag_ = false, for_ever_ = false, restarted_ = false;
};

}  // namespace

const char* redirections_of(std::string_view url) {
  return url.starts_with("https:") || url.starts_with("HTTPS:") ? "https" : "http,https,ftp";
}

std::vector<FetchItem> known_downloads(std::string_view dataset) {
  struct Published {
    const char *name, *digits, *clothes;  // SHA-256
  };
  static constexpr Published kIdx[] = {
      {"train-images-idx3-ubyte.gz",
       "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
       "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
      {"train-labels-idx1-ubyte.gz",
       "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
       "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
      {"t10k-images-idx3-ubyte.gz",
       "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
       "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
      {"t10k-labels-idx1-ubyte.gz",
       "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
       "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}};
  std::vector<FetchItem> items;
  for (const Published& file : kIdx) {
    if (dataset == "mnist")
      items.push_back(
          {std::string("https://storage.googleapis.com/cvdf-datasets/mnist/") + file.name,
           file.name, file.digits});
    if (dataset == "fashion-mnist")
      items.push_back(
          {std::string("https://fashion-mnist.s3.eu-central-1.amazonaws.com/") + file.name,
           file.name, file.clothes});
  }
  return items;
}

FetchResult fetch_files(const FetchSpec& spec) {
  std::error_code failed;
  fs::create_directories(spec.to, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}", spec.to.string(), failed.message()));
  FetchResult result;
  const auto unknown =
      std::ranges::count_if(spec.items, [](const FetchItem& item) { return item.sha256.empty(); });
  if (unknown > 0)
    log::warn(
        "{} of {} file(s) have no SHA-256 in the list: nothing tells whether what comes is what "
        "was published; a line is: URL SHA256 [NAME]",
        unknown, spec.items.size());
  for (const FetchItem& item : spec.items) {
    const int64_t came = Fetch(item, spec).run();
    ++result.files;
    if (came < 0) continue;
    ++result.fetched_files;
    result.fetched_bytes += came;
  }
  return result;
}

}  // namespace tutti::data
