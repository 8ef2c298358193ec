#pragma once
// The crystals that patterns and images are made of: nine structure types with a few substances
// each, seen along [001] (of hexagonal ones [0001]), and graphene.

#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

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
inline constexpr int kCrystalClasses = 10;  ///< of which patterns have all but graphene
std::string_view name_of(CrystalClass kind);

struct CellAtom {
  int element;
  double x, y, z;  ///< of the cell's edges, from 0 to 1
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

/// Those of a name or of a class's name; all for "". ConfigError listing what there is.
std::vector<const Crystal*> crystals_named(std::string_view name);

}  // namespace tutti::data
