internal import Codecs
public import SystemIO

/// A database with its log and its journal, which are captured, restored and decided on together.
///
/// A file `X` beside a file `X-wal` is one whatever its first bytes, as databases may be encrypted;
/// so is any file that begins with SQLite's magic. Which companions there are is found out by the
/// capture: a log may come and go at any time.
public struct DatabaseUnit: Hashable, Sendable {
  /// The name of the database's own file.
  public let name: ByteString

  /// Makes the unit of a database.
  public init(_ name: ByteString) { self.name = name }

  /// The name that a member has.
  public func name(of member: DatabaseMember) -> ByteString {
    ByteString(Array(name.bytes) + member.suffix)
  }

  /// The members that a capture stores, in the order in which they are read.
  static let captured: [DatabaseMember] = [.database, .log, .journal]

  /// Whether a capture of the unit stores the file of this name, if it is there.
  public func captures(_ file: ByteString) -> Bool {
    Self.captured.contains { name(of: $0) == file }
  }

  /// The units that names of files of one directory show: a name with another that is it and `-wal`.
  /// The names must be sorted by their bytes, and the units are.
  public static func pairs(
    in names: some RandomAccessCollection<ByteString>
  ) -> [DatabaseUnit] {
    var logs: Set<ByteString> = []
    var units: [DatabaseUnit] = []
    for name in names {
      guard let owner = DatabaseMember.owner(of: name), owner.member == .log,
        !logs.contains(owner.database), contains(owner.database, in: names)
      else { continue }
      logs.insert(name)
      units.append(DatabaseUnit(owner.database))
    }
    return units.sorted { $0.name < $1.name }
  }

  private static func contains(
    _ name: ByteString, in names: some RandomAccessCollection<ByteString>
  ) -> Bool {
    var (low, high) = (names.startIndex, names.endIndex)
    while low < high {
      let middle = names.index(low, offsetBy: names.distance(from: low, to: high) / 2)
      if names[middle] == name { return true }
      if names[middle] < name { low = names.index(after: middle) } else { high = middle }
    }
    return false
  }

  /// Whether a file begins as a SQLite database does.
  public static func hasMagic(_ file: borrowing Descriptor) throws(SystemError) -> Bool {
    let head = try file.read(count: DatabaseHead.bytes.count, at: 0)
    return DatabaseHead.begins(head.span)
  }
}
