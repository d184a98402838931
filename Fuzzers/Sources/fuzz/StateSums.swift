import Codecs
import SystemIO

@testable import Backup

/// Corrects the checksums of a state file and of the file of an interrupted run.
enum StateSums {
  private static let keyAt = 24
  private static let containersAt = 88

  /// Returns the bytes with heads of this key, and with correct checksums of the heads, of their
  /// container tables and of the batches.
  static func corrected(_ bytes: [UInt8], _ key: StateKey) -> [UInt8] {
    var bytes = bytes
    correctBatches(&bytes)
    for location in KnownState.Head.locations { correctHead(&bytes, at: Int(location), key) }
    return bytes
  }

  private static func correctHead(_ bytes: inout [UInt8], at start: Int, _ key: StateKey) {
    guard bytes.count >= start + KnownState.Head.size else { return }
    bytes.replaceSubrange(
      (start + keyAt)..<(start + keyAt + 64), with: key.repository.bytes + key.source.bytes)
    correctPointer(&bytes, at: start + containersAt)
    let head = start..<(start + KnownState.Head.size - 8)
    put(Blake2b.hash(Array(bytes[head])).leadingWord, at: head.upperBound, in: &bytes)
  }

  /// Corrects the checksum in a record pointer.
  private static func correctPointer(_ bytes: inout [UInt8], at start: Int) {
    let offset = LittleEndian.integer(bytes.span, at: start, as: UInt64.self)
    let length = LittleEndian.integer(bytes.span, at: start + 8, as: UInt32.self)
    guard offset <= UInt64(bytes.count), UInt64(length) <= UInt64(bytes.count) - offset else {
      return
    }
    let record = Array(bytes[Int(offset)..<(Int(offset) + Int(length))])
    put(Blake2b.hash(record).leadingWord, at: start + 12, in: &bytes)
  }

  /// Corrects the batches of an interrupted run's file. They follow the head, each with its length
  /// and its checksum.
  private static func correctBatches(_ bytes: inout [UInt8]) {
    var location = KnownState.Head.size
    while location + 12 <= bytes.count {
      let length = Int(LittleEndian.integer(bytes.span, at: location, as: UInt32.self))
      let start = location + 12
      guard length > 0, length <= bytes.count - start else { return }
      let batch = Array(bytes[start..<(start + length)])
      put(Blake2b.hash(batch).leadingWord, at: location + 4, in: &bytes)
      location = start + length
    }
  }

  private static func put(_ word: UInt64, at location: Int, in bytes: inout [UInt8]) {
    var encoded: [UInt8] = []
    LittleEndian.append(word, to: &encoded)
    bytes.replaceSubrange(location..<(location + 8), with: encoded)
  }
}
