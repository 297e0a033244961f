#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "xylem/base/error.h"
#include "xylem/base/json.h"
#include "xylem/base/tokenizer.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/output.h"
#include "xylem/models/sampler.h"
#include "xylem/train/run.h"

namespace xylem::cli {
int generate_command(const GenerateArguments& a) {
  models::Sampler sampler(
      {.temperature = a.temperature, .top_k = a.top_k, .top_p = a.top_p, .seed = a.seed});
  if (a.max_tokens < 0 || a.max_tokens > INT32_MAX)
    throw_user_error({"generate: --max-tokens", "0 to 2147483647", fmt::format("{}", a.max_tokens),
                      "Give the number of tokens to write"});
  const ByteTokenizer tokenizer;
  const std::vector<std::int32_t> prompt = tokenizer.encode(a.prompt);
  if (prompt.empty())
    throw_user_error(
        {"generate: --prompt", "at least one byte", "it is empty", "Give a text to continue"});
  train::TrainedModel trained = train::load_run(a.run);
  models::Decoder decoder(std::move(trained.model), trained.config.max_target_length);

  // A vocabulary may have more tokens than there are bytes; those stand for no text.
  const auto text_of = [](std::int32_t token) {
    return token < 256 ? std::string(1, static_cast<char>(token)) : std::string();
  };
  std::string text;
  if (!a.json) put(a.prompt);
  const std::vector<std::int32_t> tokens =
      models::generate(decoder, prompt, a.max_tokens, sampler, [&](std::int32_t token) {
        const std::string piece = text_of(token);
        text += piece;
        if (!a.json) put(piece);
        return true;
      });
  if (!a.json) {
    // On a terminal the shell's prompt wants a line of its own; elsewhere the text is all.
    if (::isatty(1) != 0) put("\n");
    return kDone;
  }
  JsonWriter w;
  w.begin_object();
  w.field("prompt", a.prompt);
  w.field("text", text);
  w.array("tokens", tokens);
  w.end_object();
  put(w.take() + "\n");
  return kDone;
}

}  // namespace xylem::cli
