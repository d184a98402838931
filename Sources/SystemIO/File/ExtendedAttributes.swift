internal import CLinux
internal import Glibc

/// The extended attributes of an open file or directory, or of a child of an open directory. Valid
/// only while that file or directory is open.
public struct ExtendedAttributes: Sendable {
  let raw: Int32
  /// The child's name, or nil for the open file itself.
  let child: ByteString?
  /// The path in error messages.
  let name: ByteString

  init(of raw: Int32, child: ByteString? = nil, name: ByteString) {
    self.raw = raw
    self.child = child
    self.name = name
  }

  /// Second names of ACLs, in another format, that XFS lists for root: not data of any program.
  public static let aliases: Set<ByteString> = ["trusted.SGI_ACL_FILE", "trusted.SGI_ACL_DEFAULT"]

  /// Returns the attributes' names, sorted by bytes, without `aliases`. Empty if the file system
  /// has no extended attributes.
  public func names() throws(SystemError) -> [ByteString] {
    do {
      let list = try unsafe sized { into, count in
        unsafe withChild { unsafe cl_list_attributes(raw, $0, into, count) }
      }
      if list.isEmpty { return [] }
      return list.split(separator: 0).map { ByteString($0) }.filter {
        !Self.aliases.contains($0)
      }.sorted()
    } catch {
      if error.isUnsupported { return [] }
      throw error
    }
  }

  /// Returns the value of an attribute, or nil if it does not exist.
  public func value(of key: ByteString) throws(SystemError) -> [UInt8]? {
    do {
      return try unsafe sized { into, count in
        unsafe withChild { child in
          unsafe key.withCString { unsafe cl_get_attribute(raw, child, $0, into, count) }
        }
      }
    } catch {
      if error.number == ENODATA || error.isUnsupported { return nil }
      throw error
    }
  }

  /// Returns all listed attributes with their values. Attributes that vanish during the call are
  /// omitted.
  public func all() throws(SystemError) -> [(name: ByteString, value: [UInt8])] {
    var found: [(name: ByteString, value: [UInt8])] = []
    for name in try names() {
      if let value = try value(of: name) { found.append((name, value)) }
    }
    return found
  }

  /// Sets an attribute.
  public func set(_ key: ByteString, to value: [UInt8]) throws(SystemError) {
    _ = try SystemError.check(.setAttributes, name) {
      unsafe withChild { child in
        unsafe key.withCString { key in
          unsafe value.withUnsafeBytes {
            unsafe cl_set_attribute(raw, child, key, $0.baseAddress, $0.count)
          }
        }
      }
    }
  }

  /// Removes an attribute.
  public func remove(_ key: ByteString) throws(SystemError) {
    _ = try SystemError.check(.setAttributes, name) {
      unsafe withChild { child in
        unsafe key.withCString { unsafe cl_remove_attribute(raw, child, $0) }
      }
    }
  }

  /// Calls `body` with the child's name as a C string.
  private func withChild(_ body: (UnsafePointer<CChar>?) -> Int) -> Int {
    guard let child else { return body(nil) }
    return unsafe child.withCString { unsafe body($0) }
  }

  /// Reads a value of unknown size: first into 512 bytes on the stack, which most values fit, then
  /// into larger buffers, even if the value grows in the meantime.
  private func sized(
    _ call: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(SystemError) -> [UInt8] {
    do {
      return try unsafe small(call)
    } catch { guard error.number == ERANGE else { throw error } }
    var capacity = 8 * Self.smallSize
    while true {
      var buffer = [UInt8](repeating: 0, count: capacity)
      do {
        let count = try SystemError.check(.readAttributes, name) {
          unsafe buffer.withUnsafeMutableBytes { unsafe call($0.baseAddress, $0.count) }
        }
        buffer.removeSubrange(count...)
        return buffer
      } catch {
        guard error.number == ERANGE, capacity < 1 << 20 else { throw error }
        capacity *= 8
      }
    }
  }

  private static let smallSize = 512

  private func small(
    _ call: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    _ = try SystemError.check(.readAttributes, name) {
      unsafe withUnsafeTemporaryAllocation(byteCount: Self.smallSize, alignment: 8) { buffer in
        let count = unsafe call(buffer.baseAddress, buffer.count)
        if count > 0 { bytes = unsafe Array(buffer.prefix(count)) }
        return count
      }
    }
    return bytes
  }
}
