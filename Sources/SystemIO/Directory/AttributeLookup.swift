internal import CLinux
internal import Glibc

/// The names of an entry's extended attributes, in a buffer that is reused for the next entry.
public struct AttributeLookup: ~Copyable {
  private var buffer = [UInt8](repeating: 0, count: 1024)
  private var filled = 0
  /// Whether the file system of the last entry supports extended attributes.
  public private(set) var isAnswered = true

  /// Creates a lookup without an entry.
  public init() {}

  /// Whether the entry has no attributes.
  public var isEmpty: Bool { filled == 0 }

  /// Lists the attributes of a directory.
  public mutating func list(_ directory: borrowing Directory) throws(SystemError) {
    try unsafe fill(directory.path) { unsafe cl_list_attributes(directory.raw, nil, $0, $1) }
  }

  /// Lists the attributes of a child of a directory. Does not follow a symbolic link.
  public mutating func list(
    _ name: borrowing NameBuffer, in directory: borrowing Directory
  ) throws(SystemError) {
    try unsafe fill(directory.path.appending(name.copy)) { into, count in
      unsafe name.withCString { unsafe cl_list_attributes(directory.raw, $0, into, count) }
    }
  }

  /// Whether the entry has an attribute with this name.
  public func contains(_ name: Span<UInt8>) -> Bool {
    var start = 0
    while start < filled {
      var length = 0
      while start + length < filled, buffer[start + length] != 0 { length += 1 }
      if buffer.span.extracting(start..<(start + length)).hasSameBytes(as: name) { return true }
      start += length + 1
    }
    return false
  }

  /// Reads the list into the buffer, which grows if it is too small. On a file system without
  /// extended attributes the list is empty.
  private mutating func fill(
    _ path: @autoclosure () -> ByteString, _ call: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(SystemError) {
    filled = 0
    while true {
      let count = try SystemError.query(.readAttributes, path(), unless: Self.isAnswer) {
        unsafe buffer.withUnsafeMutableBytes { unsafe call($0.baseAddress, $0.count) }
      }
      if count != -Int(ERANGE) {
        filled = max(count, 0)
        isAnswered = count >= 0
        return
      }
      guard buffer.count < 1 << 20 else {
        throw SystemError(.readAttributes, path(), number: ERANGE)
      }
      buffer = [UInt8](repeating: 0, count: buffer.count * 8)
    }
  }

  private static func isAnswer(_ number: Int32) -> Bool {
    SystemError.isUnsupported(number) || number == ERANGE
  }
}
