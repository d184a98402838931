/// A table of text. Each column is as wide as its widest cell.
struct Table {
  /// The side to which the cells of a column are aligned.
  enum Alignment {
    case left
    case right
  }

  private let alignments: [Alignment]
  private var rows: [[String]]

  /// Creates a table with a header line.
  init(_ columns: [(title: String, alignment: Alignment)]) {
    alignments = columns.map(\.alignment)
    rows = [columns.map(\.title)]
  }

  /// Whether there is only the header line.
  var isEmpty: Bool { rows.count == 1 }

  /// Adds a row with a cell for each column.
  mutating func add(_ cells: [String]) { rows.append(cells) }

  /// The lines, without trailing blanks.
  var lines: [String] {
    let widths = alignments.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      let cells = alignments.indices.map { Self.pad(row[$0], to: widths[$0], alignments[$0]) }
      var line = cells.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  private static func pad(_ text: String, to width: Int, _ alignment: Alignment) -> String {
    let blanks = String(repeating: " ", count: max(0, width - text.count))
    return alignment == .left ? text + blanks : blanks + text
  }
}
