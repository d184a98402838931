internal import CLinux
internal import Glibc

/// Extended attributes of an open file or folder, or of a folder's child without opening it.
///
/// Calls go by `/proc/self/fd`, the only way to a child's attributes that needs neither a path that
/// may change meanwhile nor permission to open the child. So they are good only as long as that
/// file or folder is open.
public struct ExtendedAttributes: Sendable {
  let path: ByteString
  /// 1 for what is open, as its entry in `/proc` is a link to it; 0 for a child, which may be a link.
  let follow: Int32
  let name: ByteString

  init(of raw: Int32, child: ByteString?, name: ByteString) {
    var path = "/proc/self/fd/\(raw)".utf8.map { $0 }
    if let child {
      path.append(ByteString.slash)
      path.append(contentsOf: child.bytes)
    }
    self.path = ByteString(path)
    follow = child == nil ? 1 : 0
    self.name = name
  }

  /// The attributes' names, sorted by their bytes; none where the file system has no attributes.
  public func names() throws(SystemError) -> [ByteString] {
    do {
      let list = try unsafe sized { into, count in
        unsafe path.withCString { unsafe cl_list_attributes($0, follow, into, count) }
      }
      return list.split(separator: 0).map { ByteString($0) }.sorted()
    } catch {
      if error.isUnsupported { return [] }
      throw error
    }
  }

  /// The value of an attribute, nil when there is none of that name.
  public func value(of key: ByteString) throws(SystemError) -> [UInt8]? {
    do {
      return try unsafe sized { into, count in
        unsafe path.withCString { path in
          unsafe key.withCString { unsafe cl_get_attribute(path, follow, $0, into, count) }
        }
      }
    } catch {
      if error.number == ENODATA || error.isUnsupported { return nil }
      throw error
    }
  }

  /// Sets an attribute.
  public func set(_ key: ByteString, to value: [UInt8]) throws(SystemError) {
    _ = try SystemError.check(.setAttributes, name) {
      unsafe path.withCString { path in
        unsafe key.withCString { key in
          unsafe value.withUnsafeBytes {
            unsafe cl_set_attribute(path, follow, key, $0.baseAddress, $0.count)
          }
        }
      }
    }
  }

  /// Removes an attribute.
  public func remove(_ key: ByteString) throws(SystemError) {
    _ = try SystemError.check(.setAttributes, name) {
      unsafe path.withCString { path in
        unsafe key.withCString { unsafe cl_remove_attribute(path, follow, $0) }
      }
    }
  }

  /// Asks for a value whose size is not known: a first try into 512 bytes, which most values fit;
  /// a value that grows between asking for its size and reading it is asked for again.
  private func sized(
    _ call: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(SystemError) -> [UInt8] {
    var capacity = 512
    while true {
      var buffer = [UInt8](repeating: 0, count: capacity)
      do {
        let count = try SystemError.check(.readAttributes, name) {
          unsafe buffer.withUnsafeMutableBytes { unsafe call($0.baseAddress, $0.count) }
        }
        return Array(buffer.prefix(count))
      } catch {
        guard error.number == ERANGE, capacity < 1 << 20 else { throw error }
        capacity *= 8
      }
    }
  }
}

extension Descriptor {
  /// The extended attributes of the open file.
  public var attributes: ExtendedAttributes {
    ExtendedAttributes(of: raw, child: nil, name: name)
  }
}
