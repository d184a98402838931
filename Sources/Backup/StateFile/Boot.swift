internal import Codecs
internal import SystemIO

/// The boot of the machine in which a state was written (docs/state-file.md, "Restarts"). After a
/// crash of the machine, times that were recorded in an earlier boot may hide a write.
struct Boot: Sendable {
  /// The first eight bytes of the hash of the kernel's boot ID, or 0 if it is unknown.
  let word: UInt64

  /// An unknown boot; it equals no boot, not even itself.
  static let unknown = Boot(word: 0)

  init(word: UInt64) { self.word = word }

  /// Creates a value from `Host.bootID`. A text that is not a UUID, or one of zeros, is unknown: if
  /// the kernel's file is missing or replaced, two boots may have the same text.
  init(_ id: String?) {
    guard let id, ByteString(id).isUUID, id.contains(where: { $0 != "0" && $0 != "-" }) else {
      self = .unknown
      return
    }
    word = Blake2b.hash(Array(id.utf8)).leadingWord
  }

  /// Whether the machine was not restarted between the two; false if either is unknown.
  func isSame(as other: Boot) -> Bool { word != 0 && word == other.word }
}
