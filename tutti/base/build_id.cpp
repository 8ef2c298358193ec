#include "tutti/base/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdint>
#include <span>

namespace tutti {
namespace {

struct BuildIdSearch {
  uintptr_t inside;  // an address within the wanted object
  std::string found;
};

size_t padded(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

// Returns the description of the GNU build id among an object's notes, or nothing.
std::string id_among(std::span<const unsigned char> notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(notes.data());
    const size_t description = sizeof note + padded(note.n_namesz);
    const size_t whole = description + padded(note.n_descsz);
    if (whole > notes.size()) break;
    const bool gnu = std::string_view(reinterpret_cast<const char*>(notes.data() + sizeof note),
                                      note.n_namesz) == std::string_view("GNU\0", 4);
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      std::string digits;
      for (const unsigned char byte : notes.subspan(description, note.n_descsz))
        digits += fmt::format("{:02x}", byte);
      return digits;
    }
    notes = notes.subspan(whole);
  }
  return {};
}

int look_into(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<BuildIdSearch*>(data);
  const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
  bool holds = false;
  for (const auto& part : headers) {
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    holds |=
        part.p_type == PT_LOAD && search.inside >= begin && search.inside - begin < part.p_memsz;
  }
  if (!holds) return 0;
  for (const auto& part : headers)
    if (part.p_type == PT_NOTE && search.found.empty())
      search.found = id_among(
          {reinterpret_cast<const unsigned char*>(object->dlpi_addr + part.p_vaddr), part.p_memsz});
  return 1;
}

}  // namespace

std::string build_id() {
  BuildIdSearch search{.inside = reinterpret_cast<uintptr_t>(&build_id), .found = {}};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

}  // namespace tutti
