internal import DatabaseCapture
internal import DeviceScan
internal import SystemIO

/// The files of a container that are databases by their names: those with a log or a journal beside
/// them. Whether a file that has only a journal is a database is determined when it is read.
struct DatabaseNames: Sendable {
  /// The log and the journal of each such file, in this order.
  private(set) var companions: [Int32: [Int32]] = [:]
  private var members: Set<Int32> = []

  /// Creates an empty set.
  init() {}

  /// Finds the databases among the stored entries.
  init(_ tree: borrowing SelectedTree) {
    for (index, entry) in tree.scan.entries.enumerated()
    where entry.status.kind == .file && entry.selection != .excluded && index > 0 {
      guard let database = Self.database(of: index, in: tree) else { continue }
      companions[Int32(database), default: []].append(Int32(index))
      members.formUnion([Int32(database), Int32(index)])
    }
  }

  /// Returns the file that a log or a journal belongs to. A log has no log of its own: each file
  /// belongs to at most one database.
  private static func database(of index: Int, in tree: borrowing SelectedTree) -> Int? {
    let parent = Int(tree.scan.entries[index].parent)
    let found = tree.scan.withName(index) { name -> Int? in
      guard let suffix = suffixes.first(where: { name.hasSuffix($0.span) }) else { return nil }
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
