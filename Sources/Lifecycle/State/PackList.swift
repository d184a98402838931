internal import Codecs

/// The packs that a repository had when a state was written: their ids begun, 8 bytes each, in
/// order (docs/state-file.md, "Containers").
enum PackList {
  static func encode(_ packs: Set<Digest>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(packs.count * 8)
    for word in packs.map(\.leadingWord).sorted() { LittleEndian.append(word, to: &bytes) }
    return bytes
  }

  /// Whether all packs of a list are among these.
  static func isWithin(_ packs: Set<Digest>, _ list: [UInt8]) -> Bool {
    let words = Set(packs.map(\.leadingWord))
    return list.count % 8 == 0
      && stride(from: 0, to: list.count, by: 8).allSatisfy {
        words.contains(LittleEndian.integer(list.span, at: $0))
      }
  }
}
