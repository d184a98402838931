internal import Codecs
public import PolicyEngine
internal import SystemIO

/// Fingerprints of entries, each with the entry's marks (docs/state-file.md, "Marks").
public struct MarkTable: Sendable {
  /// The fingerprints of entries without marks, which most entries are.
  public var plain: [UInt64] = []
  /// The marks of the other entries, by their fingerprints.
  public var marked: [UInt64: MarkSet] = [:]

  /// The maximum number of entries. A larger table is not kept, and the next scan looks for its
  /// marks.
  public static let limit = 1 << 22

  /// Creates an empty table.
  public init() {}

  /// The number of entries.
  public var count: Int { plain.count + marked.count }

  public mutating func add(_ fingerprint: UInt64, _ marks: MarkSet) {
    if marks.isEmpty { plain.append(fingerprint) } else { marked[fingerprint] = marks }
  }

  /// Adds all entries of another table.
  mutating func add(_ other: MarkTable) {
    plain += other.plain
    marked.merge(other.marked) { first, _ in first }
  }

  /// Returns the marks of a fingerprint, or nil if it is unknown. The table must be sorted.
  func marks(_ fingerprint: UInt64) -> MarkSet? {
    if let marks = marked[fingerprint] { return marks }
    var (low, high) = (0, plain.count)
    while low < high {
      let middle = (low + high) / 2
      if plain[middle] < fingerprint { low = middle + 1 } else { high = middle }
    }
    return low < plain.count && plain[low] == fingerprint ? [] : nil
  }

  /// The sorted table, for lookups. An entry of two containers is in it twice.
  public var sorted: MarkTable {
    var table = self
    table.plain.sort()
    return table
  }

  /// Returns this table with the entries that only another one has, each once.
  public func joined(with other: MarkTable) -> MarkTable {
    var table = MarkTable()
    table.plain = Array(Set(plain).union(other.plain)).sorted()
    table.marked = marked.merging(other.marked) { first, _ in first }
    return table
  }
}
