import Foundation
import SystemIO
import TestSupport
import Testing

/// The messages of commands that a signal ends.
struct InterruptedCommandTests {
  private let fixture: SignalFixture
  private var cli: CommandLine { fixture.cli }

  init() throws { fixture = try SignalFixture() }

  /// Each command reports its name and its progress, and leaves no lease.
  @Test(arguments: [
    ("forget --keep-last 1 --sizes --dry-run", "cannot find what a removal frees in 'repo'"),
    ("prune", "cannot prune 'repo'"), ("copy --to second", "cannot finish the copy to 'second'"),
    ("stats --growth", "cannot finish reading 'repo'"),
    ("repair packs", "cannot finish the repair of packs in 'repo'"),
    ("repair snapshots", "cannot finish the repair of snapshots in 'repo'"),
    ("mirror --to mirror", ""),
  ])
  func interruptedCommandNamesItself(_ command: String, _ message: String) throws {
    for _ in 0..<2 { _ = try cli.succeed(SignalFixture.backup + " --quiet") }
    _ = try cli.succeed("init second --plain --no-default")
    if command.hasPrefix("repair") { try loseEndOfPack() }
    let outcome = try fixture.signalled(
      "kill -INT $P", command: command + " --repo repo", slow: "pread64",
      when: SignalFixture.readsPacks)
    #expect(outcome.code == 130, "\(outcome.errors)")
    if message.isEmpty {
      #expect(outcome.output.hasSuffix("interrupted: the next run continues\n"), "\(outcome)")
    } else {
      #expect(outcome.errors.contains("error: \(message): it was interrupted"), "\(outcome)")
      #expect(outcome.errors.contains("hint: run it again"), "\(outcome.errors)")
    }
    for name: ByteString in ["repo", "second"] {
      #expect(try cli.names(in: name.appending("leases")).isEmpty, "\(name)")
    }
    #expect(try cli.snapshots().count == 2)
  }

  @Test func interruptedScanNamesItself() throws {
    let outcome = try fixture.signalled(
      "kill -INT $P", command: "classify --layout folder --root tree", slow: "getdents64",
      when: "[ -s trace ]")
    #expect(outcome.code == 130 && outcome.output.isEmpty, "\(outcome)")
    #expect(
      outcome.errors.contains("error: the scan was interrupted\n"),
      "\(outcome.errors)")
    #expect(outcome.errors.contains("hint: run it again"), "\(outcome.errors)")
  }

  /// Damages a pack, so that a repair reads it.
  private func loseEndOfPack() throws {
    let path = try #require(try cli.packs().first)
    let bytes = try #require(FileManager.default.contents(atPath: path))
    try bytes.dropLast(1).write(to: URL(fileURLWithPath: path))
  }
}
