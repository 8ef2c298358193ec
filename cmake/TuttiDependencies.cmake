# Everything outside the project, found once here. Nothing is ever downloaded.
include(${CMAKE_CURRENT_LIST_DIR}/TuttiCommDependencies.cmake)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(fftw3f REQUIRED IMPORTED_TARGET fftw3f)  # data, backend: Fourier transforms
pkg_check_modules(jpeg REQUIRED IMPORTED_TARGET libjpeg)  # data: libjpeg-turbo, JPEG images
pkg_check_modules(icu REQUIRED IMPORTED_TARGET icu-uc)  # data: Unicode's letters, numbers and blanks
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)  # data: PNG images
pkg_search_module(hdf5 REQUIRED IMPORTED_TARGET hdf5 hdf5-serial)

# HDF5's shared library brings thirty others for files in clouds, which nobody here opens, into every rank. The archive brings what is used.
# Where it is missing, or cannot stand in a program that loads anywhere, the shared one serves.
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)
find_library(TUTTI_HDF5_ARCHIVE libhdf5.a PATHS ${hdf5_LIBRARY_DIRS} NO_DEFAULT_PATH)
find_library(TUTTI_SZIP sz)
if(TUTTI_HDF5_ARCHIVE AND TUTTI_SZIP)
  set(tutti_hdf5_alone ${TUTTI_HDF5_ARCHIVE} ${TUTTI_SZIP} ZLIB::ZLIB ${CMAKE_DL_LIBS} m)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_LIBRARIES ${tutti_hdf5_alone})
  set(CMAKE_REQUIRED_INCLUDES ${hdf5_INCLUDE_DIRS})
  check_cxx_source_compiles("#include <hdf5.h>
    int main() { return H5open() < 0 || H5Fopen(\"\", H5F_ACC_RDONLY, H5P_DEFAULT) < 0; }" TUTTI_HDF5_ARCHIVE_LINKS)
  cmake_pop_check_state()
  if(TUTTI_HDF5_ARCHIVE_LINKS)
    set_target_properties(PkgConfig::hdf5 PROPERTIES INTERFACE_LINK_LIBRARIES "${tutti_hdf5_alone}")
  endif()
endif()
