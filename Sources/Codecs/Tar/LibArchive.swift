internal import CArchive

/// The parts that all readers and writers based on libarchive share.
enum LibArchive {
  /// Returns libarchive's reason for the last failure of an archive.
  static func reason(_ archive: OpaquePointer) -> String {
    let text = unsafe archive_error_string(archive).map { unsafe String(cString: $0) }
    return text ?? "libarchive failed without a reason"
  }

  /// The file types of entries, whose C macros contain casts that Swift does not import.
  enum FileType {
    static let mask: UInt32 = 0o170000
    static let fifo: UInt32 = 0o010000
    static let characterDevice: UInt32 = 0o020000
    static let directory: UInt32 = 0o040000
    static let blockDevice: UInt32 = 0o060000
    static let regular: UInt32 = 0o100000
    static let symbolicLink: UInt32 = 0o120000
  }

  /// Returns the bytes of a C string, or nil if there is none.
  static func bytes(_ text: UnsafePointer<CChar>?) -> [UInt8]? {
    guard var pointer = unsafe text else { return nil }
    var bytes: [UInt8] = []
    while unsafe pointer.pointee != 0 {
      bytes.append(UInt8(bitPattern: unsafe pointer.pointee))
      unsafe pointer += 1
    }
    return bytes
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
