#pragma once
// Which kernels an op has. A file of kernels defines
//   void register_NAME(KernelTable& table) { table.add<Op>(maker); }
// and is found by the build, which writes the list that calls all of them in the order of the
// files.

#include <algorithm>
#include <concepts>
#include <functional>
#include <iterator>
#include <map>
#include <typeindex>
#include <utility>
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

  /// Registers `make` for each of the ops O. It is called as make(request, op), or as
  /// make(request) if it needs no more, and returns one candidate or several, refusals included.
  /// Kernels of a smaller place are listed first: the first that accepts is taken where nothing is
  /// measured. Those of one place stand in the order of registration.
  template <class... O, class Make>
  void add(Make make, int place = kLast) {
    (put(lists_[typeid(O)].kernels, place, typed<O>(make)), ...);
  }
  /// Registers what runs an op on other kernels, with its operands brought into another form. It
  /// is called as make(request, op, candidates so far) after all kernels of the op, and appends.
  template <class... O, class Make>
  void add_adapter(Make make, int place = kLast) {
    (put(lists_[typeid(O)].adapters, place,
         [make](const KernelRequest& r, KernelCandidates& found) {
           make(r, static_cast<const O&>(*r.op), found);
         }),
     ...);
  }

  /// Returns the candidates of the op's kernels, without adapters.
  KernelCandidates kernels(const KernelRequest& request) const;
  /// Returns all candidates; none for an op that has no kernel.
  KernelCandidates candidates(const KernelRequest& request) const;

 private:
  using Append = std::function<void(const KernelRequest&, KernelCandidates&)>;
  using List = std::multimap<int, Append>;  // keeps the order of registration in one place
  struct Lists {
    List kernels, adapters;
  };

  static void put(List& list, int place, Append append) { list.emplace(place, std::move(append)); }

  template <class O, class Make>
  static Append typed(Make make) {
    return [make](const KernelRequest& r, KernelCandidates& found) {
      auto made = made_by(make, r, static_cast<const O&>(*r.op));
      if constexpr (std::same_as<decltype(made), KernelCandidate>)
        found.push_back(std::move(made));
      else
        std::ranges::move(made, std::back_inserter(found));
    };
  }

  std::map<std::type_index, Lists> lists_;
};

/// Calls the register functions of all files of kernels; the build writes it.
void register_all(KernelTable& table);

/// Returns the table of all kernels, which is made at the first call.
const KernelTable& cpu_kernels();

}  // namespace tutti::backend
