#pragma once
// Lists the crystals in patterns and images: nine structure types with a few substances each, seen
// along [001] ([0001] for hexagonal ones), and graphene.

#include <string>
#include <string_view>
#include <vector>

namespace tutti::generate {

/// The classes, in this order.
enum class CrystalClass : unsigned char {
  fcc,
  bcc,
  hcp,
  diamond,
  zincblende,
  rocksalt,
  cesium_chloride,
  perovskite,
  fluorite,
  graphene
};
inline constexpr int kCrystalClasses = 10;  ///< patterns have all but graphene
std::string_view name_of(CrystalClass kind);

struct CellAtom {
  int element;
  double x, y, z;  ///< in units of the cell's edges, from 0 to 1
};

struct Crystal {
  std::string name;  ///< "Si", "GaP"
  CrystalClass kind{};
  double a = 0, b = 0, c = 0;  ///< edges of a rectangular cell, in Angstrom, at room temperature
  int layers = 1;              ///< equal slices of the cell, each with a plane of atoms at its top
  double b_factor = 0;         ///< mean Debye-Waller factor B in Angstrom^2, rounded
  std::vector<CellAtom> atoms{};
};

const std::vector<Crystal>& crystals();

/// Returns the crystals with this name or class name; all for "". ConfigError listing the names.
std::vector<const Crystal*> crystals_named(std::string_view name);

}  // namespace tutti::generate
