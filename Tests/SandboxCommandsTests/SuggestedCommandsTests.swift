import Codecs
import SystemIO
import Testing

@testable import SandboxCommands

/// The commands that messages suggest use the repository that was opened.
struct SuggestedCommandsTests {
  private static let commands = SuggestedCommands(
    suffix: " --repo 'my repo' --identity key", suffixWithoutKey: " --repo 'my repo'")

  @Test(arguments: [
    (
      "run 'sandboxctl repair index' to rebuild",
      "run 'sandboxctl repair index --repo 'my repo' --identity key' to rebuild"
    ),
    (
      "'sandboxctl check' or 'sandboxctl forget --force ID'",
      "'sandboxctl check --repo 'my repo' --identity key' or "
        + "'sandboxctl forget --force ID --repo 'my repo' --identity key'"
    ),
    // The command may need another key.
    ("'sandboxctl key rotate' again", "'sandboxctl key rotate --repo 'my repo'' again"),
  ])
  func commandsGetTheRepository(_ message: String, _ complete: String) {
    #expect(Self.commands.complete(message) == complete)
    // The repository is not added twice.
    #expect(Self.commands.complete(complete) == complete)
    #expect(SuggestedCommands().complete(message) == message)
  }

  /// Commands for another repository or a device, and commands that already name a repository.
  @Test(arguments: [
    "", "sandboxctl check", "'sandboxctl check", "'sandboxctl copy --to' and the original",
    "'sandboxctl init' creates a new repository", "then 'sandboxctl mirror'",
    "'sandboxctl apps' lists the apps", "'sandboxctl diff --help' shows how it is used",
    "'sandboxctl dump … | tar -t'", "'sandboxctl snapshots --repo other'", "'sandboxctl '",
    "'sandboxctl ls latest:'my files'' lists them", "'sandboxctl snapshots --host 'a b' --json'",
  ])
  func otherMessagesStay(_ message: String) {
    #expect(Self.commands.complete(message) == message)
  }

  @Test func remediesOfFailuresAreCompleted() {
    let failure = Failure(
      "it failed", status: .damaged, code: .damaged, hint: "run 'sandboxctl repair packs'")
    let shown = failure.suggesting(Self.commands)
    #expect(
      shown.json["hint"]?.string == "run 'sandboxctl repair packs --repo 'my repo' --identity key'")
  }
}
