// Scripts with which shells complete the words of a command line, made from its definition.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace rooflash {

// Commands, their flags, and the values of flags whose type name lists them ("cold|warm");
// everything else completes to files.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace rooflash
