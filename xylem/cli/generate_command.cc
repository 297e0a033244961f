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
#include "xylem/train/training_data.h"

namespace xylem::cli {
int generate_command(const GenerateArguments& a) {
  models::Sampler sampler(
      {.temperature = a.temperature, .top_k = a.top_k, .top_p = a.top_p, .seed = a.seed});
  if (a.max_tokens < 0 || a.max_tokens > INT32_MAX)
    throw_user_error({"generate: --max-tokens", "0 to 2147483647", fmt::format("{}", a.max_tokens),
                      "Give the number of tokens to write"});
  train::TrainedModel trained = train::load_run(a.run);
  const std::shared_ptr<const Tokenizer> tokenizer = train::make_tokenizer(trained.config);
  const std::vector<std::int32_t> prompt =
      train::prompt_tokens(trained.config, *tokenizer, a.prompt);
  if (prompt.empty())
    throw_user_error(
        {"generate: --prompt", "at least one byte", "it is empty", "Give a text to continue"});
  models::Decoder decoder(std::move(trained.model), trained.config.max_target_length);

  std::string text;
  TextStream stream(*tokenizer);
  const auto write = [&](const std::string& piece) {
    text += piece;
    if (!a.json) put(piece);
  };
  if (!a.json) put(a.prompt);
  const std::vector<std::int32_t> tokens =
      models::generate(decoder, prompt, a.max_tokens, sampler, [&](std::int32_t token) {
        if (train::ends_text(trained.config, *tokenizer, token)) return false;
        write(stream.add(token));
        return true;
      });
  write(stream.finish());
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
