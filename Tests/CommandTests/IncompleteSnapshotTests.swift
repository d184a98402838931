import Foundation
import SystemIO
import TestSupport
import Testing

/// Restores from a snapshot whose backup could not read everything.
struct IncompleteSnapshotTests {
  private static let warning =
    "warning: incomplete in the snapshot: folders/tree/closed"

  @Test func restoreNamesWhatTheSnapshotLacks() throws {
    let cli = try Self.make()
    defer { cli.open() }
    for line in [
      "restore latest --to back", "restore latest:folders/tree --to planned --dry-run",
      "restore latest --to quiet --quiet", "restore latest --in-place",
      "restore latest --in-place --dry-run --quiet",
    ] {
      let outcome = try cli.runAsNobody("\(line) --repo repo")
      #expect(outcome.code == 0, "all that the snapshot has is restored: \(outcome.errors)")
      #expect(outcome.errors.contains(Self.warning), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("permission denied"), "\(line): \(outcome.errors)")
    }
    for line in [
      "restore latest --to json --json", "restore latest --to planned --dry-run --json",
      "restore latest --in-place --json", "restore latest --in-place --dry-run --json",
    ] {
      let outcome = try cli.runAsNobody("\(line) --repo repo")
      let report = try CommandLine.object(outcome.output)
      let lacking = report["incomplete"] as? [[String: Any]] ?? []
      #expect(lacking.compactMap { $0.path() } == ["folders/tree/closed"], "\(line)")
    }
    // The snapshot lacks nothing of another path.
    let other = try cli.runAsNobody("restore latest:folders/tree/below --to other --repo repo")
    #expect(other.code == 0 && !other.errors.contains("incomplete"), "\(other.errors)")
  }

  private static func make() throws -> CommandLine {
    let cli = try CommandLine()
    try cli.directory.write("secret", at: "tree/closed")
    try cli.directory.write("open", at: "tree/open")
    try cli.directory.write("below", at: "tree/below/file")
    _ = try Program.run("chmod", ["000", cli.directory.string + "/tree/closed"])
    _ = try Program.run("chown", ["-R", "nobody", cli.directory.string])
    #expect(try cli.runAsNobody("init repo --plain").code == 0)
    #expect(try cli.runAsNobody("backup --layout folder --root tree --repo repo").code == 3)
    return cli
  }
}
