import Foundation
import SystemIO
import TestSupport
import Testing

/// The table of `snapshots`: the kind of each snapshot.
struct SnapshotsListTests {
  /// Returns the rows of the table, with their columns by title.
  private static func table(_ cli: CommandLine) throws -> [[String: String]] {
    let lines = try cli.succeed("snapshots --repo repo").split(separator: "\n").map(String.init)
    let titles = try #require(lines.first).split(separator: " ").map(String.init)
    let starts = try titles.map { title in
      let location = try #require(lines[0].range(of: title)).lowerBound
      return lines[0].distance(from: lines[0].startIndex, to: location)
    }
    return lines.dropFirst().map { line in
      var row: [String: String] = [:]
      for (title, start) in zip(titles, starts) where start < line.count {
        row[title] = String(line.dropFirst(start).prefix { $0 != " " })
      }
      return row
    }
  }

  @Test func columnsWithEqualValuesAreOmitted() throws {
    let fixture = try DeviceRestoreFixture()
    let rows = try Self.table(fixture.cli)
    #expect(rows.count == 1 && rows[0]["policy"] == "ios")
    #expect(rows[0]["reason"] == nil && rows[0]["scope"] == nil)
  }

  @Test func reasonAndScopeAreListed() throws {
    let fixture = try DeviceRestoreFixture()
    let data = try fixture.path("apps/org.example.notebook/data", of: "device")
    _ = try fixture.cli.succeed("backup --root device --repo repo --scheduled --quiet")
    #expect(try Self.table(fixture.cli).map { $0["reason"] } == ["manual", "scheduled"])
    #expect(try Self.table(fixture.cli).allSatisfy { $0["scope"] == nil })
    try fixture.change(data.appending("Documents/Notes/Groceries.md"), to: "changed")
    _ = try fixture.restore("latest~1 --app notebook --in-place")
    let rows = try Self.table(fixture.cli)
    #expect(rows.map { $0["reason"] } == ["manual", "scheduled", "pre-restore"])
    #expect(rows.map { $0["scope"] } == ["device", "device", DeviceRestoreFixture.notebook])
    _ = try fixture.cli.succeed(
      "backup --root device --app notebook --app reader --repo repo --quiet")
    let last = try #require(
      try fixture.cli.succeed("snapshots --repo repo").split(separator: "\n").last)
    #expect(last.contains("  org.example.notebook and 1 more  "), "\(last)")
  }
}
