// The templates by which models want chats written: the part of Jinja that they use, with its limits.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rushlight/runtime.h"

namespace rushlight::serve {

struct ChatMessage {
  std::string role, content;
};

class ChatTemplate {
 public:
  // The template of a model's tokenizer_config.json or chat_template.jinja; null where it has none. What it
  // uses and is not covered is an error that names it.
  static std::shared_ptr<const ChatTemplate> of(const runtime::Model& model);
  ChatTemplate(std::string_view text, std::string beginning, std::string end);
  ~ChatTemplate();

  // With what asks for an answer behind the messages. A ValueError is the template's own, or what it asks
  // for.
  std::string render(const std::vector<ChatMessage>& messages) const;

 private:
  struct Program;
  std::unique_ptr<const Program> program_;
  std::string beginning_, end_;
};

}  // namespace rushlight::serve
