#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xylem/base/tokenizer.h"
#include "xylem/data/dataset.h"

// Texts for language models: documents, tokens, packed rows with segment ids, masks and shifted
// targets.
//
//   data::TextCorpus books("books/*.txt.gz", data::DocumentSplit::paragraph);
//   auto batches = data::language_model_batches({{books, 1.0}}, {.sequence_length = 1024,
//                                                                .batch_size = 8});
//   for (const data::LmBatch& b : batches.iterator()) ...   // b.inputs is i32[8, 1024]

namespace xylem::data {

// What a document is within a file.
enum class DocumentSplit : std::uint8_t {
  file,
  line,        // without its end; empty lines are left out
  paragraph,   // what empty lines separate
  json_lines,  // a line each: the text is the field `text_field`
};

// Documents of files, by number: a source for data::source(). The text stays in memory. Copies
// share it. Immutable.
class TextCorpus {
 public:
  // `dataset_path` as for load_text (text.h): files, patterns, folders, compressed or not.
  TextCorpus(std::string_view dataset_path, DocumentSplit split, std::string text_field = "text");
  // Text in hand.
  static TextCorpus of_text(std::string text, DocumentSplit split, std::string text_field = "text");

  std::int64_t size() const;
  // Document i; for json_lines the field's value. UserError if the line is not such an object.
  std::string get(std::int64_t i) const;

 private:
  struct Contents;
  TextCorpus() = default;
  std::shared_ptr<const Contents> contents_;
};

// How documents are found in files.
struct DocumentOptions {
  std::string format;           // of record files, as for open_records; told by the file if empty
  std::string column = "text";  // of records with fields, and of tf.train.Examples in the others;
                                // if empty, the bytes of a record are the document
  DocumentSplit split = DocumentSplit::paragraph;  // of plain text
};
// Documents of record files or of texts: `dataset_path` as for load_text, all files of one kind.
// UserError where a record has no such column, or it is neither text nor bytes.
MapDataset<std::string> documents(std::string_view dataset_path, const DocumentOptions& options);

// Tokens of a document, and how much each counts as a target (1 everywhere if empty).
struct TokenSequence {
  std::vector<std::int32_t> tokens;
  std::vector<float> weights;
};

// Changes a document before it is shifted and packed; the generator is the document's own.
using DocumentHook = std::function<TokenSequence(TokenSequence, Generator&)>;

// Fill in the middle: with probability `rate` a document is cut at two random tokens and comes as
// prefix, suffix, middle (PSM), or with probability spm_rate of those as suffix, prefix, middle
// (SPM). Bavarian et al. 2022, arXiv:2207.14255, on tokens.
struct FimOptions {
  double rate = 0.5, spm_rate = 0.5;
  std::int32_t prefix_id = 0, middle_id = 0, suffix_id = 0;
};
DocumentHook fill_in_the_middle(FimOptions options);

// A conversation as one sequence: every message between its role's texts; only what `trained_roles`
// say counts as a target, with the text that ends the message. The default is ChatML.
struct ChatMessage {
  std::string role, content;
};
struct ChatFormat {
  std::string before_role = "<|im_start|>", after_role = "\n", after_content = "<|im_end|>\n";
  std::vector<std::string> trained_roles = {"assistant"};
};
TokenSequence chat_tokens(std::span<const ChatMessage> messages, const Tokenizer& tokenizer,
                          const ChatFormat& format = {});
// {"messages": [{"role": .., "content": ..}]}; UserError if the text is no such object.
std::vector<ChatMessage> parse_chat(std::string_view json);

enum class LmPacking : std::uint8_t {
  concat_then_split,  // full rows; documents are cut
  first_fit,          // documents stay whole where they fit a row, rows are padded
  best_fit,           // the same; each goes where it leaves least room
  none,               // one document a row: what is longer is cut off, what is shorter padded
};

struct LmOptions {
  std::int64_t sequence_length = 0, batch_size = 0;
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;  // bytes if null
  // Where the tokenizer has such tokens.
  bool add_bos = true, add_eos = true;
  LmPacking packing = LmPacking::concat_then_split;
  std::int64_t num_packing_bins = 64;                     // of first_fit and best_fit
  std::optional<std::int64_t> max_segments_per_seq = {};  // of the same
  DocumentHook hook = {};
  // Instead of tokenizer, add_bos, add_eos: tokens of a document (chat, for instance).
  std::function<TokenSequence(const std::string& document)> tokenize = {};
  std::uint32_t seed = 0;
  bool shuffle = true;
  std::optional<std::int64_t> num_epochs = {};  // of every corpus; without: no end
  ShardOptions shard = {};                      // this host's part of the documents
  ReadAheadOptions read = {};
  bool drop_remainder = true;
};

// Rows of T tokens. Targets are the inputs' next tokens within the document; weights f32 are 0
// where there is none and on padding. Segment ids from 1 and positions as in Packed.
struct LmBatch {
  HostArray inputs, targets, weights, segment_ids, positions;
};

struct WeightedCorpus {
  TextCorpus corpus;
  double weight = 1;
};

struct WeightedDocuments {
  MapDataset<std::string> documents;
  double weight = 1;
};

// Documents of all corpora in proportion to their weights, shuffled by epoch, tokenized, packed,
// batched.
IterDataset<LmBatch> language_model_batches(const std::vector<WeightedDocuments>& corpora,
                                            LmOptions options);
IterDataset<LmBatch> language_model_batches(const std::vector<WeightedCorpus>& corpora,
                                            LmOptions options);

}  // namespace xylem::data
