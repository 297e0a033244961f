# Correctly rounded reference values, for the tests of elementary functions.
if(TARGET xylem_compiler_testing)
  target_link_libraries(xylem_compiler_testing PUBLIC mpfr)
endif()
