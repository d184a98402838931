internal import SystemIO

/// The steps of a journal, in the order in which they are applied.
///
/// A restore may have millions of steps. Each is stored as a row of 32 bytes, with its names in one
/// arena, and both can spill to disk (`SpillableArray`). A `JournalStep` is created on access.
package struct JournalSteps: Sendable {
  private var rows = SpillableArray<Row>()
  private var names = SpillableArray<UInt8>()

  private struct Row: BitwiseCopyable, Sendable {
    /// The offset of the step's path, which its two other names follow.
    let start: UInt64
    let pathLength: UInt32
    /// The lengths of the other names; 0 if absent.
    let sourceNameLength, keptNameLength: UInt16
    let root: Int32
    /// -1 if absent.
    let source, kept, unit: Int32
  }

  /// Creates an empty list.
  init() {}

  /// Creates a list of steps.
  init(_ steps: some Sequence<JournalStep>) { for step in steps { append(step) } }

  package mutating func append(_ step: JournalStep) {
    let start = UInt64(names.count)
    for name in [step.path, step.sourceName, step.keptName] {
      if let name { names.append(contentsOf: name.bytes) }
    }
    rows.append(
      Row(
        start: start, pathLength: UInt32(step.path.count),
        sourceNameLength: UInt16(step.sourceName?.count ?? 0),
        keptNameLength: UInt16(step.keptName?.count ?? 0), root: Int32(step.root),
        source: Int32(step.source ?? -1), kept: Int32(step.kept ?? -1), unit: Int32(step.unit ?? -1)
      ))
  }

  mutating func append(contentsOf steps: some Sequence<JournalStep>) {
    for step in steps { append(step) }
  }

  /// The steps grouped by unit. A step without a unit is a group of its own.
  package var units: UnfoldSequence<Slice<JournalSteps>, Int> { parts { rows[$0].unit } }

  /// The steps as groups of one.
  var singly: UnfoldSequence<Slice<JournalSteps>, Int> { parts { _ in -1 } }

  private func parts(
    of unit: @escaping (Int) -> Int32
  ) -> UnfoldSequence<Slice<JournalSteps>, Int> {
    sequence(state: startIndex) { start in
      guard start < endIndex else { return nil }
      var end = start + 1
      while end < endIndex, unit(start) >= 0, unit(end) == unit(start) { end += 1 }
      defer { start = end }
      return self[start..<end]
    }
  }
}

extension JournalSteps: RandomAccessCollection {
  package var startIndex: Int { 0 }
  package var endIndex: Int { rows.count }

  package subscript(index: Int) -> JournalStep {
    let row = rows[index]
    var at = Int(row.start)
    let name = { (length: Int) -> ByteString? in
      defer { at += length }
      return length == 0 ? nil : ByteString(names.copy(at..<(at + length)))
    }
    return JournalStep(
      path: name(Int(row.pathLength)) ?? "", root: Int(row.root),
      source: row.source < 0 ? nil : Int(row.source), sourceName: name(Int(row.sourceNameLength)),
      kept: row.kept < 0 ? nil : Int(row.kept), keptName: name(Int(row.keptNameLength)),
      unit: row.unit < 0 ? nil : Int(row.unit))
  }
}

extension JournalSteps: Hashable, ExpressibleByArrayLiteral {
  package init(arrayLiteral steps: JournalStep...) { self.init(steps) }

  package static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }

  package func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
