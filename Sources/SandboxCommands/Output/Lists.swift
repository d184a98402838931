internal import SystemIO

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

  /// The width beyond which a cell does not widen its column. A snapshot may contain a text of
  /// megabytes, to which other rows are not padded.
  private static let maximumWidth = 1_000

  /// The lines, without trailing blanks.
  var lines: [String] {
    let widths = alignments.indices.map { column in
      rows.map { TextWidth.columns(of: $0[column]) }.filter { $0 <= Self.maximumWidth }.max() ?? 0
    }
    return rows.map { row in
      let last = row.lastIndex { !$0.isEmpty } ?? 0
      var cells = (0..<last).map { Self.pad(row[$0], to: widths[$0], alignments[$0]) }
      // Without the trailing blanks, which would be removed again.
      let width = alignments[last] == .left ? 0 : widths[last]
      cells.append(Self.pad(row[last], to: width, alignments[last]))
      var line = cells.joined(separator: "  ")
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  private static func pad(_ text: String, to width: Int, _ alignment: Alignment) -> String {
    let blanks = String(repeating: " ", count: max(0, width - TextWidth.columns(of: text)))
    return alignment == .left ? text + blanks : blanks + text
  }
}

/// The part of a list that text output shows: the largest elements, in order of size, and totals of
/// the others. Empty elements are only counted, unless there are no others. A short list is shown
/// in its own order.
struct ListExcerpt<Element> {
  /// The elements to show.
  let shown: [Element]
  /// The number of elements with a size that are not shown.
  let hidden: Int
  /// The sizes of the hidden elements, in bytes.
  let hiddenBytes: UInt64
  /// The number of empty elements, which are not shown.
  let empty: Int

  /// The maximum number of elements to show.
  static var limit: Int { 20 }

  /// The option that lists everything in most commands.
  static var option: String { "--all" }

  /// Selects the largest elements by size in bytes, and the first of equal ones.
  ///
  /// - Parameter isEmpty: whether an element is only counted (default: if its size is 0).
  init(
    _ elements: [Element], all: Bool, isEmpty: ((Element) -> Bool)? = nil,
    size: (Element) -> UInt64
  ) {
    let sizes = elements.map(size)
    var largest = elements.indices.filter { index in
      isEmpty.map { !$0(elements[index]) } ?? (sizes[index] > 0)
    }
    guard !all, elements.count > Self.limit || !largest.isEmpty else {
      (shown, hidden, hiddenBytes, empty) = (elements, 0, 0, 0)
      return
    }
    if largest.count > Self.limit { largest.sort { (sizes[$1], $0) < (sizes[$0], $1) } }
    shown = largest.prefix(Self.limit).map { elements[$0] }
    hidden = max(0, largest.count - Self.limit)
    hiddenBytes = largest.dropFirst(Self.limit).map { sizes[$0] }.clampedSum
    empty = elements.count - largest.count
  }

  /// Selects the first elements of a list without sizes.
  init(_ elements: some Collection<Element>, all: Bool) {
    shown = Array(all ? elements[...] : elements.prefix(Self.limit))
    (hidden, hiddenBytes, empty) = (elements.count - shown.count, 0, 0)
  }

  /// A line about the elements that are not shown: "914 more, 12.1 MiB; 3 empty (--all lists
  /// them)"; nil if all are shown.
  var remainder: String? { remainder(naming: Self.option) }

  /// Returns the same line for a command with another option that lists everything.
  func remainder(naming option: String) -> String? {
    Self.remainder(hidden, bytes: hiddenBytes, empty: empty, naming: option)
  }

  fileprivate static func remainder(
    _ hidden: Int, bytes hiddenBytes: UInt64 = 0, empty: Int = 0,
    naming option: String = Self.option
  ) -> String? {
    var parts: [String] = []
    if hidden > 0 {
      let bytes = hiddenBytes > 0 ? ", \(Sizes.text(hiddenBytes))" : ""
      parts.append("\(Sizes.count(hidden)) more\(bytes)")
    }
    if empty > 0 { parts.append("\(Sizes.count(empty)) empty") }
    return parts.isEmpty ? nil : parts.joined(separator: "; ") + " (\(option) lists them)"
  }
}

/// The same for lists without sizes whose elements arrive one after another and are not kept:
/// consecutive elements after the same word form a list.
struct RunningExcerpt {
  private let showsAll: Bool
  private var word = ""
  private var count = 0

  /// Shows the first elements of each list, or all.
  init(all: Bool) { showsAll = all }

  /// Returns the lines to print for the next element: the remainder of a list that has ended, and
  /// the element's own.
  mutating func add(_ element: String, after word: String) -> [String] {
    var lines: [String] = []
    if word != self.word {
      lines = remainder
      (self.word, count) = (word, 0)
    }
    count += 1
    if showsAll || count <= ListExcerpt<String>.limit { lines.append(word + element) }
    return lines
  }

  /// The line about the elements of the last list that are not shown; none if all are.
  var remainder: [String] {
    let hidden = showsAll ? 0 : count - ListExcerpt<String>.limit
    // The elements may begin with the space after the word.
    let space = word.isEmpty || word.hasSuffix(" ") ? "" : " "
    return ListExcerpt<String>.remainder(hidden).map { [word + space + $0] } ?? []
  }
}
