import Foundation
import SystemIO
import TestSupport
import Testing

/// The completion scripts contain every command and option, and the bash script completes words.
struct CompletionTests {
  @Test(arguments: ["bash", "zsh", "fish"])
  func everyCommandAndOptionIsCompleted(_ shell: String) throws {
    let cli = try CommandLine()
    let script = try cli.succeed("--generate-completion-script \(shell)")
    for command in try HelpTree.commands(cli) {
      if let word = command.last { #expect(script.contains(word), "\(command)") }
    }
    for (command, option) in try HelpTree.options(cli) {
      let written = shell == "fish" ? "-l '\(option.name)'" : "--\(option.name)"
      let plain = shell == "fish" ? "-l \(option.name)" : written
      #expect(script.contains(written) || script.contains(plain), "\(command) \(option.name)")
    }
    #expect(!script.contains("configured-repo"), "internal options are not offered")
  }

  /// Returns the completions that bash offers for the last of the words.
  private func completions(_ cli: CommandLine, _ words: String...) throws -> [String] {
    let quoted = (["sandboxctl"] + words).map { "'\($0)'" }.joined(separator: " ")
    let script = """
      source completions
      COMP_WORDS=(\(quoted)); COMP_CWORD=\(words.count)
      COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
      $(complete -p sandboxctl | sed 's/.*-F \\([^ ]*\\).*/\\1/') sandboxctl \
        "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let outcome = try cli.run([], under: ["bash", "--norc", "-c", script])
    #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    return outcome.output.split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
  }

  @Test func bashCompletesCommandsAndOptions() throws {
    let cli = try CommandLine()
    try cli.directory.write(
      Array(try cli.succeed("--generate-completion-script bash").utf8), at: "completions")
    #expect(try completions(cli, "back") == ["backup"])
    #expect(Set(try completions(cli, "s")).isSuperset(of: ["sample", "schedule", "snapshots"]))
    #expect(try completions(cli, "schedule", "in") == ["install"])
    #expect(try completions(cli, "backup", "--lock-") == ["--lock-wait"])
    #expect(try completions(cli, "backup", "--when", "o") == ["on-ac"])
    #expect(try completions(cli, "backup", "--layout", "fl") == ["flatpak"])
    #expect(try completions(cli, "restore", "latest", "--overwrite", "if-n") == ["if-newer"])
    #expect(try completions(cli, "restore", "latest", "--class", "user") == ["user-data"])
    #expect(try completions(cli, "classify", "--for", "cl") == ["cloud"])
    #expect(try completions(cli, "policy", "s").sorted() == ["schema", "show"])
    _ = try Directory.make(path: cli.directory.path("some-folder"))
    try cli.directory.write("x", at: "some-file")
    #expect(try completions(cli, "backup", "--root", "some-") == ["some-folder"])
  }
}
