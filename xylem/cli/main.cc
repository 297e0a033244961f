#include "xylem/cli/cli.h"

int main(int argc, char** argv) { return xylem::cli::run(argc, argv); }
