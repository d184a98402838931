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
  init(_ tree: borrowing SelectedTree) {
    for (index, entry) in tree.scan.entries.enumerated()
    where entry.status.kind == .file && entry.fate != .excluded && index > 0 {
      guard let database = Self.database(of: index, in: tree) else { continue }
      companions[Int32(database), default: []].append(Int32(index))
      members.formUnion([Int32(database), Int32(index)])
    }
  }

  /// The file that a log or a journal lies beside. What is a log itself has none: each file is of
  /// one database at most.
  private static func database(of index: Int, in tree: borrowing SelectedTree) -> Int? {
    let parent = Int(tree.scan.entries[index].parent)
    let found = tree.scan.withName(index) { name -> Int? in
      guard let suffix = suffixes.first(where: { name.ends(with: $0.span) }) else { return nil }
      return tree.child(name.extracting(0..<(name.count - suffix.count)), of: parent)
    }
    guard let database = found, tree.scan.entries[database].status.kind == .file,
      Self.database(of: database, in: tree) == nil
    else { return nil }
    return database
  }

  private static let suffixes = [DatabaseMember.log, .journal].map(\.suffix)

  /// Whether a file is a database, a log or a journal by its name.
  func isMember(_ index: Int) -> Bool { !members.isEmpty && members.contains(Int32(index)) }
}
