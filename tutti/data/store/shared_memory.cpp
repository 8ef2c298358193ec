#include "tutti/data/store/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"

namespace tutti::data {

SharedMemory::SharedMemory(const std::string& name, size_t bytes)
    : name_("/" + name), bytes_(bytes) {
  int file = ::shm_open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 && errno == EEXIST) file = ::shm_open(name_.c_str(), O_RDWR, 0600);
  if (file < 0)
    throw IoError(fmt::format("shared memory {}: cannot be opened: {}", name_, file_error(errno)));
  struct stat status {};
  if (::fstat(file, &status) != 0 || !why_foreign(status).empty()) {
    ::close(file);
    throw IoError(fmt::format("shared memory {}: is not used: {}", name_, why_foreign(status)));
  }
  // It only ever grows a file, so the second process changes nothing.
  const int lacks = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* at =
      lacks ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = lacks ? lacks : errno;
  ::close(file);
  if (at == MAP_FAILED) {
    ::shm_unlink(name_.c_str());
    throw IoError(fmt::format(
        "data.cache.memory: a node has no {:.1f} MiB of shared memory (/dev/shm) left for it: {}; "
        "lower data.cache.memory, or give the job more",
        static_cast<double>(bytes) / (1 << 20), file_error(error)));
  }
  data_ = static_cast<std::byte*>(at);
}

SharedMemory::~SharedMemory() { ::munmap(data_, bytes_); }

void SharedMemory::remove_name() const { ::shm_unlink(name_.c_str()); }

}  // namespace tutti::data
