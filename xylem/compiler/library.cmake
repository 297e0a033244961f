# Reference values of elementary functions, for tests and benchmarks.
if(TARGET xylem_compiler_testing)
  target_link_libraries(xylem_compiler_testing PUBLIC mpfr)
  if(TARGET xylem_compiler_bench)
    target_link_libraries(xylem_compiler_bench PRIVATE xylem_compiler_testing)
  endif()
endif()
