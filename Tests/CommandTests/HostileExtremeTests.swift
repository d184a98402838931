import Codecs
import SystemIO
import TestSupport
import Testing

/// Repositories that violate no rule but declare extreme values: no sum and no time in them crashes
/// the program. `PlanLimitTests` has too many paths.
struct HostileExtremeTests {
  private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private static let commands = [
    "check", "snapshots", "snapshots --json", "ls latest --recursive", "ls latest -l",
    "ls latest --recursive --json", "find **", "find ** --json", "diff latest~2 latest",
    "diff latest~2 latest --json", "diff latest~2 latest --metadata", "stats", "stats --json",
    "stats latest", "stats latest --json",
    "restore latest --to back --dry-run", "restore latest --to back --dry-run --json",
  ]

  /// Sizes and times at the limits of their types, three times, so that their sums overflow.
  @Test func overflowingSumsAndTimesAreHandled() throws {
    let most = UInt64(Int64.max)
    var forged = ForgedRepository()
    let times: [(String, Int64)] = [("first", .min), ("last", .max), ("old", -62_135_596_801)]
    let dated = times.map { name, time in
      ForgedEntry.entry(Self.bytes(name)) { encoder in
        encoder.key(5)
        encoder.integer(time)
      }
    }
    let large = ["a", "b", "c"].map {
      ForgedEntry.content(Self.bytes($0), size: most, [(most, nil)])
    }
    let roots = [forged.addTree([]), forged.addTree(large + dated)]
    for root in [roots[0], roots[1], roots[1]] {
      forged.addSnapshot(root) {
        $0.replacing("\"files\":1,\"bytes\":1", with: "\"files\":\(most),\"bytes\":\(most)")
      }
    }
    let hostile = try Hostile(forged)
    let outcomes = try hostile.oursEach(Self.commands.map { "\($0) --repo repo" })
    try #require(outcomes.count == Self.commands.count)
    for (command, outcome) in zip(Self.commands, outcomes) {
      #expect(outcome.code == 0, "\(command): \(outcome.code): \(outcome.errors.prefix(500))")
      #expect(!outcome.output.isEmpty || command.contains("dry-run"), "\(command)")
      #expect(outcome.peakMebibytes < Hostile.memoryBound, "\(command)")
    }
  }
}
