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

  /// A cell of 64 KiB does not widen other rows.
  @Test func aLongCellCostsOneRow() {
    let long = String(repeating: "x", count: 65_536)
    let lines = Self.lines([[long, "1", long]] + (0..<100).map { ["a", "\($0)", "b"] })
    #expect(lines[1] == "\(long)     1  \(long)")
    #expect(lines.dropFirst(2).allSatisfy { $0.count == "name  size  b".count })
    #expect(lines[0] == "name  size  tags")
  }

  /// Wide characters take two columns on a terminal, and combining characters none.
  @Test(arguments: [
    ("plain", 5), ("caf\u{e9}", 4), ("cafe\u{301}", 4), ("\u{6587}\u{5b57}", 4),
    ("\u{d55c}\u{ae00}.txt", 8), ("\u{1112}\u{1161}\u{11ab}", 2), ("\u{1f600}", 2),
    ("\u{2764}\u{fe0f}", 2), ("\u{2026}\u{b5}", 2), ("\u{ff21}\u{ff71}", 3), ("", 0),
  ])
  func widthIsThatOnATerminal(text: String, columns: Int) {
    #expect(TextWidth.columns(of: text) == columns)
  }

  @Test func columnsBesideWideCharactersAreAligned() {
    var table = Table([("app", .left), ("size", .right)])
    table.add(["org.example.\u{6587}\u{5b57}", "6 B"])
    table.add(["org.example.plain", "\u{6587} B"])
    #expect(
      table.lines == [
        "app                size", "org.example.\u{6587}\u{5b57}    6 B",
        "org.example.plain  \u{6587} B",
      ])
  }

  /// The line about the elements that are not shown has a space after the word, too.
  @Test(arguments: [("lost     ", "a"), ("uncertain", " a")])
  func aListThatIsCutEndsWithTheNumberOfTheOthers(word: String, element: String) {
    var excerpt = RunningExcerpt(all: false)
    let lines = (0..<21).flatMap { _ in excerpt.add(element, after: word) }
    #expect(lines == [String](repeating: word + element, count: 20))
    let space = word.hasSuffix(" ") ? "" : " "
    #expect(excerpt.remainder == [word + space + "1 more (--all lists them)"])
  }
}
