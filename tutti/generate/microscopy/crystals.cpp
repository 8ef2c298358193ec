#include "tutti/generate/microscopy/crystals.h"

#include <fmt/ranges.h>

#include <cmath>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

constexpr std::string_view kCrystalClassNames[kCrystalClasses] = {
    "fcc",      "bcc",  "hcp",        "diamond",  "zincblende",
    "rocksalt", "CsCl", "perovskite", "fluorite", "graphene"};

using CellAtoms = std::vector<CellAtom>;

/// Adds the atom at (x, y, z) and three atoms that centre the cell's faces.
void add_face_centred(CellAtoms& atoms, const CellAtom& at) {
  const auto wrapped = [](double t) { return t - std::floor(t); };
  for (const auto& [dx, dy, dz] :
       {std::array{0.0, 0.0, 0.0}, {0.5, 0.5, 0.0}, {0.5, 0.0, 0.5}, {0.0, 0.5, 0.5}})
    atoms.push_back({at.element, wrapped(at.x + dx), wrapped(at.y + dy), wrapped(at.z + dz)});
}

CellAtoms face_centred(std::initializer_list<CellAtom> of) {
  CellAtoms atoms;
  for (const CellAtom& at : of) add_face_centred(atoms, at);
  return atoms;
}

struct Substance {
  const char* name;
  double a, b_factor;
  std::vector<int> elements;
  double c = 0;  ///< only for hexagonal ones
};

/// Returns the atoms of a cubic crystal of this type.
CellAtoms cubic_atoms(CrystalClass kind, const std::vector<int>& z) {
  constexpr double q = 0.25, h = 0.5, t = 0.75;
  switch (kind) {
    case CrystalClass::fcc: return face_centred({{z[0], 0, 0, 0}});
    case CrystalClass::bcc: return {{z[0], 0, 0, 0}, {z[0], h, h, h}};
    case CrystalClass::diamond: return face_centred({{z[0], 0, 0, 0}, {z[0], q, q, q}});
    case CrystalClass::zincblende: return face_centred({{z[0], 0, 0, 0}, {z[1], q, q, q}});
    case CrystalClass::rocksalt: return face_centred({{z[0], 0, 0, 0}, {z[1], h, 0, 0}});
    case CrystalClass::cesium_chloride: return {{z[0], 0, 0, 0}, {z[1], h, h, h}};
    case CrystalClass::perovskite:
      return {{z[0], 0, 0, 0}, {z[1], h, h, h}, {z[2], h, h, 0}, {z[2], h, 0, h}, {z[2], 0, h, h}};
    case CrystalClass::fluorite:
      return face_centred({{z[0], 0, 0, 0}, {z[1], q, q, q}, {z[1], q, q, t}});
    default: CHECK(false, "class {} is not cubic", name_of(kind));
  }
}

int cubic_layers(CrystalClass kind) {
  return kind == CrystalClass::diamond || kind == CrystalClass::zincblende ||
                 kind == CrystalClass::fluorite
             ? 4
             : 2;
}

void add_cubic(std::vector<Crystal>& list, CrystalClass kind, const std::vector<Substance>& of) {
  for (const Substance& s : of)
    list.push_back({s.name, kind, s.a, s.a, s.a, cubic_layers(kind), s.b_factor,
                    cubic_atoms(kind, s.elements)});
}

/// Adds hexagonal crystals, in a rectangular cell of a and sqrt(3) a.
void add_hexagonal(std::vector<Crystal>& list, const std::vector<Substance>& of) {
  constexpr double h = 0.5, third = 1.0 / 3, sixth = 1.0 / 6;
  for (const Substance& s : of) {
    const int z = s.elements[0];
    list.push_back({s.name,
                    CrystalClass::hcp,
                    s.a,
                    std::sqrt(3.0) * s.a,
                    s.c,
                    2,
                    s.b_factor,
                    {{z, 0, 0, 0}, {z, h, h, 0}, {z, 0, third, h}, {z, h, h + third, h}}});
  }
  list.push_back({"graphene",
                  CrystalClass::graphene,
                  2.461,
                  std::sqrt(3.0) * 2.461,
                  3.35,
                  1,
                  0.5,
                  {{6, 0, 0, 0}, {6, h, h, 0}, {6, h, sixth, 0}, {6, 0, h + sixth, 0}}});
}

std::vector<Crystal> all_crystals() {
  using enum CrystalClass;
  std::vector<Crystal> list;
  add_cubic(list, fcc,
            {{"Al", 4.0495, 0.85, {13}},
             {"Ni", 3.5240, 0.35, {28}},
             {"Cu", 3.6149, 0.55, {29}},
             {"Ag", 4.0853, 0.70, {47}},
             {"Au", 4.0782, 0.60, {79}}});
  add_cubic(list, bcc,
            {{"Cr", 2.8848, 0.25, {24}},
             {"Fe", 2.8665, 0.35, {26}},
             {"Nb", 3.3004, 0.45, {41}},
             {"Mo", 3.1470, 0.25, {42}},
             {"W", 3.1652, 0.16, {74}}});
  add_cubic(list, diamond, {{"C", 3.5668, 0.14, {6}}, {"Si", 5.4310, 0.46, {14}}});
  add_cubic(list, zincblende,
            {{"GaP", 5.4512, 0.60, {31, 15}},
             {"ZnS", 5.4093, 0.80, {30, 16}},
             {"InP", 5.8687, 0.75, {49, 15}}});
  add_cubic(list, rocksalt,
            {{"MgO", 4.2112, 0.31, {12, 8}},
             {"CaO", 4.8105, 0.40, {20, 8}},
             {"TiN", 4.2417, 0.25, {22, 7}},
             {"NaCl", 5.6402, 1.60, {11, 17}}});
  add_cubic(list, cesium_chloride,
            {{"CsCl", 4.123, 1.90, {55, 17}}, {"NiAl", 2.887, 0.50, {28, 13}}});
  add_cubic(list, perovskite,
            {{"SrTiO3", 3.905, 0.55, {38, 22, 8}}, {"BaTiO3", 4.006, 0.50, {56, 22, 8}}});
  add_cubic(list, fluorite, {{"CaF2", 5.4626, 0.60, {20, 9}}, {"CeO2", 5.4110, 0.35, {58, 8}}});
  add_hexagonal(list, {{"Mg", 3.2094, 1.80, {12}, 5.2108},
                       {"Ti", 2.9508, 0.50, {22}, 4.6855},
                       {"Zn", 2.6649, 1.10, {30}, 4.9468}});
  return list;
}

}  // namespace

std::string_view name_of(CrystalClass kind) {
  return kCrystalClassNames[static_cast<size_t>(kind)];
}

const std::vector<Crystal>& crystals() {
  static const std::vector<Crystal> list = all_crystals();
  return list;
}

std::vector<const Crystal*> crystals_named(std::string_view name) {
  std::vector<const Crystal*> found;
  std::vector<std::string_view> names(std::begin(kCrystalClassNames), std::end(kCrystalClassNames));
  for (const Crystal& crystal : crystals()) {
    if (name.empty() || name == crystal.name || name == name_of(crystal.kind))
      found.push_back(&crystal);
    if (crystal.kind != CrystalClass::graphene) names.push_back(crystal.name);
  }
  if (found.empty())
    throw ConfigError(
        fmt::format("there is no crystal '{}'; there are the classes and substances "
                    "{}",
                    name, fmt::join(names, ", ")));
  return found;
}

}  // namespace tutti::generate
