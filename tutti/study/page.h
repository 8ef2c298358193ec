#pragma once
// The texts of the HTML report, embedded by the build (page/, and Chart.js of the system).

#include <string_view>

namespace tutti::study {

std::string_view
page_frame();  ///< page/page.html, with {{name}} where report_html.cpp inserts text
std::string_view page_style();      ///< page/style.css
std::string_view page_svg();        ///< page/svg.js: a drawing context that writes SVG
std::string_view page_draw();       ///< page/draw.js: how charts look
std::string_view page_places();     ///< page/places.js: positions of sizes on the axis of ranks
std::string_view page_figures();    ///< page/figures.js: charts as figures that can be saved
std::string_view page_script();     ///< page/charts.js: the charts of a study
std::string_view studies_frame();   ///< page/studies.html, like page_frame(), for several studies
std::string_view studies_script();  ///< page/studies.js: their charts
std::string_view chart_js();  ///< Chart.js 3 or newer, minified; MIT licence, its notice is inside

}  // namespace tutti::study
