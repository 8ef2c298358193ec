# Everything outside the project, found once here. Nothing is ever downloaded.
include(${CMAKE_CURRENT_LIST_DIR}/TuttiCommDependencies.cmake)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(fftw3f REQUIRED IMPORTED_TARGET fftw3f)  # data, backend: Fourier transforms
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)  # data: libjpeg-turbo, JPEG images
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)  # data: PNG images
pkg_search_module(hdf5 REQUIRED IMPORTED_TARGET hdf5 hdf5-serial)
