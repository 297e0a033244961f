#include "xylem/models/tokenizers/hf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/models/tokenizers/internal/added_tokens.h"
#include "xylem/models/tokenizers/internal/bpe.h"
#include "xylem/models/tokenizers/internal/parts.h"
#include "xylem/models/tokenizers/internal/unicode.h"

namespace xylem::models {

namespace {

using internal::Json;
using internal::JsonPlace;

constexpr int kDeepest = 64;
// Texts whose parts a table of all ids would make larger than the file by far are refused.
constexpr std::size_t kSpareIds = std::size_t{1} << 20;

// The parser itself does not recurse, but what reads its result does.
bool too_deep(std::string_view json) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Json parse_json(std::string_view text, const std::string& name) {
  Json j;
  if (!too_deep(text)) j = Json::parse(text, nullptr, false);
  if (!j.is_object())
    throw_user_error({name, fmt::format("a JSON object of at most {} levels", kDeepest),
                      text.empty() ? "an empty file" : "other text",
                      "Give the tokenizer.json that the tokenizers library saved"});
  return j;
}

// The text of a member like bos_token, which is a text, an added token or null.
std::optional<std::string> token_of(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && (*found)["content"].is_string())
    return (*found)["content"].get<std::string>();
  return std::nullopt;
}

}  // namespace

struct HfTokenizer::Impl {
  std::unique_ptr<internal::Bpe> model;
  std::unique_ptr<internal::Normalizer> normalizer;
  std::shared_ptr<const internal::PreTokenizer> pre_tokenizer;
  bool bytes = false;  // pre_tokenizer gives bytes instead of ByteLevel's characters
  internal::PostProcessor post_processor;
  std::unique_ptr<internal::Decoder> decoder;
  std::vector<internal::AddedToken> added;
  internal::StringMap<std::size_t> added_by_text;
  internal::TokenFinder raw, normalized;
  std::vector<const std::string*> tokens;  // by id; null where there is none
  std::vector<bool> special;
  std::optional<std::int32_t> bos, eos;

  void read(const JsonPlace& json);
  void set_marks(const Json& config, const std::string& name);
  std::optional<std::int32_t> id_of(std::string_view token) const {
    if (const auto a = added_by_text.find(token); a != added_by_text.end())
      return added[a->second].id;
    const auto t = model->vocab().find(token);
    return t == model->vocab().end() ? std::nullopt : std::optional(t->second);
  }

  void encode_piece(std::string_view text, bool at_start, std::vector<std::int32_t>& ids) const {
    if (text.empty()) return;
    if (!pre_tokenizer) return model->encode(text, false, ids);
    pre_tokenizer->split(text, at_start,
                         [&](std::string_view piece, bool) { model->encode(piece, bytes, ids); });
  }

  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size() / 3 + 4);
    std::string repaired;
    if (!internal::is_utf8(text)) text = repaired = internal::to_utf8(text);
    const auto token = [&](std::int32_t id) { ids.push_back(id); };
    const auto part = [&](std::size_t begin, std::size_t end) {
      std::string_view piece = text.substr(begin, end - begin);
      bool at_start = begin == 0;
      std::string changed;
      if (normalizer) {
        changed = piece;
        normalizer->apply(changed, at_start);
        piece = changed;
      }
      if (normalized.empty()) return encode_piece(piece, at_start, ids);
      normalized.split(piece, token, [&](std::size_t b, std::size_t e) {
        encode_piece(piece.substr(b, e - b), at_start && b == 0, ids);
      });
    };
    if (raw.empty()) {
      if (!text.empty()) part(0, text.size());
    } else {
      raw.split(text, token, part);
    }
    return ids;
  }
};

void HfTokenizer::Impl::read(const JsonPlace& json) {
  const Json null;
  const auto member = [&](const char* key) {
    return json.has(key) ? json.at(key) : JsonPlace{null, json.path + "." + key};
  };
  model = std::make_unique<internal::Bpe>(json.at("model"));
  normalizer = internal::make_normalizer(member("normalizer"));
  pre_tokenizer = internal::make_pre_tokenizer(member("pre_tokenizer"));
  if (pre_tokenizer && model->takes_bytes())
    if (auto plain = pre_tokenizer->without_byte_map()) {
      pre_tokenizer = std::move(plain);
      bytes = true;
    }
  post_processor = internal::make_post_processor(member("post_processor"));
  decoder = internal::make_decoder(member("decoder"));

  const auto& vocab = model->vocab();
  added = internal::read_added_tokens(
      member("added_tokens"),
      [&](const std::string& token) {
        const auto found = vocab.find(token);
        return found == vocab.end() ? -1 : found->second;
      },
      vocab.size());
  std::int64_t last = -1;
  for (const auto& [token, id] : vocab) last = std::max<std::int64_t>(last, id);
  for (const auto& t : added) last = std::max<std::int64_t>(last, t.id);
  if (static_cast<std::size_t>(last + 1) > kSpareIds + 16 * (vocab.size() + added.size()))
    json.at("model").at("vocab").refuse(
        fmt::format("ids without large gaps; the largest is {}, of {} tokens", last, vocab.size()),
        "Number the tokens one after the other");
  tokens.assign(static_cast<std::size_t>(last + 1), nullptr);
  special.assign(tokens.size(), false);
  for (const auto& [token, id] : vocab) tokens[static_cast<std::size_t>(id)] = &token;
  for (std::size_t i = 0; i < added.size(); ++i) {
    added_by_text.emplace(added[i].content, i);
    internal::AddedToken& t = added[i];
    t.text = t.content;
    bool at_start = true;
    if (t.normalized && normalizer) normalizer->apply(t.text, at_start);
    (t.normalized ? normalized : raw).add(t);
    tokens[static_cast<std::size_t>(t.id)] = &t.text;
    special[static_cast<std::size_t>(t.id)] = t.special;
  }
  for (const auto& step : post_processor)
    for (const auto& id : step)
      if (id && (static_cast<std::size_t>(*id) >= tokens.size()))
        member("post_processor")
            .refuse(fmt::format("ids of tokens, below {}", tokens.size()), "Add the token");

  // What one template puts before and behind the text.
  if (post_processor.size() == 1) {
    const auto& t = post_processor[0];
    const auto text = std::find(t.begin(), t.end(), std::nullopt);
    if (text == t.begin() + 1) bos = **t.begin();
    if (text != t.end() && text + 2 == t.end() && *(text + 1)) eos = **(text + 1);
  }
}

void HfTokenizer::Impl::set_marks(const Json& config, const std::string& name) {
  const auto set = [&](const char* key, std::optional<std::int32_t>& mark) {
    if (!config.contains(key)) return;
    const auto token = token_of(config, key);
    mark = token ? id_of(*token) : std::nullopt;
    if (token && !mark)
      throw_user_error({fmt::format("{}.{}", name, key), "a token of the vocabulary",
                        fmt::format("\"{:.100}\"", *token), "Add the token to tokenizer.json"});
  };
  set("bos_token", bos);
  set("eos_token", eos);
}

HfTokenizer::HfTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HfTokenizer::~HfTokenizer() = default;

std::shared_ptr<const HfTokenizer> HfTokenizer::parse(std::string_view json,
                                                      std::string_view name) {
  auto impl = std::make_unique<Impl>();
  const Json j = parse_json(json, std::string(name));
  impl->read({j, std::string(name)});
  return std::shared_ptr<const HfTokenizer>(new HfTokenizer(std::move(impl)));
}

std::shared_ptr<const HfTokenizer> HfTokenizer::open(const std::string& path) {
  const bool folder = is_directory(path);
  const std::string file = folder ? path + "/tokenizer.json" : path;
  auto impl = std::make_unique<Impl>();
  {
    const Json j = parse_json(read_file(file), file);
    impl->read({j, file});
  }
  if (folder)
    for (const char* name : {"/special_tokens_map.json", "/tokenizer_config.json"})
      if (path_exists(path + name))
        impl->set_marks(parse_json(read_file(path + name), path + name), path + name);
  return std::shared_ptr<const HfTokenizer>(new HfTokenizer(std::move(impl)));
}

std::vector<std::int32_t> HfTokenizer::encode(std::string_view text) const {
  return impl_->encode(text);
}

std::vector<std::int32_t> HfTokenizer::encode_with_special_tokens(std::string_view text) const {
  std::vector<std::int32_t> ids = impl_->encode(text);
  for (const auto& step : impl_->post_processor) {
    std::vector<std::int32_t> out;
    for (const auto& piece : step)
      if (piece)
        out.push_back(*piece);
      else
        out.insert(out.end(), ids.begin(), ids.end());
    ids = std::move(out);
  }
  return ids;
}

std::string HfTokenizer::decode(std::span<const std::int32_t> ids) const {
  return decode(ids, false);
}

std::string HfTokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (std::int32_t id : ids) {
    if (id < 0 || id >= vocab_size())
      throw_user_error({"HfTokenizer::decode", fmt::format("ids must lie in [0, {})", vocab_size()),
                        fmt::format("an id is {}", id), "Decode with the tokenizer that encoded"});
    const auto i = static_cast<std::size_t>(id);
    if (impl_->tokens[i] == nullptr || (skip_special_tokens && impl_->special[i])) continue;
    tokens.push_back(*impl_->tokens[i]);
  }
  std::string text;
  if (impl_->decoder) {
    if (!tokens.empty()) impl_->decoder->apply(tokens);
    for (const std::string& t : tokens) text += t;
  } else {
    for (std::size_t i = 0; i < tokens.size(); ++i) text += (i == 0 ? "" : " ") + tokens[i];
  }
  return text;
}

std::int32_t HfTokenizer::vocab_size() const {
  return static_cast<std::int32_t>(impl_->tokens.size());
}
std::optional<std::int32_t> HfTokenizer::bos_id() const { return impl_->bos; }
std::optional<std::int32_t> HfTokenizer::eos_id() const { return impl_->eos; }

std::optional<std::int32_t> HfTokenizer::token_to_id(std::string_view token) const {
  return impl_->id_of(token);
}

std::optional<std::string> HfTokenizer::id_to_token(std::int32_t id) const {
  if (id < 0 || id >= vocab_size() || impl_->tokens[static_cast<std::size_t>(id)] == nullptr)
    return std::nullopt;
  return *impl_->tokens[static_cast<std::size_t>(id)];
}

}  // namespace xylem::models
