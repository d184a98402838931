internal import DatabaseCapture
internal import SystemIO

/// The files of a container that are databases by their names: those beside which a log or a journal
/// of theirs lies. Whether one with a journal alone is a database is seen when it is read.
struct DatabaseNames: Sendable {
  /// For each such file its log and its journal, in this order.
  private(set) var companions: [Int32: [Int32]] = [:]
  private var members: Set<Int32> = []

  /// Finds nothing.
  init() {}

  /// Looks at all names of what is stored.
  init(_ tree: borrowing KeptTree) {
    let names = tree.scan.names.span
    for (index, entry) in tree.scan.entries.enumerated()
    where entry.status.kind == .file && entry.fate != .leftOut && index > 0 {
      let name = names.extracting(entry.nameRange)
      for suffix in Self.suffixes where name.ends(with: suffix.span) {
        let base = name.extracting(0..<(name.count - suffix.count))
        guard let database = tree.child(base, of: Int(entry.parent)),
          tree.scan.entries[database].status.kind == .file
        else { continue }
        companions[Int32(database), default: []].append(Int32(index))
        members.formUnion([Int32(database), Int32(index)])
      }
    }
  }

  private static let suffixes = [DatabaseMember.log, .journal].map(\.suffix)

  /// Whether a file is a database, a log or a journal by its name.
  func isMember(_ index: Int) -> Bool { !members.isEmpty && members.contains(Int32(index)) }
}
