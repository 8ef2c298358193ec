#include "tutti/cli/flags/microscope_flags.h"

namespace tutti::cli {

std::vector<Flag> microscope_flags(generate::CbedSpec& cbed, generate::StemSpec& stem) {
  std::vector<Flag> all;
  const auto add = [&](const std::vector<std::string>& sets, std::vector<Flag> flags) {
    all = joined(std::move(all), only_for(sets, std::move(flags)));
  };
  add({"cbed", "stem"},
      {{.names = "--crystal",
        .value = "NAME",
        .help = "A substance, such as Si, or a structure, such as perovskite; empty: all",
        .bind = &cbed.crystal}});
  add({"cbed"},
      {{"--convergence", "MRAD", "Half the angle of the probe's cone", &cbed.convergence, 0.1, 100},
       {"--angle", "MRAD", "Half the angle that a pattern spans", &cbed.angle, 1, 200},
       {"--thinnest", "NM", "Least thickness of the crystals", &cbed.thinnest, 0.1, 1000},
       {"--thickest", "NM", "Greatest thickness of the crystals", &cbed.thickest, 0.1, 1000},
       {"--tilt", "MRAD", "Crystals are tilted about x and y by up to this", &cbed.tilt, 0, 60},
       {"--azimuth", "DEGREES", "Crystals are turned about the beam by up to this", &cbed.azimuth,
        0, 180},
       {"--strain", "X", "Cells are larger or smaller across the beam by up to this share",
        &cbed.strain, 0, 0.2},
       {"--electrons", "X", "Electrons in a pattern, which make its noise; 0: no noise", &cbed.dose,
        0, 1e12},
       {"--kilovolts", "X", "The microscope's voltage", &cbed.kilovolts, 30, 1000}});
  add({"stem"}, {{"--pixel", "X", "Side of an image's pixel in Angstrom", &stem.pixel, 0.02, 0.3},
                 {"--dose", "X", "Electrons in the brightest pixel of an image; 0: no noise",
                  &stem.dose, 0, 1e9}});
  return all;
}

}  // namespace tutti::cli
