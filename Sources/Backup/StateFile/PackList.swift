package import Codecs
internal import Synchronization

/// The packs that a repository had when a state was written: the first 8 bytes of their ids, in
/// order (docs/state-file.md, "Containers").
enum PackList {
  static func encode(_ packs: Set<Digest>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(packs.count * 8)
    for word in packs.map(\.leadingWord).sorted() { LittleEndian.append(word, to: &bytes) }
    return bytes
  }
}

/// The packs that a run can rely on, for comparison with the lists of a state. Containers recorded
/// by one run share a list, which is compared only once.
package final class ListedPacks: Sendable {
  private let words: Set<UInt64>
  private let answers = Mutex<[RecordPointer: Bool]>([:])

  package init(_ packs: Set<Digest>) { words = Set(packs.map(\.leadingWord)) }

  /// Whether all packs of a list in a state's file are among these; false if it cannot be read.
  func hold(_ list: RecordPointer, in file: RecordFile) -> Bool {
    if let known = answers.withLock({ $0[list] }) { return known }
    let answer = file.read(list).map { hold($0) } ?? false
    answers.withLock { $0[list] = answer }
    return answer
  }

  /// Whether all packs of a list are among these.
  func hold(_ list: [UInt8]) -> Bool {
    list.count % 8 == 0
      && stride(from: 0, to: list.count, by: 8).allSatisfy {
        words.contains(LittleEndian.integer(list.span, at: $0))
      }
  }
}
