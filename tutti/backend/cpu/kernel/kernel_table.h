#pragma once
// Which kernels an op has. A file of kernels defines
//   void register_NAME(KernelTable& table) { table.add<Op>(maker); }
// and is found by the build, which writes the list that calls all of them in the order of the
// files.

#include <concepts>
#include <cstddef>
#include <cstring>
#include <map>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "tutti/backend/backend.h"

namespace tutti::backend {

using KernelCandidates = std::vector<KernelCandidate>;

/// Returns make(request, op), or make(request) for a function that takes no op.
template <class Make, class O>
auto made_by(const Make& make, const KernelRequest& request, const O& op) {
  if constexpr (std::invocable<const Make&, const KernelRequest&, const O&>)
    return make(request, op);
  else
    return make(request);
}

class KernelTable {
 public:
  /// The place of a kernel that does not say another one.
  static constexpr int kLast = 1000;

  /// Registers `make`, a function or a lambda that holds plain values of at most four pointers'
  /// size, for each of the ops O. It is called as make(request, op), or as make(request) if it
  /// needs no more, and returns one candidate or several, refusals included. Kernels of a smaller
  /// place are listed first: the first that accepts is taken where nothing is measured. Those of
  /// one place stand in the order of registration.
  template <class... O, class Make>
  void add(Make make, int place = kLast) {
    (put(typeid(O), Entry(append<O, Make>, make), place), ...);
  }
  /// Registers what runs an op on other kernels, with its operands brought into another form. It
  /// is called as make(request, op, candidates so far) after all kernels of the op, and appends.
  template <class... O, class Make>
  void add_adapter(Make make, int place = kLast) {
    (put_adapter(typeid(O), Entry(adapt<O, Make>, make), place), ...);
  }

  /// Returns the candidates of the op's kernels, without adapters.
  KernelCandidates kernels(const KernelRequest& request) const;
  /// Returns all candidates; none for an op that has no kernel.
  KernelCandidates candidates(const KernelRequest& request) const;

 private:
  // There are hundreds of registrations, so each costs the compiler one plain function.
  using Append = void (*)(const void* make, const KernelRequest& request, KernelCandidates& found);

  struct Entry {
    template <class Make>
    Entry(Append function, const Make& maker) : append(function) {
      static_assert(std::is_trivially_copyable_v<Make> && sizeof(Make) <= sizeof(make));
      std::memcpy(make, &maker, sizeof(Make));
    }
    Append append;
    alignas(void*) std::byte make[4 * sizeof(void*)];
  };
  using List = std::multimap<int, Entry>;  // keeps the order of registration in one place
  struct Lists {
    List kernels, adapters;
  };

  template <class O, class Make>
  static void append(const void* make, const KernelRequest& r, KernelCandidates& found) {
    take(made_by(*static_cast<const Make*>(make), r, static_cast<const O&>(*r.op)), found);
  }
  template <class O, class Make>
  static void adapt(const void* make, const KernelRequest& r, KernelCandidates& found) {
    (*static_cast<const Make*>(make))(r, static_cast<const O&>(*r.op), found);
  }
  static void take(KernelCandidate made, KernelCandidates& found);
  static void take(KernelCandidates made, KernelCandidates& found);
  void put(std::type_index op, const Entry& entry, int place);
  void put_adapter(std::type_index op, const Entry& entry, int place);

  std::map<std::type_index, Lists> lists_;
};

/// Calls the register functions of all files of kernels; the build writes it.
void register_all(KernelTable& table);

/// Returns the table of all kernels, which is made at the first call.
const KernelTable& cpu_kernels();

}  // namespace tutti::backend
