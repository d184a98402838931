internal import CEmbedded

/// The independent reader of the repository format from this directory.
package enum RecoverScript {
  /// The bytes of `recover.py`, which each new repository contains.
  package static let bytes: [UInt8] = {
    let file = ce_recover_py()
    return Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
  }()
}
