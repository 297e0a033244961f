# install(), and the package that find_package(xylem COMPONENTS ...) reads.

include(CMakePackageConfigHelpers)

get_property(names GLOBAL PROPERTY XYLEM_LIBRARIES)
set(targets)
foreach(name IN LISTS names)
  if(name STREQUAL "cli")
    continue()
  endif()
  list(APPEND targets xylem_${name})
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/xylem/${name}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/xylem/${name}"
    FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN "testing" EXCLUDE PATTERN "testdata" EXCLUDE
    PATTERN "*_test_util.h" EXCLUDE)
endforeach()
if(TARGET xylem_jit)
  list(APPEND targets xylem_jit)
endif()
set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/xylem")
if(targets)
  install(TARGETS ${targets} EXPORT xylem_targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT xylem_targets FILE xylem-targets.cmake NAMESPACE xylem:: DESTINATION "${config_dir}")
endif()
list(REMOVE_ITEM names cli)
list(JOIN names " " XYLEM_COMPONENT_NAMES)
configure_package_config_file(cmake/xylem-config.cmake.in "${PROJECT_BINARY_DIR}/generated/xylem-config.cmake"
  INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/xylem-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/generated/xylem-config.cmake"
  "${PROJECT_BINARY_DIR}/generated/xylem-config-version.cmake" DESTINATION "${config_dir}")
