// Reads from PTX what a driver needs before compiling it: version, target, and entries with their
// parameters.
#include <cctype>
#include <cstring>
#include <sstream>

#include "driver.h"

namespace pollen {

namespace {

// Words splits text at spaces, with punctuation that matters as separate words; comments are
// dropped.
std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> all;
  std::string word;
  auto end = [&] {
    if (!word.empty()) all.push_back(word);
    word.clear();
  };
  for (size_t i = 0; i < text.size(); i++) {
    if (text.compare(i, 2, "//") == 0) {
      end();
      while (i < text.size() && text[i] != '\n') i++;
    } else if (isspace((unsigned char)text[i])) {
      end();
    } else if (strchr("(),{}", text[i])) {
      end();
      all.push_back(std::string(1, text[i]));
    } else {
      word += text[i];
    }
  }
  end();
  return all;
}

// parameterOf parses one parameter: .param .align 8 .b8 name[16], or .param .u32 name.
//
// Sizes and kinds are compared with those of the kernel that was compiled, because a driver reads
// as many bytes per argument as the PTX declares, whatever the caller passed.
bool readParameter(const std::vector<std::string>& w, size_t from, size_t to, Parameter& p) {
  for (size_t i = from; i < to; i++) {
    const std::string& word = w[i];
    if (word == ".param" || word[0] != '.') continue;
    if (word == ".align") {
      i++;
      continue;
    }
    size_t bracket = w[to - 1].find('[');
    if (word == ".b8" && bracket != std::string::npos) {
      p = {atoi(w[to - 1].c_str() + bracket + 1), 'b'};
      return true;
    }
    if (word.size() < 3) return false;
    p = {atoi(word.c_str() + 2) / 8, word[1] == 'f' ? 'f' : 'i'};
    return p.size > 0;
  }
  return false;
}

// symbolIn returns the name in a word of PTX such as [name+8] or name[40]; position becomes where
// it ends.
std::string symbolIn(const std::string& word, size_t& position) {
  size_t from = word[0] == '[';
  for (position = from; position < word.size() && (isalnum((unsigned char)word[position]) || strchr("_$.", word[position]));) position++;
  return word.substr(from, position - from);
}

}  // namespace

std::string parsePTX(const std::string& text, PTX& into) {
  std::vector<std::string> w = words(text);
  Entry* entry = nullptr;
  std::map<std::string, int> arrays;  // shared arrays that the present entry has not counted yet
  std::map<std::string, int> all;
  for (size_t i = 0; i + 1 < w.size(); i++) {
    size_t end;
    auto array = arrays.find(symbolIn(w[i], end));
    if (entry && array != arrays.end()) {
      entry->shared += array->second;
      arrays.erase(array);
    }
    if (w[i] == ".version") {
      int major = 0, minor = 0;
      sscanf(w[i + 1].c_str(), "%d.%d", &major, &minor);
      into.version = 10 * major + minor;
    } else if (w[i] == ".target") {
      if (sscanf(w[i + 1].c_str(), "sm_%d", &into.capability) != 1) return "target " + w[i + 1];
      into.exact = w[i + 1].back() == 'a';
    } else if (w[i] == ".maxntid" && entry) {
      entry->maxThreads = 1;
      for (size_t j = i + 1; j < w.size() && (isdigit((unsigned char)w[j][0]) || w[j] == ","); j++)
        if (w[j] != ",") entry->maxThreads *= atoi(w[j].c_str());
    } else if (w[i] == "griddepcontrol.wait;" && entry) {
      entry->waits = true;
    } else if (w[i] == ".shared" && !entry && i + 4 < w.size()) {  // .align 8 .b8 name[40];
      std::string name = symbolIn(w[i + 4], end);
      all[name] = (atoi(w[i + 4].c_str() + end + 1) + 15) / 16 * 16;
    } else if (w[i] == ".entry") {
      std::string name = w[i + 1];
      entry = &into.entries[name];
      *entry = {findKernel(name), 1024, {}, false, 0};
      arrays = all;
      size_t from = i + 3, to = from;
      for (; to < w.size() && w[to] != ")"; to++) {
        if (w[to] != "," && w[to + 1] != ")" && w[to + 1] != ",") continue;
        if (w[to] == ",") continue;
        Parameter p;
        while (from < to && w[from] == ",") from++;
        if (!readParameter(w, from, to + 1, p)) return "entry " + name + ": a parameter that no kernel has: " + w[to];
        entry->parameters.push_back(p);
        from = to + 1;
      }
      if (!entry->kernel) return "entry " + name + " was not compiled for this machine";
      const auto& own = entry->kernel->parameters;
      if (own.size() != entry->parameters.size())
        return "entry " + name + " has " + std::to_string(entry->parameters.size()) + " parameters, its source " + std::to_string(own.size());
      for (size_t k = 0; k < own.size(); k++)
        if (own[k].size != entry->parameters[k].size || own[k].kind != entry->parameters[k].kind)
          return "entry " + name + ": parameter " + std::to_string(k) + " is not of its source's type";
      i = to;
    }
  }
  if (into.version == 0 || into.capability == 0) return "no .version or no .target: this is not PTX";
  return "";
}

}  // namespace pollen
