#include "xylem/runtime/client.h"

namespace xylem::runtime {

std::unique_ptr<Client> make_cpu_client(int) { return make_interpreter_client(); }

}  // namespace xylem::runtime
