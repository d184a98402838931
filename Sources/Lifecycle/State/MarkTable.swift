internal import Codecs
internal import PolicyEngine
internal import SystemIO

/// Fingerprints of entries, each with the entry's marks (docs/state-file.md, "Marks").
struct MarkTable: Sendable {
  /// The fingerprints of entries without marks, which most entries are.
  private var plain: [UInt64] = []
  private var marked: [UInt64: MarkSet] = [:]

  /// The number of entries.
  var count: Int { plain.count + marked.count }

  mutating func add(_ fingerprint: UInt64, _ marks: MarkSet) {
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
  var sorted: MarkTable {
    var table = self
    table.plain.sort()
    return table
  }

  /// Returns this table with the entries that only another one has, each once.
  func joined(with other: MarkTable) -> MarkTable {
    var table = MarkTable()
    table.plain = Array(Set(plain).union(other.plain)).sorted()
    table.marked = marked.merging(other.marked) { first, _ in first }
    return table
  }
}

// MARK: - File

extension MarkTable {
  private static let magic: [UInt8] = Array("sbxmarks".utf8)
  private static let version: UInt64 = 1
  private static let head = 96
  /// The maximum number of entries. A larger table is not kept, and the next scan looks for its
  /// marks.
  static let limit = 1 << 22
  /// The maximum size of a file in bytes.
  static let sizeLimit = head + 16 * limit + 8

  /// Returns the bytes of a file for a sorted table, or nil if there are too many entries.
  func encoded(_ key: StateKey) -> [UInt8]? {
    guard count <= Self.limit else { return nil }
    var bytes = Self.magic
    bytes.reserveCapacity(Self.head + 8 * plain.count + 16 * marked.count + 8)
    LittleEndian.append(Self.version, to: &bytes)
    key.repository.append(to: &bytes)
    key.source.append(to: &bytes)
    LittleEndian.append(UInt64(plain.count), to: &bytes)
    LittleEndian.append(UInt64(marked.count), to: &bytes)
    for fingerprint in plain { LittleEndian.append(fingerprint, to: &bytes) }
    for (fingerprint, marks) in marked.sorted(by: { $0.key < $1.key }) {
      LittleEndian.append(fingerprint, to: &bytes)
      LittleEndian.append(marks.rawValue, to: &bytes)
    }
    LittleEndian.append(Blake2b.hash(bytes).leadingWord, to: &bytes)
    return bytes
  }

  /// Reads a file; returns nil if it is damaged or belongs to another version or source.
  init?(_ bytes: [UInt8], _ key: StateKey) {
    let (span, end) = (bytes.span, bytes.count - 8)
    guard end >= Self.head, bytes.starts(with: Self.magic),
      LittleEndian.integer(span, at: 8) == Self.version,
      LittleEndian.integer(span, at: end) == Blake2b.hash(span.extracting(0..<end)).leadingWord,
      Digest(span.extracting(16..<48)) == key.repository,
      Digest(span.extracting(48..<80)) == key.source
    else { return nil }
    let plainCount: UInt64 = LittleEndian.integer(span, at: 80)
    let markedCount: UInt64 = LittleEndian.integer(span, at: 88)
    guard max(plainCount, markedCount) <= Self.limit,
      Self.head + 8 * Int(plainCount) + 16 * Int(markedCount) == end
    else { return nil }
    plain.reserveCapacity(Int(plainCount))
    for number in 0..<Int(plainCount) {
      let fingerprint: UInt64 = LittleEndian.integer(span, at: Self.head + 8 * number)
      guard plain.last.map({ $0 <= fingerprint }) ?? true else { return nil }
      plain.append(fingerprint)
    }
    for number in 0..<Int(markedCount) {
      let place = Self.head + 8 * plain.count + 16 * number
      marked[LittleEndian.integer(span, at: place)] =
        MarkSet(rawValue: LittleEndian.integer(span, at: place + 8))
    }
  }
}
