import Foundation
import SystemIO
import TestSupport
import Testing

/// `snapshots` as a person sees it: what sort of snapshot each is.
@Suite struct SnapshotsListTests {
  /// The table, its columns by title.
  private static func table(_ cli: CommandLine) throws -> [[String: String]] {
    let lines = try cli.succeed("snapshots --repo repo").split(separator: "\n").map(String.init)
    let titles = try #require(lines.first).split(separator: " ").map(String.init)
    let starts = try titles.map { title in
      let place = try #require(lines[0].range(of: title)).lowerBound
      return lines[0].distance(from: lines[0].startIndex, to: place)
    }
    return lines.dropFirst().map { line in
      var row: [String: String] = [:]
      for (title, start) in zip(titles, starts) where start < line.count {
        row[title] = String(line.dropFirst(start).prefix { $0 != " " })
      }
      return row
    }
  }

  @Test func whatIsTheSameForAllIsNotSaid() throws {
    let rig = try DeviceRestoreFixture()
    let rows = try Self.table(rig.cli)
    #expect(rows.count == 1 && rows[0]["policy"] == "ios")
    #expect(rows[0]["reason"] == nil && rows[0]["scope"] == nil)
  }

  @Test func reasonAndScopeAreSaid() throws {
    let rig = try DeviceRestoreFixture()
    let data = try rig.place("apps/org.example.notebook/data", of: "device")
    _ = try rig.cli.succeed("backup --root device --repo repo --scheduled --quiet")
    #expect(try Self.table(rig.cli).map { $0["reason"] } == ["manual", "scheduled"])
    #expect(try Self.table(rig.cli).allSatisfy { $0["scope"] == nil })
    try rig.change(data.appending("Documents/Notes/Groceries.md"), to: "changed")
    _ = try rig.restore("latest~1 --app notebook --in-place")
    let rows = try Self.table(rig.cli)
    #expect(rows.map { $0["reason"] } == ["manual", "scheduled", "pre-restore"])
    #expect(rows.map { $0["scope"] } == ["device", "device", DeviceRestoreFixture.notebook])
    _ = try rig.cli.succeed(
      "backup --root device --app notebook --app reader --repo repo --quiet")
    let last = try #require(
      try rig.cli.succeed("snapshots --repo repo").split(separator: "\n").last)
    #expect(last.contains("  org.example.notebook and 1 more  "), "\(last)")
  }
}
