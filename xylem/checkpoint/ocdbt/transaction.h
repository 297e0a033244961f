#pragma once

#include <memory>
#include <string>

#include "xylem/checkpoint/ocdbt/writer.h"
#include "xylem/checkpoint/storage/kv_transaction.h"

namespace xylem::checkpoint::ocdbt {

// A transaction on the database in the directory, which it creates, with `config_if_new`, if there
// is none. A commit writes values, nodes and then the manifest, whose replacement is what makes it
// visible; the database's generation goes up by one and the manifest names the new version alone.
// Commits of one process go one after the other; of processes that commit at the same moment the
// last one wins. UserError if the database is damaged, or has numbered manifests.
std::unique_ptr<KvTransaction> begin_transaction(const FileSystem& fs, std::string directory,
                                                 const Config& config_if_new = default_config());

}  // namespace xylem::checkpoint::ocdbt
