internal import CArchive

/// The parts that all readers and writers by libarchive share.
enum LibArchive {
  /// Returns libarchive's reason for the last failure of an archive.
  static func reason(_ archive: OpaquePointer) -> String {
    let text = unsafe archive_error_string(archive).map { unsafe String(cString: $0) }
    return text ?? "libarchive failed without a reason"
  }

  /// Calls `body` with bytes that have no NUL as a C string.
  static func withCString(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> Void) {
    unsafe (bytes + [0]).withUnsafeBufferPointer { buffer in
      unsafe buffer.withMemoryRebound(to: CChar.self) { characters in
        if let start = characters.baseAddress { unsafe body(start) }
      }
    }
  }
}

/// The libarchive callback that takes what an archive writes. `client` is the array to append to.
func appendToOutput(
  _: OpaquePointer?, client: UnsafeMutableRawPointer?, bytes: UnsafeRawPointer?, count: Int
) -> Int {
  guard let output = unsafe client?.assumingMemoryBound(to: [UInt8].self) else { return -1 }
  unsafe output.pointee.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
  return count
}
