# Compiler, linker and build-type settings shared by every target.

option(XYLEM_BUILD_TESTS "Build the tests" ON)
option(XYLEM_WERROR "Treat warnings as errors" ON)
option(XYLEM_FUZZ "Build the fuzzers, with clang and XYLEM_SANITIZE=fuzzer-no-link,…" OFF)
set(XYLEM_SANITIZE "" CACHE STRING "Comma-separated sanitizers for -fsanitize")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Dev" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# -O1 compiles about as fast as -Og with g++ and the interpreter runs several times faster; -g1 keeps back traces.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_EXE_LINKER_FLAGS_DEV "")
set(CMAKE_SHARED_LINKER_FLAGS_DEV "")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

include(GNUInstallDirs)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# Every op rounds to its own dtype, so no multiply and add may be contracted behind our back (g++ contracts by default).
add_compile_options(-ffp-contract=off)
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)

add_compile_options(
  -Wall -Wextra
  -Wnon-virtual-dtor -Woverloaded-virtual -Wundef -Wextra-semi -Wcast-align -Wimplicit-fallthrough
  -Wunused -Wformat=2 -Wvla
  # Designated initialisers with defaults are how options are passed.
  -Wno-missing-field-initializers)
if(XYLEM_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(
    -Wshadow=local -Wduplicated-cond -Wlogical-op -Wredundant-move
    # Flow-based warnings of g++ 12 which fire falsely inside std::string, std::optional and std::vector.
    -Wno-restrict -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-free-nonheap-object -Wno-dangling-pointer -Wno-use-after-free -Wno-nonnull
    # A note about the ABI of vector arguments, which never cross a library here.
    -Wno-psabi)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++'s own std::stable_sort calls what it declares deprecated.
  add_compile_options(-Wunreachable-code-loop-increment -Wno-psabi -Wno-deprecated-declarations)
endif()

if(XYLEM_SANITIZE)
  add_compile_options(-fsanitize=${XYLEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${XYLEM_SANITIZE})
endif()

# ccache and a fast linker are used when present; nothing depends on them.
find_program(XYLEM_CCACHE ccache)
if(XYLEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${XYLEM_CCACHE}")
endif()
find_program(XYLEM_MOLD ld.mold)
find_program(XYLEM_LLD ld.lld PATHS /usr/lib/llvm-19/bin NO_DEFAULT_PATH)
if(XYLEM_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(XYLEM_LLD)
  cmake_path(GET XYLEM_LLD PARENT_PATH lld_dir)
  add_link_options(-fuse-ld=lld "-B${lld_dir}")
endif()
