#include "cli/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/commands.hpp"
#include "cli/terminal.hpp"

namespace rooflash {
namespace {

struct Flag {
  std::vector<std::string> names;  // "-o", "--output"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;  // empty where they are not a closed set
};

struct Command {
  std::vector<std::string> path;  // "list", "cases"; empty for the program itself
  std::string help;
  std::vector<Flag> flags;
  std::vector<Command> subcommands;
};

Flag flag_of(const CLI::Option& option) {
  Flag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.help = option.get_description();
  flag.takes_value = option.get_items_expected_max() > 0;
  const std::string type = option.get_type_name();
  if (type.find('|') != std::string::npos) flag.values = CLI::detail::split(type, '|');
  return flag;
}

Command command_of(const CLI::App& app, std::vector<std::string> path) {
  Command command{std::move(path), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) {
      command.flags.push_back(flag_of(*option));
    }
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_group().empty()) continue;
    std::vector<std::string> below = command.path;
    below.push_back(sub->get_name());
    command.subcommands.push_back(command_of(*sub, std::move(below)));
  }
  return command;
}

// Calls `visit` with `command` and all below it.
template <class Visit>
void for_each_command(const Command& command, const Visit& visit) {
  visit(command);
  for (const Command& sub : command.subcommands) for_each_command(sub, visit);
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.path.back());
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// Inside single quotes of `shell`: bash and zsh end and reopen them, fish has an escape.
std::string quoted(std::string_view text, bool fish) {
  std::string out = "'";
  for (const char c : text) {
    if (fish && (c == '\'' || c == '\\')) {
      out += '\\';
      out += c;
    } else if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// A description that zsh's _arguments and _describe take: brackets and colons are theirs.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_specs(const Command& command) {
  std::string specs;
  for (const Flag& flag : command.flags) {
    for (const std::string& name : flag.names) {
      std::string spec = fmt::format("*{}[{}]", name, zsh_text(flag.help));
      if (flag.takes_value) {
        spec +=
            flag.values.empty() ? ":value:_files" : fmt::format(":value:({})", joined(flag.values));
      }
      specs += " \\\n        " + quoted(spec, false);
    }
  }
  return specs;
}

// The case branch of one command; commands below it are found the same way.
std::string zsh_function(const Command& command) {
  const std::string name =
      fmt::format("_rooflash{}{}", command.path.empty() ? "" : "_", fmt::join(command.path, "_"));
  std::string out = name + "() {\n";
  if (command.subcommands.empty()) {
    return out + "    _arguments" + zsh_specs(command) + " \\\n        '*:file:_files'\n}\n\n";
  }
  out += "    local curcontext=\"$curcontext\" state line\n    local -a commands=(";
  for (const Command& sub : command.subcommands) {
    out += "\n        " + quoted(sub.path.back() + ":" + zsh_text(sub.help), false);
  }
  out += "\n    )\n    _arguments -C" + zsh_specs(command) +
         " \\\n        '1:command:->command' \\\n        '*::argument:->argument'\n"
         "    case $state in\n"
         "        command) _describe command commands ;;\n"
         "        argument)\n            case $line[1] in\n";
  for (const Command& sub : command.subcommands) {
    out += fmt::format("                {}) _rooflash_{} ;;\n", sub.path.back(),
                       fmt::join(sub.path, "_"));
  }
  return out + "            esac ;;\n    esac\n}\n\n";
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const Command root = command_of(app, {});
  std::string path_cases;   // the next word of a command's path
  std::string value_cases;  // the words after a flag
  std::string word_cases;   // the words of a command
  for_each_command(root, [&](const Command& command) {
    const std::string path = joined(command.path);
    for (const Command& sub : command.subcommands) {
      path_cases += fmt::format("            '{} {}') command='{}' ;;\n", path, sub.path.back(),
                                joined(sub.path));
    }
    for (const Flag& flag : command.flags) {
      for (const std::string& name : flag.takes_value ? flag.names : std::vector<std::string>()) {
        // Elsewhere the program's own flags may stand behind a command.
        value_cases += fmt::format(
            "        {}) words='{}' ;;\n",
            command.path.empty() ? "*' " + name + "'" : fmt::format("'{} {}'", path, name),
            joined(flag.values));
      }
    }
    std::vector<std::string> flags;
    for (const Flag& flag : command.flags) {
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    }
    word_cases += fmt::format("        '{}') flags='{}' commands='{}' ;;\n", path, joined(flags),
                              joined(names_of(command.subcommands)));
  });
  // A flag's value keeps `words` empty where any text may stand: readline then completes files.
  return fmt::format(R"bash(# bash completion of rooflash: eval "$(rooflash completion bash)"
_rooflash() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local command='' words=none flags='' commands='' i
    case $word,$before in
        =,*) word='' ;;
        *,=) before=${{COMP_WORDS[COMP_CWORD-2]}} ;;
    esac
    for ((i = 1; i < COMP_CWORD; ++i)); do
        case "$command ${{COMP_WORDS[i]}}" in
{}        esac
    done
    case "$command $before" in
{}    esac
    if [ "$words" = none ]; then
        case $command in
{}        esac
        case $word in
            -*) words=$flags ;;
            *) words=$commands ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _rooflash rooflash
)bash",
                     path_cases, value_cases, word_cases);
}

std::string zsh_completion(const CLI::App& app) {
  const Command root = command_of(app, {});
  std::string out =
      "#compdef rooflash\n"
      "# zsh completion of rooflash: in a folder of $fpath as _rooflash, or\n"
      "# eval \"$(rooflash completion zsh)\" after compinit\n\n";
  for_each_command(root, [&](const Command& command) { out += zsh_function(command); });
  return out +
         "if [ \"${funcstack[1]}\" = _rooflash ]; then\n"
         "    _rooflash \"$@\"\n"
         "else\n"
         "    compdef _rooflash rooflash\n"
         "fi\n";
}

std::string fish_completion(const CLI::App& app) {
  const Command root = command_of(app, {});
  std::string out = "# fish completion of rooflash: rooflash completion fish | source\n";
  for_each_command(root, [&](const Command& command) {
    // Of a command: every word of its path was typed. The program's own flags may stand anywhere.
    std::string typed;
    for (const std::string& word : command.path) {
      typed += fmt::format("{}__fish_seen_subcommand_from {}", typed.empty() ? "" : "; and ", word);
    }
    const auto condition = [](const std::string& test) {
      return test.empty() ? std::string() : " -n " + quoted(test, true);
    };
    for (const Flag& flag : command.flags) {
      out += "complete -c rooflash" + condition(typed);
      for (const std::string& name : flag.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (flag.takes_value)
        out += flag.values.empty() ? " -r" : " -x -a " + quoted(joined(flag.values), true);
      out += " -d " + quoted(flag.help, true) + "\n";
    }
    const std::string next = typed + (typed.empty() ? "not " : "; and not ") +
                             "__fish_seen_subcommand_from " + joined(names_of(command.subcommands));
    for (const Command& sub : command.subcommands) {
      out += fmt::format("complete -c rooflash{} -f -a {} -d {}\n", condition(next),
                         sub.path.back(), quoted(sub.help, true));
    }
  });
  return out;
}

void add_completion(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("completion", "a script that completes words in a shell");
  command->footer(
      "bash: eval \"$(rooflash completion bash)\" in ~/.bashrc\n"
      "zsh:  eval \"$(rooflash completion zsh)\" in ~/.zshrc, after compinit\n"
      "fish: rooflash completion fish | source in ~/.config/fish/config.fish");
  command->require_subcommand(1);
  const auto shell = [&](const char* name, std::string (*script)(const CLI::App&)) {
    command->add_subcommand(name, fmt::format("for {}", name))->callback([&, script] {
      context.action = [&app, script] {
        print_result(script(app));
        return 0;
      };
    });
  };
  shell("bash", bash_completion);
  shell("zsh", zsh_completion);
  shell("fish", fish_completion);
}

}  // namespace rooflash
