internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SystemIO

extension MarkTable {
  private static let magic: [UInt8] = Array("sbxmarks".utf8)
  private static let version: UInt64 = 1
  private static let head = 96
  /// The maximum size of a file in bytes.
  package static let sizeLimit = head + 16 * limit + 8

  /// Returns the bytes of a file for a sorted table, or nil if there are too many entries.
  package func encoded(_ key: StateKey) -> [UInt8]? {
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
  package init?(_ bytes: [UInt8], _ key: StateKey) {
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
    self.init()
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
