import Testing

@testable import SandboxCommands

/// Tables of text output.
struct TableTests {
  private static func lines(_ rows: [[String]]) -> [String] {
    var table = Table([("name", .left), ("size", .right), ("tags", .left)])
    for row in rows { table.add(row) }
    return table.lines
  }

  @Test func columnsAreAligned() {
    #expect(
      Self.lines([["a", "10", "x"], ["bcdef", "200", ""], ["", "", ""], ["g", "", "y "]]) == [
        "name   size  tags", "a        10  x", "bcdef   200", "", "g            y",
      ])
  }

  /// A cell of 64 KiB widens no other row.
  @Test func aLongCellCostsOneRow() {
    let long = String(repeating: "x", count: 65_536)
    let lines = Self.lines([[long, "1", long]] + (0..<100).map { ["a", "\($0)", "b"] })
    #expect(lines[1] == "\(long)     1  \(long)")
    #expect(lines.dropFirst(2).allSatisfy { $0.count == "name  size  b".count })
    #expect(lines[0] == "name  size  tags")
  }
}
