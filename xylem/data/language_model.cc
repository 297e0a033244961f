#include "xylem/data/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/transform.h"
#include "xylem/data/record_source.h"
#include "xylem/data/text.h"

namespace xylem::data {

// ---- TextCorpus

struct TextCorpus::Contents {
  struct Place {
    std::size_t begin, size;
  };
  std::string text, name, field;
  DocumentSplit split = DocumentSplit::file;
  std::vector<Place> places;

  // Cuts text[begin, end) into documents.
  void add(std::size_t begin, std::size_t end) {
    if (split == DocumentSplit::file) {
      if (end > begin) places.push_back({begin, end - begin});
      return;
    }
    std::size_t open = begin, last = begin;  // of a paragraph: its begin, the end of its last line
    for (std::size_t at = begin; at < end;) {
      const std::size_t line_end = std::min(text.find('\n', at), end);
      std::size_t stop = line_end;
      if (stop > at && text[stop - 1] == '\r') --stop;
      const bool blank = text.find_first_not_of(" \t", at) >= stop;
      if (split != DocumentSplit::paragraph) {
        if (stop > at && !blank) places.push_back({at, stop - at});
      } else if (blank) {
        if (last > open) places.push_back({open, last - open});
        open = last = std::min(line_end + 1, end);
      } else {
        last = stop;
      }
      at = line_end + 1;
    }
    if (split == DocumentSplit::paragraph && last > open) places.push_back({open, last - open});
  }
};

TextCorpus::TextCorpus(std::string_view dataset_path, DocumentSplit split, std::string text_field) {
  auto c = std::make_shared<Contents>();
  c->split = split;
  c->field = std::move(text_field);
  c->name = dataset_path;
  for (const std::string& part : load_texts(dataset_path)) {
    const std::size_t begin = c->text.size();
    c->text += part;
    c->add(begin, c->text.size());
  }
  contents_ = std::move(c);
}

TextCorpus TextCorpus::of_text(std::string text, DocumentSplit split, std::string text_field) {
  auto c = std::make_shared<Contents>();
  c->split = split;
  c->field = std::move(text_field);
  c->name = "text";
  c->text = std::move(text);
  c->add(0, c->text.size());
  TextCorpus corpus;
  corpus.contents_ = std::move(c);
  return corpus;
}

std::int64_t TextCorpus::size() const {
  return static_cast<std::int64_t>(contents_->places.size());
}

std::string TextCorpus::get(std::int64_t i) const {
  const Contents& c = *contents_;
  XYLEM_CHECK(i >= 0 && i < size(), "no such document");
  const Contents::Place p = c.places[static_cast<std::size_t>(i)];
  std::string document = c.text.substr(p.begin, p.size);
  if (c.split != DocumentSplit::json_lines) return document;
  const nlohmann::json j = nlohmann::json::parse(document, nullptr, false);
  const auto field = j.is_object() ? j.find(c.field) : j.end();
  if (!j.is_object() || field == j.end() || !field->is_string())
    throw_user_error({fmt::format("document {} of {}", i, c.name),
                      fmt::format("a JSON object with a text `{}`", c.field),
                      fmt::format("{:.100}", document), "Name the field that holds the text"});
  return field->get<std::string>();
}

// ---- documents of record files

namespace {

// The one text that a field holds.
std::string text_of_field(const Fields& fields, const std::string& column) {
  const Value* v = find_field(fields, column);
  const auto* list = v == nullptr ? nullptr : v->get_if<List>();
  if (list != nullptr && list->size() == 1) v = &list->front();
  if (v != nullptr) {
    if (const auto* s = v->get_if<std::string>()) return *s;
    if (const auto* b = v->get_if<Bytes>()) return b->data;
  }
  std::string names;
  for (const auto& [name, value] : fields) names += (names.empty() ? "" : ", ") + name;
  throw_user_error({fmt::format("document: field \"{}\"", column), "one text in each record",
                    v == nullptr ? fmt::format("the record has the fields {:.200}", names)
                                 : fmt::format("{:.100}", to_json(*v)),
                    "Name the column that holds the text"});
}

}  // namespace

MapDataset<std::string> documents(std::string_view dataset_path, const DocumentOptions& o) {
  std::string format = o.format;
  std::vector<std::string> files;
  if (dataset_path != "bible") {
    files = path_exists(std::string(dataset_path)) && is_directory(std::string(dataset_path)) &&
                    !detect_format(std::string(dataset_path)).empty()
                ? std::vector<std::string>{std::string(dataset_path)}
                : text_files(dataset_path);
    if (format.empty()) format = detect_format(files[0]);
  }
  if (format.empty() || format == "text")
    return source(TextCorpus(dataset_path, o.split), std::string(dataset_path));
  return records(files, {.format = format})
      .map(
          [column = o.column](Record r) {
            if (!r.fields.empty()) return text_of_field(r.fields, column);
            if (column.empty()) return std::move(r.bytes);
            return text_of_field(decode_example(r.bytes), column);
          },
          "document");
}

// ---- hooks

DocumentHook fill_in_the_middle(FimOptions o) {
  if (!(o.rate >= 0 && o.rate <= 1 && o.spm_rate >= 0 && o.spm_rate <= 1))
    throw_user_error({"fill_in_the_middle: rate, spm_rate", "probabilities from 0 to 1",
                      fmt::format("{}, {}", o.rate, o.spm_rate), "Give 0 for never"});
  return [o](TokenSequence s, Generator& g) {
    if (g.random() >= o.rate || s.tokens.size() < 2) return s;
    const bool spm = g.random() < o.spm_rate;
    const auto n = static_cast<std::int64_t>(s.tokens.size());
    std::int64_t a = g.integers(0, n + 1), b = g.integers(0, n + 1);
    if (a > b) std::swap(a, b);
    TokenSequence out;
    const auto token = [&](std::int32_t id) {
      out.tokens.push_back(id);
      if (!s.weights.empty()) out.weights.push_back(1);
    };
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      out.tokens.insert(out.tokens.end(), s.tokens.begin() + begin, s.tokens.begin() + end);
      if (!s.weights.empty())
        out.weights.insert(out.weights.end(), s.weights.begin() + begin, s.weights.begin() + end);
    };
    token(o.prefix_id);
    if (spm) {
      token(o.suffix_id);
      part(b, n);
      token(o.middle_id);
      part(0, a);
    } else {
      part(0, a);
      token(o.suffix_id);
      part(b, n);
      token(o.middle_id);
    }
    part(a, b);
    return out;
  };
}

TokenSequence chat_tokens(std::span<const ChatMessage> messages, const Tokenizer& tokenizer,
                          const ChatFormat& f) {
  TokenSequence out;
  const auto add = [&](std::string_view text, float weight) {
    const std::vector<std::int32_t> ids = tokenizer.encode(text);
    out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
    out.weights.resize(out.tokens.size(), weight);
  };
  for (const ChatMessage& m : messages) {
    const bool trained =
        std::find(f.trained_roles.begin(), f.trained_roles.end(), m.role) != f.trained_roles.end();
    add(f.before_role + m.role + f.after_role, 0);
    add(m.content + f.after_content, trained ? 1 : 0);
  }
  return out;
}

std::vector<ChatMessage> parse_chat(std::string_view json) {
  const nlohmann::json j = nlohmann::json::parse(json, nullptr, false);
  const auto refuse = [&] {
    throw_user_error({"chat document", "{\"messages\": [{\"role\": text, \"content\": text}, ...]}",
                      fmt::format("{:.100}", json), "Correct the line"});
  };
  if (!j.is_object() || !j.contains("messages") || !j["messages"].is_array()) refuse();
  std::vector<ChatMessage> out;
  for (const auto& m : j["messages"]) {
    if (!m.is_object() || !m.contains("role") || !m["role"].is_string() || !m.contains("content") ||
        !m["content"].is_string())
      refuse();
    out.push_back({m["role"].get<std::string>(), m["content"].get<std::string>()});
  }
  return out;
}

// ---- batches

namespace {

struct LmExample {
  HostArray inputs, targets, weights;
};

HostArray rows_of(std::span<const std::int32_t> v) {
  return HostArray::from(v, {static_cast<std::int64_t>(v.size())});
}

// Every token but the last is read, every token but the first is predicted.
LmExample shifted(const TokenSequence& s) {
  const std::size_t n = s.tokens.empty() ? 0 : s.tokens.size() - 1;
  const std::span<const std::int32_t> t(s.tokens);
  LmExample e{rows_of(t.first(n)), rows_of(t.last(n)),
              HostArray(DType::kF32, {static_cast<std::int64_t>(n)})};
  for (std::size_t i = 0; i < n; ++i)
    e.weights.as<float>()[i] = s.weights.empty() ? 1.0f : s.weights[i + 1];
  return e;
}

// One document as a row of T tokens.
LmBatch padded_row(const LmExample& e, std::int64_t T) {
  const std::int64_t n = std::min(T, e.inputs.size());
  const auto padded = [&](const HostArray& a) {
    HostArray out = HostArray::zeros(a.dtype(), {T});
    std::copy_n(a.data(), n * dtype_bytes(a.dtype()), out.data());
    return out;
  };
  LmBatch row{padded(e.inputs), padded(e.targets), padded(e.weights), HostArray::zeros(DType::kI32, {T}),
              HostArray::zeros(DType::kI32, {T})};
  for (std::int64_t i = 0; i < n; ++i) {
    row.segment_ids.as<std::int32_t>()[i] = 1;
    row.positions.as<std::int32_t>()[i] = static_cast<std::int32_t>(i);
  }
  return row;
}

void check_lm_options(const std::vector<WeightedDocuments>& corpora, const LmOptions& o) {
  if (o.sequence_length < 1 || o.batch_size < 1)
    throw_user_error({"language_model_batches: sequence_length, batch_size", "at least 1",
                      fmt::format("{}, {}", o.sequence_length, o.batch_size),
                      "Give the number of tokens in a row and of rows in a batch"});
  for (std::size_t i = 0; i < corpora.size(); ++i)
    if (corpora[i].documents.size() == 0)
      throw_user_error({fmt::format("language_model_batches: corpus {}", i),
                        "at least one document", "none", "Name other files or another split"});
}

}  // namespace

IterDataset<LmBatch> language_model_batches(const std::vector<WeightedCorpus>& corpora,
                                            LmOptions o) {
  std::vector<WeightedDocuments> parts;
  for (std::size_t i = 0; i < corpora.size(); ++i)
    parts.push_back({source(corpora[i].corpus, fmt::format("corpus {}", i)), corpora[i].weight});
  return language_model_batches(parts, std::move(o));
}

IterDataset<LmBatch> language_model_batches(const std::vector<WeightedDocuments>& corpora,
                                            LmOptions o) {
  internal::check_some("language_model_batches", corpora.size());
  check_lm_options(corpora, o);
  if (!o.tokenizer) o.tokenizer = std::make_shared<ByteTokenizer>();

  std::vector<MapDataset<std::string>> parts;
  std::vector<double> weights;
  for (std::size_t i = 0; i < corpora.size(); ++i) {
    MapDataset<std::string> d = corpora[i].documents;
    if (o.shuffle) d = d.shuffle(static_cast<std::uint32_t>(o.seed + i));
    parts.push_back(d.repeat(o.num_epochs));
    weights.push_back(corpora[i].weight);
  }
  MapDataset<std::string> documents = parts.size() == 1 ? parts[0] : mix(parts, weights);
  if (o.shard.shard_count > 1)
    documents = documents.shard(o.shard.shard_index, o.shard.shard_count);

  const std::int64_t T = o.sequence_length;
  IterDataset<LmExample> examples =
      documents
          .random_map(
              [o](const std::string& document, Generator& g) {
                TokenSequence s;
                if (o.tokenize) {
                  s = o.tokenize(document);
                } else {
                  s.tokens = o.tokenizer->encode(document);
                  if (const auto bos = o.tokenizer->bos_id(); bos && o.add_bos)
                    s.tokens.insert(s.tokens.begin(), *bos);
                  if (const auto eos = o.tokenizer->eos_id(); eos && o.add_eos)
                    s.tokens.push_back(*eos);
                }
                if (o.hook) s = o.hook(std::move(s), g);
                return shifted(s);
              },
              o.seed, "tokenize")
          .to_iter_dataset(o.read)
          .filter([](const LmExample& e) { return e.inputs.size() > 0; });

  const auto to_row = [](Packed<LmExample> p) {
    return LmBatch{std::move(p.values.inputs), std::move(p.values.targets),
                   std::move(p.values.weights), std::move(p.segment_ids.inputs),
                   std::move(p.positions.inputs)};
  };
  const FeatureLengths length{{"inputs", T}, {"targets", T}, {"weights", T}};
  if (o.packing == LmPacking::concat_then_split)
    return examples.concat_then_split({.length = length})
        .map(to_row)
        .batch(o.batch_size, o.drop_remainder);
  if (o.packing == LmPacking::none)
    return examples.map([T](const LmExample& e) { return padded_row(e, T); }, "pad")
        .batch(o.batch_size, o.drop_remainder);
  const PackOptions fit{.length = length,
                        .num_packing_bins = o.num_packing_bins,
                        .seed = o.seed,
                        .max_sequences_per_bin = o.max_segments_per_seq};
  const IterDataset<LmExample> pieces = examples.flat_map(
      [T](const LmExample& e) {
        std::vector<LmExample> out;
        for (std::int64_t at = 0; at < e.inputs.size(); at += T) {
          const std::int64_t end = std::min(at + T, e.inputs.size());
          out.push_back({slice_rows(e.inputs, at, end), slice_rows(e.targets, at, end),
                         slice_rows(e.weights, at, end)});
        }
        return out;
      },
      "cut");
  const auto packed =
      o.packing == LmPacking::best_fit ? pieces.best_fit_pack(fit) : pieces.first_fit_pack(fit);
  return packed.map(to_row).batch(o.batch_size, o.drop_remainder);
}

}  // namespace xylem::data
