import Foundation
import SystemIO
import TestSupport
import Testing

/// Many hosts with one repository in an object store (Tools/soak_fleet.py), and writers beside
/// removals, prunes, copies and kills in such a store (Tools/soak_prune.py). `make soak` runs both
/// for longer, and also with real stores.
struct FleetTests {
  private func run(_ tool: String, _ options: String...) throws -> Program.Outcome {
    let path = Shared.packageRoot.appendingPathComponent("Tools/\(tool)").path
    let directory = try TemporaryDirectory("fleet", inMemory: true)
    return try Program.run(
      "python3", [path, CommandLine.program] + options,
      environment: ["TMPDIR": directory.string])
  }

  @Test func hostsOfAFleetDoNotWaitForEachOtherAndLoseNothing() throws {
    let files = Sampling.count(50, of: 1000)
    let outcome = try run("soak_fleet.py", "--hosts", "20", "--files", "\(files)")
    #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains("costs of a host, 20 hosts, \(files) files each"))
  }

  /// Hosts that cannot read store the same data again, until a prune.
  @Test(.enabled(if: Sampling.isWhole)) func hostsWithoutAKeyLoseNothing() throws {
    let outcome = try run(
      "soak_fleet.py", "--hosts", "10", "--files", "60", "--at-once", "4", "--write-only")
    #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
  }

  @Test func writersAndAPruneShareAStoreOfObjects() throws {
    let outcome = try run("soak_prune.py", "0.02", "--store", "test")
    #expect(outcome.code == 0, "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains(" backups, "))
  }
}
