internal import ArchiveStore
internal import Codecs
package import SystemIO

/// One step of an operation: it moves an entry to its path, moves the present entry away, or does
/// both.
///
/// A step can be repeated after an interruption at any point. If the new entry is still staged, the
/// step has to be applied; otherwise the step has already been applied. The present entry is
/// preserved before anything replaces it.
package struct JournalStep: Hashable, Sendable {
  /// The path relative to each of the roots, normalized: no empty component, no `.` and no `..`.
  package var path: ByteString
  /// The root of the destination, by its index among the journal's roots.
  package var root = 0
  /// The root of the staged entry, or nil if the step adds nothing.
  package var source: Int?
  /// The staged entry's name, if it differs. To move a container to another directory, the source
  /// of the step is the old directory.
  var sourceName: ByteString?
  /// The root at which the replaced entry is kept, or nil if there can be none.
  package var kept: Int?
  /// The kept entry's name, if it differs.
  package var keptName: ByteString?
  /// The number of the item that the step belongs to, for example a database with its log; `unit`
  /// in the journal. All neighboring steps of an item are applied or none. Nil for a single step.
  package var item: Int?

  /// Creates a step.
  package init(
    path: ByteString, root: Int = 0, source: Int? = nil, sourceName: ByteString? = nil,
    kept: Int? = nil, keptName: ByteString? = nil, item: Int? = nil
  ) {
    self.path = path
    self.root = root
    self.source = source
    self.sourceName = sourceName
    self.kept = kept
    self.keptName = keptName
    self.item = item
  }

  /// The reason for a file that is not restored because another file of its item, a database, is
  /// not restored.
  package static let brokenItemReason = "a file of the same database could not be restored"

  /// The reason for a database that a program used when only a part of it had been put in place.
  static let changedItemReason =
    "a program has written to the database since the interruption; its previous files are put "
    + "back: restore it again"

  /// The components of the directory.
  var directory: [ByteString] { path.components.dropLast() }
  package var name: ByteString { path.lastComponent ?? "" }
}

extension JournalStep {
  var json: JSON {
    var members = JSON.path(path, named: "path")
    members.append(JSON.Member("in", .integer(Int64(root))))
    if let source { members.append(JSON.Member("from", .integer(Int64(source)))) }
    if let sourceName { members += JSON.path(sourceName, named: "from_name") }
    if let kept { members.append(JSON.Member("keep", .integer(Int64(kept)))) }
    if let keptName { members += JSON.path(keptName, named: "as") }
    if let item { members.append(JSON.Member("unit", .integer(Int64(item)))) }
    return .object(members)
  }

  /// Parses a step, or returns nil if it is malformed or names a path outside its roots.
  init?(_ json: JSON, roots: Int) {
    guard let path = json.path(named: "path"), path.isPlain, !path.isAbsolute,
      let root = json["in"]?.integer.flatMap({ Int(exactly: $0) })
    else { return nil }
    let source = json["from"]?.integer.flatMap { Int(exactly: $0) }
    let kept = json["keep"]?.integer.flatMap { Int(exactly: $0) }
    let name = json.path(named: "as")
    let sourceName = json.path(named: "from_name")
    let item = json["unit"]?.integer.flatMap { Int(exactly: $0) }
    let numbers = [root, source ?? 0, kept ?? 0]
    guard numbers.allSatisfy({ (0..<roots).contains($0) }), source != nil || kept != nil,
      (source == nil) == (json["from"] == nil), (kept == nil) == (json["keep"] == nil),
      (item == nil) == (json["unit"] == nil), (0...Int(Int32.max)).contains(item ?? 0),
      [name, sourceName].allSatisfy({ $0.map(\.isName) ?? true }),
      source != nil || sourceName == nil
    else { return nil }
    self.init(
      path: path, root: root, source: source, sourceName: sourceName, kept: kept, keptName: name,
      item: item)
  }
}

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
    let source, kept, item: Int32
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
        source: Int32(step.source ?? -1), kept: Int32(step.kept ?? -1), item: Int32(step.item ?? -1)
      ))
  }

  mutating func append(contentsOf steps: some Sequence<JournalStep>) {
    for step in steps { append(step) }
  }

  /// The steps grouped by item. A step without an item is a group of its own.
  var items: UnfoldSequence<Slice<JournalSteps>, Int> { parts { rows[$0].item } }

  /// The steps as groups of one.
  var singly: UnfoldSequence<Slice<JournalSteps>, Int> { parts { _ in -1 } }

  private func parts(
    of item: @escaping (Int) -> Int32
  ) -> UnfoldSequence<Slice<JournalSteps>, Int> {
    sequence(state: startIndex) { start in
      guard start < endIndex else { return nil }
      var end = start + 1
      while end < endIndex, item(start) >= 0, item(end) == item(start) { end += 1 }
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
      item: row.item < 0 ? nil : Int(row.item))
  }
}

extension JournalSteps: Hashable, ExpressibleByArrayLiteral {
  package init(arrayLiteral steps: JournalStep...) { self.init(steps) }

  package static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }

  package func hash(into hasher: inout Hasher) { hasher.combine(count) }
}

extension ByteString {
  /// Whether the string is a valid name of one entry.
  fileprivate var isName: Bool { isPlain && components.count == 1 && count <= Int(UInt8.max) }

  /// Whether the string is a normalized path that only descends.
  fileprivate var isPlain: Bool {
    let parts = components
    let joined = ByteString(joining: parts)
    return !parts.isEmpty && !hasNUL && joined == self
      && !parts.contains { $0 == "." || $0 == ".." }
  }
}
